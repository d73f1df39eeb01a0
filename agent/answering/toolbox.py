"""The tools that a language model may call about one run, and the facts that it may name afterwards.

The run is filled in here, and so is nothing that only a person may decide: a model cannot accept a price, write
a file, fetch a model or look at another folder.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from agent.answering.facts import facts_of
from agent.answering.questions import QUESTIONS
from agent.answering.router import understand
from agent.llm.protocol import ToolSpec
from mecharule_ops.errors import UsageError
from mecharule_ops.saying.fact import Fact
from tools.registry import TOOLS, Tell, ToolResult, call

OFFERED = (
    *("why", "why-not", "flip", "ablate", "covers", "shared", "missed"),
    *("versus", "layer", "disguise", "weakest"),
    *("neurons", "rules", "tree", "evidence", "compare", "verify", "hypotheses"),
    *("score", "extract", "slices", "candidates", "localise", "anchor", "control", "path", "account"),
)
"""Names of the tools offered, as in the registry."""
MOST_AT_ONCE = 4
"""Tools that a question is put with."""
_ALWAYS = "neurons"
"""What was found: offered with every question."""
_RUN = {"compare": "first"}
"""The argument that names the run, where it is not `run`."""
_FOR_PEOPLE = frozenset({"yes", "csv", "md", "tex", "model", "all", "show_text", "svg"})


class RunToolbox:
    """The tools of one run. `path` is its file."""

    def __init__(self, path: str, run: str, tell: Tell = lambda line: None) -> None:
        self._path = path
        self._run = run
        self._tell = tell

    def specs(self, question: str) -> tuple[ToolSpec, ...]:
        """The few tools that fit a question, as the model sees them."""
        nearest = (QUESTIONS[kind].tool for kind in understand(question).nearest)
        names = [name for name in dict.fromkeys(nearest) if name in OFFERED and name != _ALWAYS]
        return tuple(map(spec_of, [*names[: MOST_AT_ONCE - 1], _ALWAYS]))

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
        return call(name, {**arguments, _run_argument(name): self._path}, self._tell)

    def facts(self, name: str, result: ToolResult) -> tuple[Fact, ...]:
        """What the result states."""
        return facts_of(result, self._run, name)


def spec_of(name: str) -> ToolSpec:
    """A tool with a schema as short as it can be: names, kinds and what each argument is."""
    tool = TOOLS[name]
    schema: dict[str, Any] = copy.deepcopy(tool.arguments.model_json_schema())
    hidden = _FOR_PEOPLE | {_run_argument(name)}
    properties = {key: _short(value) for key, value in schema["properties"].items() if key not in hidden}
    required = [key for key in schema.get("required", []) if key not in hidden]
    return ToolSpec(
        name=name,
        description=tool.help,
        schema={
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        },
    )


def _short(value: Mapping[str, Any]) -> dict[str, Any]:
    """A property without title, default and the null that a default stands for."""
    kinds = [kind for kind in value.get("anyOf", [value]) if kind.get("type") != "null"]
    kept = {key: kinds[0][key] for key in ("type", "enum", "minimum", "maximum") if key in kinds[0]}
    return {**kept, "description": value["description"]} if "description" in value else kept


def _run_argument(name: str) -> str:
    return _RUN.get(name, "run")
