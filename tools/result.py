"""What every tool gives back: data for programs, text for people, an exit code for shells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mecharule_ops.saying.answer_text import answer_text
from mecharule_ops.saying.fact import Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """`data` is short JSON with ids and no arrays of the model; `text` says the same in sentences or a table."""

    data: Mapping[str, object] = field(default_factory=dict)
    text: str = ""
    exit_code: int = 0
    facts: tuple[Fact, ...] = ()
    """What an answer may say of it, each sentence with its sources."""

    @property
    def as_json(self) -> dict[str, object]:
        """The data, and where there are facts each with its sources: all of them, the text shows fewer."""
        told = [
            {"said": one.said, "unit": one.unit, "sources": list(one.sources), "kinds": list(one.kinds)}
            for one in self.facts
        ]
        return {**self.data, "facts": told} if told else dict(self.data)


def stated(
    data: Mapping[str, object],
    facts: Sequence[Fact],
    *,
    asked: Sequence[Fact] = (),
    exit_code: int = 0,
) -> ToolResult:
    """A result whose text is its facts, a line each; those `asked` for answer questions alone."""
    return ToolResult(data=data, text=answer_text(facts), exit_code=exit_code, facts=(*facts, *asked))
