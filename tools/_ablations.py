"""What ablations that a tool asks for cost, said and accepted before they run."""

from __future__ import annotations

from dataclasses import dataclass

from mecharule_ops.errors import UsageError
from mecharule_ops.events import Price
from mecharule_ops.facts.fact import FactValue, fact
from mecharule_ops.run.live_run import Run
from tools.result import Tell, ToolResult

A_MINUTE = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoted:
    """What ablated completions cost, said before they are run."""

    example_forwards: int
    seconds: float | None
    """None where the run ended before any ablation was timed."""
    said: str = ""
    """In words of its own; empty where those of any ablations do."""

    @property
    def words(self) -> str:
        if self.said:
            return self.said
        if not self.example_forwards:
            return "nothing, it is stored"
        took = "this run timed none yet" if self.seconds is None else f"~{self.seconds:.0f} s"
        return f"{self.example_forwards} ablated completions, {took}"

    def stated(self, run: str) -> ToolResult:
        """The price as a tool's result."""
        text = f"price: {self.words}"
        value: FactValue = {"example_forwards": self.example_forwards, "seconds": self.seconds}
        return ToolResult(text=text, facts=(fact(text, f"run:{run}", key="price", value=value),))


def price_words(run: Run, forwards: int) -> Quoted:
    """The price of so many example-forwards at the pace that the run measured."""
    measured = run.store.latest(Price)
    pace = measured.seconds / measured.example_forwards if measured and measured.example_forwards else None
    seconds = 0.0 if not forwards else None if pace is None else forwards * pace
    return Quoted(example_forwards=forwards, seconds=seconds)


FEW = 200
"""Ablated completions that are run for want of a pace."""


def accepted(price: Quoted, yes: bool, tell: Tell) -> None:
    """Tells the price. Raises `UsageError` when it is above a minute, or unknown for more than a few, without a yes."""
    unknown = price.seconds is None and price.example_forwards > FEW
    if (unknown or (price.seconds or 0.0) > A_MINUTE) and not yes:
        raise UsageError(f"expected --yes for a price above a minute, this costs {price.words}")
    tell(f"price: {price.words}")
