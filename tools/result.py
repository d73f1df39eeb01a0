"""What every tool gives back: facts, a table or a text, an exit code; and what it costs, said and accepted before."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mecharule_ops.errors import UsageError
from mecharule_ops.events import Price
from mecharule_ops.facts.answer_text import answer_text
from mecharule_ops.facts.fact import SENTENCES, Fact, FactValue, fact, keyed

if TYPE_CHECKING:
    from mecharule_ops.pages.document import Table
    from mecharule_ops.run.live_run import Run

Tell = Callable[[str], None]
"""Is told one line at a time what a tool is doing; narration, never data."""
A_MINUTE, FEW = 60.0, 200
"""Seconds, and for want of a pace ablated completions, that a yes must allow beyond."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoted:
    """What ablated completions cost, said before they are run."""

    example_forwards: int
    seconds: float | None
    """None where the run ended before any ablation was timed."""
    said: str = ""
    """In words of its own; empty where those of any ablations do."""
    more: Mapping[str, FactValue] = field(default_factory=dict)
    """What else its value holds."""

    @property
    def words(self) -> str:
        if self.said:
            return self.said
        if not self.example_forwards:
            return "nothing, it is stored"
        took = "this run timed none yet" if self.seconds is None else f"~{self.seconds:.0f} s"
        return f"{self.example_forwards} ablated completions, {took}"

    def stated(self, *sources: str) -> ToolResult:
        """The price as a tool's result."""
        text = f"price: {self.words}"
        value = {"example_forwards": self.example_forwards, "seconds": self.seconds, **self.more}
        return ToolResult(text=text, facts=(fact(text, *sources, key="price", value=value),))


@dataclass(frozen=True, slots=True)
class About:
    """States facts of one thing."""

    key: str
    """Theirs begin with it."""
    source: str
    """Where most of them can be checked."""
    unit: object = None

    def __call__(self, name: str, said: str, value: FactValue = None, *sources: str, part: str = "") -> Fact:
        """A fact of that name, by its own sources where it has some."""
        cited = sources or (self.source,)
        return fact(said, *cited, unit=self.unit, part=part, key=f"{self.key}.{name}", value=value)

    def told(
        self, name: str, of: str, value: FactValue = None, /, *sources: str, part: str = "", **parts: Any
    ) -> Fact:
        """The same in a sentence of `facts/sentences.txt`, of the value's entries and other parts."""
        held = value if isinstance(value, Mapping) else {"value": value}
        said = SENTENCES[of].format(**{"unit": self.unit, **held, **parts})
        return self(name, said, value, *sources, part=part)


Priced = Generator[int | Quoted, None, ToolResult]
"""A tool that may ablate or keep something: it yields how many ablated completions it takes, then works."""


def price_words(run: Run, forwards: int) -> Quoted:
    """The price of so many example-forwards at the pace that the run measured."""
    measured = run.store.latest(Price)
    pace = measured.seconds / measured.example_forwards if measured and measured.example_forwards else None
    seconds = 0.0 if not forwards else None if pace is None else forwards * pace
    return Quoted(example_forwards=forwards, seconds=seconds)


def accepted(price: Quoted, yes: bool, tell: Tell) -> None:
    """Tells the price. Raises `UsageError` when it is above a minute, or unknown for more than a few, without a yes."""
    unknown = price.seconds is None and price.example_forwards > FEW
    if (unknown or (price.seconds or 0.0) > A_MINUTE) and not yes:
        raise UsageError(f"expected --yes for a price above a minute, this costs {price.words}")
    tell(f"price: {price.words}")


def of_facts(facts: Sequence[Fact], *, exit_code: int = 0) -> ToolResult:
    """A result whose text is its facts, a line each, and whose data are their values."""
    return ToolResult(text=answer_text(facts), facts=tuple(facts), exit_code=exit_code)
