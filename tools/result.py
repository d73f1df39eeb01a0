"""What every tool gives back: data for programs, text for people, an exit code for shells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mecharule_ops.saying.fact import Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """`data` is short JSON with ids and no arrays of the model; `text` says the same in sentences or a table."""

    data: Mapping[str, object] = field(default_factory=dict)
    text: str = ""
    exit_code: int = 0
    facts: tuple[Fact, ...] = ()
    """What an answer may say of it, each sentence with its sources."""


def stated(
    data: Mapping[str, object],
    facts: Sequence[Fact],
    *,
    head: str = "",
    asked: Sequence[Fact] = (),
    exit_code: int = 0,
) -> ToolResult:
    """A result whose text is its facts, a line each under the head; those `asked` for answer questions alone."""
    lines = [*([head] if head else []), *(f"{'  ' if head else ''}{fact.cited}" for fact in facts)]
    return ToolResult(data=data, text="\n".join(lines), exit_code=exit_code, facts=(*facts, *asked))
