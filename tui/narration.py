"""What every display of a headless run says: the sentences of its events, and the running totals."""

from __future__ import annotations

import time
from collections.abc import Callable

from mecharule_ops.events import (
    AgonistFound,
    CertificateWritten,
    CostChanged,
    Event,
    HypothesisDecided,
    HypothesisRegistered,
    LlmMessage,
    Notice,
    Price,
    QuestionAnswered,
    RuleAnchored,
    RunFinished,
    RunStarted,
    SearchFinished,
    StageFinished,
    StageProgress,
    StageStarted,
    ToolCalled,
    UnitJudged,
)
from mecharule_ops.plain_text import plain
from tui.seconds import clock

HQ_FLOOR = 0.70
"""Rules below this held-out MCC are not worth a line while the run goes on; the report lists them all."""


class RunningTotals:
    """The running totals that every display needs: stage, counts, cost, time left in the stage."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._run_began = self._stage_began = clock()
        self.stage = ""
        self.done = 0
        self.total: int | None = None
        self.cost = CostChanged(group_evaluations=0, example_forwards=0, reused=0)

    def apply(self, event: Event) -> None:
        if isinstance(event, StageStarted):
            self.stage, self.done, self.total = event.stage, 0, event.total
            self._stage_began = self._clock()
        elif isinstance(event, StageProgress):
            self.done, self.total = event.done, event.total
        elif isinstance(event, CostChanged):
            self.cost = event

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return self._clock() - self._run_began

    @property
    def left(self) -> float | None:
        """Seconds the stage still needs at its speed so far; None while nothing is known."""
        if not self.total or not self.done:
            return None
        return (self._clock() - self._stage_began) / self.done * (self.total - self.done)

    def line(self) -> str:
        """`search attn_head 1→0 120/270 · 1,204 ablations · 0:41 · ~0:55 left`."""
        parts = [self.stage + (f" {self.done:,}/{self.total:,}" if self.total else "")]
        if self.cost.group_evaluations or self.cost.reused:
            parts.append(f"{self.cost.group_evaluations:,} ablations ({self.cost.reused:,} reused)")
        parts.append(clock(self.elapsed))
        if self.left is not None:
            parts.append(f"~{clock(self.left)} left in this stage")
        return " · ".join(parts)


def narrate(event: Event) -> str | None:
    """The sentence of an event that a person should read, as one harmless line; None if it only moves a bar."""
    sentence = _sentence(event)
    return None if sentence is None else plain(sentence)


def _sentence(event: Event) -> str | None:
    match event:
        case RunStarted():
            return (
                f"run {event.run}: {event.task} on {event.model}, {event.basis}, {event.baseline}, {event.phase}, "
                f"{event.thresholds}, n {event.slice_size} a slice"
            )
        case Price():
            return (
                f"price: {event.ablations} ({event.example_forwards:,} example-forwards), {event.time(clock)}"
            )
        case StageFinished():
            return f"{event.stage}: {event.summary}" + (" (from the run file)" if event.reused else "")
        case SearchFinished() if event.localized:
            return f"{event.search}: {event.localized} localized with {event.queries} group ablations"
        case AgonistFound() if event.is_tau_agonist:
            return f"{event.neuron} reaches τ: flips {event.strength:.0%} of a slice, UCB {event.ucb:.2f}"
        case UnitJudged(rank=int()):
            return f"{event.neuron} is shown: flips {event.flips} of {event.n} answers kept aside"
        case RuleAnchored(held_out_mcc=float(mcc), adjusted_p=float()) if event.predicts and mcc >= HQ_FLOOR:
            return f"rule {event.neuron}: {event.rule} (held-out MCC {mcc:.2f})"
        case CertificateWritten():
            return f"certificate [c:{event.certificate}] {event.claim}"
        case Notice():
            return f"warning: {event.text}" if event.level == "warning" else event.text
        case RunFinished():
            return f"run {event.run}: {event.status}"
        case LlmMessage():
            said = event.text if event.ok else f"failed: {event.text}"
            spent = f"{event.input_tokens:,} + {event.output_tokens:,} tokens"
            return f"{event.model} ({event.purpose}; {spent}): {said}"
        case ToolCalled():
            return f"tool {event.tool} {event.arguments}: {'ok' if event.ok else 'failed'}: {event.result}"
        case QuestionAnswered():
            return f"answered {event.question!r} ({event.llm}): {event.checked}"
        case HypothesisRegistered():
            needed = f"{event.test}, at least {event.threshold:.2f}"
            return f"hypothesis {event.hypothesis} registered: {event.statement} Decided by: {needed}"
        case HypothesisDecided():
            value = (
                "could not be decided: too few of one side" if event.value is None else f"{event.value:.2f}"
            )
            measured = f"{value} on {event.n} records, {event.positives} of them flips"
            return f"hypothesis {event.hypothesis} on {event.subject}: {event.state} ({measured})"
        case _:
            return None
