"""The tools that a language model may call about one run, and the facts that it may name afterwards.

The run is filled in here, and so is nothing that only a person may decide: a model cannot accept a price, write
a file, fetch a model or look at another folder. Every tool can be reached by every model: one of a large context is
shown all of them, one of a small context the few that lie nearest, and the rest when it asks about them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from agent.answering.facts import facts_of
from agent.answering.questions import QUESTIONS
from agent.answering.router import understand
from agent.answering.specs import find_spec, run_argument, spec_of
from agent.llm.protocol import ToolSpec
from mecharule_ops.errors import UsageError
from mecharule_ops.saying.fact import Fact
from tools.registry import TOOLS, Tell, ToolResult, call

_NOT_OF_A_RUN = frozenset({"export", "runs", "models", "data", "doctor", "selftest", "spec"})
_OF_PEOPLE = frozenset({"register", "decide"})
"""What registers and decides claims: only a person may."""
OFFERED = tuple(name for name in TOOLS if name not in _NOT_OF_A_RUN | _OF_PEOPLE)
"""Names of the tools offered, as in the registry."""
MOST_AT_ONCE = 4
"""Tools that a model of a small context is shown with a question, and finds at once."""
_NAMED = 3
"""Words in common that a tool's own name counts as."""
_ALWAYS = "neurons"
"""What was found: shown with every question."""
_STEM = 5
"""Letters by which words are compared."""
_SAYS_LITTLE = frozenset(
    ("which", "what", "where", "when", "does", "about", "that", "this", "with", "from", "unit")
)


class RunToolbox:
    """The tools of one run. `path` is its file, `unit` one of its units for the meanings of arguments to name."""

    def __init__(
        self,
        path: str,
        run: str,
        tell: Tell = lambda line: None,
        *,
        is_small: bool = False,
        unit: str = "",
    ) -> None:
        self._path = path
        self._run = run
        self._tell = tell
        self._unit = unit
        self.is_small = is_small

    def specs(self, question: str, found: Iterable[str] = ()) -> tuple[ToolSpec, ...]:
        """All tools; for a small context those that fit the question, those that were `found`, and a finder."""
        if not self.is_small:
            return tuple(spec_of(name, unit=self._unit) for name in OFFERED)
        nearest = (QUESTIONS[kind].tool for kind in understand(question).nearest)
        near = [name for name in dict.fromkeys(nearest) if name in OFFERED and name != _ALWAYS]
        names = dict.fromkeys([*near[: MOST_AT_ONCE - 1], _ALWAYS, *found])
        return (*(spec_of(name, question, self._unit) for name in names), find_spec())

    def about(self, words: str) -> tuple[tuple[str, ...], str]:
        """(names of the tools that tell most about something, what each is told and says)."""
        wanted, named = _stems(words), set(re.findall(r"[a-z-]+", words.lower()))
        likeness = {
            name: len(wanted & _stems(f"{name} {spec_of(name).line}")) + _NAMED * (name in named)
            for name in OFFERED
        }
        best = sorted(OFFERED, key=lambda name: -likeness[name])[:MOST_AT_ONCE]
        return tuple(best), "\n".join(spec_of(name, words, self._unit).line for name in best)

    def call(self, name: str, arguments: Mapping[str, object]) -> ToolResult:
        """A tool's result. Raises `UsageError` on a tool or argument that is not offered, and what the tool raises."""
        if name not in OFFERED:
            raise UsageError(f"expected a tool of: {', '.join(OFFERED)}; got {name!r}")
        allowed: Any = spec_of(name).schema["properties"]
        extra = sorted(set(arguments) - set(allowed))
        if extra:
            raise UsageError(
                f"expected arguments of {name} among {', '.join(allowed)}, got {', '.join(extra)}"
            )
        return call(name, {**arguments, run_argument(name): self._path}, self._tell)

    def facts(self, name: str, result: ToolResult) -> tuple[Fact, ...]:
        """What the result states."""
        return facts_of(result, self._run, name)


def _stems(text: str) -> set[str]:
    words = re.findall(r"[a-z]{4,}", text.lower())
    return {word[:_STEM] for word in words if word not in _SAYS_LITTLE}
