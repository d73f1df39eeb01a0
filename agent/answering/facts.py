"""The facts of a tool's result as an answer shows them, and as a model is shown them under their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from mecharule_ops.saying.fact import Fact, fact
from tools.registry import ToolResult

_LONGEST_RESULT = 3000
"""Characters of the facts of one result that a model is shown."""
_IN_ONE_LINE = 2
"""Sentences that may follow each other in a line."""


def facts_of(result: ToolResult, run: str, kind: str) -> tuple[Fact, ...]:
    """What a result states to kinds of question, with spaces between them; its lines where the tool states no facts."""
    if result.facts:
        kinds = set(kind.split())
        return tuple(one for one in result.facts if kinds & set(one.kinds) or not one.kinds)
    lines = (line.strip() for line in result.text.splitlines())
    return tuple(fact(line, f"run:{run}") for line in lines if line)


def facts_from(kept: Sequence[Mapping[str, object]]) -> tuple[Fact, ...]:
    """Facts from their JSON, in order."""
    return tuple(
        Fact(**{**one, **{name: tuple(cast(list[str], one[name])) for name in ("sources", "kinds")}})  # type: ignore[arg-type]
        for one in kept
    )


def listed(facts: Sequence[Fact], first: int = 1) -> str:
    """Facts under their names, a line each."""
    text = "\n".join(f"f{number}: {one.said.removesuffix('.')}" for number, one in enumerate(facts, first))
    return text if len(text) <= _LONGEST_RESULT else text[:_LONGEST_RESULT].rsplit("\n", 1)[0] + "\n(cut)"


def paragraph(sentences: Sequence[str], *, is_table: bool = False) -> str:
    """Sentences one after the other, each once; where they are many, or rows, each in a line of its own."""
    said = tuple(dict.fromkeys(sentences))
    return ("\n" if is_table or len(said) > _IN_ONE_LINE else " ").join(said)
