"""Ablations that a tool asks for: the slices they run on, their certificate, and their price."""

from __future__ import annotations

from dataclasses import dataclass

from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.engine.asking import Group
from mecharule_ops.errors import UsageError
from mecharule_ops.events import Price
from mecharule_ops.pipeline.opening import keep, opened
from mecharule_ops.pipeline.run import Run
from mecharule_ops.store.stored_engine import group_key
from mecharule_ops.types import Regime
from tools.registry import Tell
from tools.result import ToolResult


def find_certificate(run: Run, units: Group, regime: Regime) -> Certificate | None:
    """The newest stored certificate of ablating exactly these units on both compact slices."""
    wanted = group_key(units)
    fitting = [
        certificate
        for certificate in run.store.certificates()
        if certificate.kind in ("ablate", "why")
        and certificate.regime == regime.value
        and ",".join(sorted(certificate.units)) == wanted
        and certificate.intervention.baseline == run.config.baseline.value
        and {total.slice for total in certificate.totals} <= {"associated", "unrelated"}
    ]
    return fitting[-1] if fitting else None


A_MINUTE = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoted:
    """What ablated completions cost, said before they are run."""

    example_forwards: int
    seconds: float | None
    """None where the run ended before any ablation was timed."""

    @property
    def data(self) -> dict[str, object]:
        return {"example_forwards": self.example_forwards, "seconds": self.seconds}

    @property
    def words(self) -> str:
        if not self.example_forwards:
            return "nothing, it is stored"
        took = "this run timed none yet" if self.seconds is None else f"~{self.seconds:.0f} s"
        return f"{self.example_forwards} ablated completions, {took}"

    def stated(self, run: str, *, at_most: bool = False) -> ToolResult:
        """The price as a tool's result."""
        text = f"price: {'at most ' if at_most else ''}{self.words}"
        return ToolResult(data={"run": run, "price": self.data}, text=text)


def certificate_now(name: str, units: Group, regime: Regime, tell: Tell) -> Certificate:
    """The stored certificate of ablating exactly these units, or one made now and kept."""
    from mecharule_ops.pipeline.certify import certify

    with opened(name) as run:
        stored = find_certificate(run, units, regime)
    if stored is not None:
        return stored
    tell(f"ablating {'+'.join(map(str, units))} on both slices")
    with opened(name, write=True, tell=tell) as run:
        return keep(run, certify(run, units, regime))


def price_words(run: Run, forwards: int) -> Quoted:
    """The price of so many example-forwards at the pace that the run measured."""
    measured = run.store.latest(Price)
    pace = measured.seconds / measured.example_forwards if measured and measured.example_forwards else None
    seconds = 0.0 if not forwards else None if pace is None else forwards * pace
    return Quoted(example_forwards=forwards, seconds=seconds)


def accepted(price: Quoted, yes: bool, tell: Tell) -> None:
    """Tells the price. Raises `UsageError` when it is above a minute, or unknown, and nobody said yes."""
    if (price.seconds is None or price.seconds > A_MINUTE) and not yes:
        raise UsageError(f"expected --yes for a price above a minute, this costs {price.words}")
    tell(f"price: {price.words}")
