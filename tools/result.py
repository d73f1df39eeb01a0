"""What every tool gives back: facts, a table or a text, an exit code."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mecharule_ops.facts.answer_text import answer_text
from mecharule_ops.facts.fact import Fact, keyed

if TYPE_CHECKING:
    from mecharule_ops.pages.document import Table

Tell = Callable[[str], None]
"""Is told one line at a time what a tool is doing; narration, never data."""
_TOLD = ("key", "said", "unit", "part")
"""What JSON holds of a fact, beside its sources and its value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """`data` is short JSON with ids and no arrays of the model; `text` says the same in sentences or a table.

    A tool whose facts have keys gives no data of its own: they are the facts' values.
    """

    data: Mapping[str, object] = field(default_factory=dict)
    text: str = ""
    exit_code: int = 0
    facts: tuple[Fact, ...] = ()
    """What an answer may say of it, each sentence with its sources."""
    table: Table | None = None
    """Rows as printed, where the text is a table."""

    @property
    def as_json(self) -> dict[str, object]:
        """The data, and each fact with its sources: all of them, the text shows fewer."""
        told = [
            {**{name: getattr(one, name) for name in _TOLD}, "sources": list(one.sources)}
            for one in self.facts
        ]
        return {**self.data, **keyed(self.facts), **({"facts": told} if told else {})}


Priced = Generator[int, None, ToolResult]
"""A tool that may ablate: it yields how many ablated completions it takes, then returns its result."""


def of_facts(facts: Sequence[Fact], *, exit_code: int = 0) -> ToolResult:
    """A result whose text is its facts, a line each, and whose data are their values."""
    return ToolResult(text=answer_text(facts), facts=tuple(facts), exit_code=exit_code)
