"""What a headless run shows while it works: the sentences of its events, cost so far and time left, on stderr.

`rich` redraws a few lines on a terminal; `plain` prints one line a change and is the screen-reader mode; `log`
adds the seconds since the start to each; `none` is silent. A display is told events and knows no model.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mecharule_ops import events
from mecharule_ops.errors import UsageError
from mecharule_ops.events import CostChanged, Event, StageProgress, StageStarted
from mecharule_ops.plain_text import plain
from tui.words import clock

DISPLAYS = ("rich", "plain", "log", "none")
SECONDS_BETWEEN_LINES = 5.0
"""A plain display repeats the progress of one stage at most this often."""
HQ_FLOOR = 0.70
"""Rules below this held-out MCC are not worth a line while the run goes on; the report lists them all."""


def narrate(event: Event) -> str | None:
    """The sentence of an event that a person should read, as one harmless line; None if it only moves a bar."""
    sentence = _sentence(event)
    return None if sentence is None else plain(sentence)


def _sentence(event: Event) -> str | None:
    match event:
        case events.RunStarted():
            return (
                f"run {event.run}: {event.task} on {event.model}, {event.basis}, {event.baseline}, {event.phase}, "
                f"{event.thresholds}, n {event.slice_size} a slice"
            )
        case events.Price():
            return (
                f"price: {event.ablations} ({event.example_forwards:,} example-forwards), {event.time(clock)}"
            )
        case events.StageFinished():
            return f"{event.stage}: {event.summary}" + (" (from the run file)" if event.reused else "")
        case events.SearchFinished() if event.localized:
            return f"{event.search}: {event.localized} localized with {event.queries} group ablations"
        case events.AgonistFound() if event.is_tau_agonist:
            return f"{event.neuron} reaches τ: flips {event.strength:.0%} of a slice, UCB {event.ucb:.2f}"
        case events.UnitJudged(rank=int()):
            return f"{event.neuron} is shown: flips {event.flips} of {event.n} answers kept aside"
        case events.RuleAnchored(held_out_mcc=float(mcc), adjusted_p=float()) if (
            event.predicts and mcc >= HQ_FLOOR
        ):
            return f"rule {event.neuron}: {event.rule} (held-out MCC {mcc:.2f})"
        case events.CertificateWritten():
            return f"certificate [c:{event.certificate}] {event.claim}"
        case events.Notice():
            return f"warning: {event.text}" if event.level == "warning" else event.text
        case events.RunFinished():
            return f"run {event.run}: {event.status}"
        case events.LlmMessage():
            said = event.text if event.ok else f"failed: {event.text}"
            spent = f"{event.input_tokens:,} + {event.output_tokens:,} tokens"
            return f"{event.model} ({event.purpose}; {spent}): {said}"
        case events.ToolCalled():
            return f"tool {event.tool} {event.arguments}: {'ok' if event.ok else 'failed'}: {event.result}"
        case events.QuestionAnswered():
            return f"answered {event.question!r} ({event.llm}): {event.checked}"
        case events.HypothesisRegistered():
            needed = f"{event.test}, at least {event.threshold:.2f}"
            return f"hypothesis {event.hypothesis} registered: {event.statement} Decided by: {needed}"
        case events.HypothesisDecided():
            value = (
                "could not be decided: too few of one side" if event.value is None else f"{event.value:.2f}"
            )
            measured = f"{value} on {event.n} records, {event.positives} of them flips"
            return f"hypothesis {event.hypothesis} on {event.subject}: {event.state} ({measured})"
    return None


class LineDisplay:
    """One line a change, and the running totals that every display needs: stage, counts, cost, time left in it."""

    def __init__(self, stream: TextIO, name: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._name, self._clock = stream, name, clock
        self._run_began = self._stage_began = self._last_line = clock()
        self.stage, self.done = "", 0
        self.total: int | None = None
        self._cost = CostChanged(group_evaluations=0, example_forwards=0, reused=0)

    def show(self, event: Event) -> None:
        """Say an event, or count it."""
        match event:
            case StageStarted():
                self.stage, self.done, self.total = event.stage, 0, event.total
                self._stage_began = self._clock()
            case StageProgress():
                self.done, self.total = event.done, event.total
            case CostChanged():
                self._cost = event
        sentence = narrate(event)
        if sentence is not None:
            self._say(sentence)
        elif isinstance(event, StageProgress | CostChanged):
            self._count()

    def _say(self, sentence: str) -> None:
        if self._name == "none":
            return
        self._last_line = self._clock()
        prefix = f"{self._last_line - self._run_began:8.1f} " if self._name == "log" else ""
        self._stream.write(f"{prefix}{sentence}\n")
        self._stream.flush()

    def _count(self) -> None:
        if self._clock() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._say(self.line())

    @property
    def left(self) -> float | None:
        """Seconds the stage still needs at its speed so far; None while nothing is known."""
        if not self.total or not self.done:
            return None
        return (self._clock() - self._stage_began) / self.done * (self.total - self.done)

    def line(self) -> str:
        """`search attn_head 1→0 120/270 · 1,204 ablations · 0:41 · ~0:55 left`."""
        parts = [self.stage + (f" {self.done:,}/{self.total:,}" if self.total else "")]
        cost, left = self._cost, self.left
        if cost.group_evaluations or cost.reused:
            parts.append(f"{cost.group_evaluations:,} ablations ({cost.reused:,} reused)")
        parts.append(clock(self._clock() - self._run_began))
        return " · ".join(parts + ([] if left is None else [f"~{clock(left)} left in this stage"]))

    def close(self) -> None:
        """Say nothing more."""
        self._stream.flush()


class RichDisplay(LineDisplay):
    """On a terminal: sentences scroll; the last lines hold a bar, the cost and the time left."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._console = Console(file=stream, highlight=False)
        self._live = Live(
            console=self._console, refresh_per_second=5, transient=True, get_renderable=self._draw
        )
        self._live.start()

    def _draw(self) -> Table:
        grid = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=self.total, completed=self.done, width=24)
        grid.add_row(bar if self.total else Text(""), Text(self.line()))
        return grid

    def _say(self, sentence: str) -> None:
        self._console.print(Text(sentence, "bold red" if sentence.startswith("warning: ") else ""))

    def _count(self) -> None:
        """The bar is drawn by itself."""

    def close(self) -> None:
        """Take the bar away."""
        self._live.stop()


def make_display(name: str | None, stream: TextIO | None = None) -> LineDisplay:
    """The display of that name on stderr; None picks `rich` on a terminal and `plain` elsewhere.

    It is told every event, and closed once, also after an error.
    """
    stream = stream or sys.stderr
    name = name or ("rich" if stream.isatty() else "plain")
    if name not in DISPLAYS:
        raise UsageError(
            f"expected a display of {', '.join(DISPLAYS)}, got {name!r}; the screens have no verb"
        )
    return RichDisplay(stream) if name == "rich" else LineDisplay(stream, name)
