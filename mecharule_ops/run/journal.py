"""Where a run tells what happens: every event goes to the run file and to whoever is watching."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from mecharule_ops import events
from mecharule_ops.loading import placement
from mecharule_ops.run.forecast import UNKNOWN, Forecast
from mecharule_ops.store.run_store import RunStore

EVERY = 5.0
"""Seconds after which it is told anew how long the run still takes."""
BUFFERED = 256
"""Node events kept back before they are written in one transaction."""


@dataclass(slots=True)
class Stage:
    """A stage under way; `summary` is the line a person reads when it ends."""

    progress: Callable[..., None]
    """Told (done, total) in long calls inside it, and which unit is at work."""
    summary: str = ""
    reused: bool = False


@dataclass(slots=True)
class Journal:
    """Appends events to a store and passes them on. `clock` gives seconds; only differences are used."""

    store: RunStore
    show: Callable[[events.Event], None]
    clock: Callable[[], float]
    forecast: Forecast = field(default_factory=lambda: Forecast([UNKNOWN]))
    stages: list[events.StageFinished] = field(default_factory=list)
    """Finished stages of this process, for the report's cost table."""
    _waiting: list[events.Event] = field(default_factory=list)
    _uncounted: str = ""
    """The stage at work, until it tells how far it is."""
    _passes: int = 0
    _told: float = 0.0
    _left_at: float = 0.0

    def part(self, number: int) -> None:
        """Go on with another part of the run, or know more of what is left; the next event tells it."""
        self.forecast.begin(number, self.clock())
        self._left_at = -math.inf

    def emit(self, event: events.Event) -> None:
        """Tell one event. Progress is shown but not kept; nodes are written in groups."""
        if (now := self.clock()) >= self._left_at + EVERY:
            self._left_at = now
            if left := self.forecast.left(now):
                self.emit(left)
        self.show(event)
        if isinstance(event, events.StageProgress):
            return
        self._waiting.append(event)
        if not isinstance(event, events.NodeAsked | events.NodeTested) or len(self._waiting) >= BUFFERED:
            self.flush()

    def flush(self) -> None:
        """Write what waits; a crash before this loses events, never outcomes."""
        self.store.append(self._waiting)
        self._waiting.clear()

    def notice(self, text: str, level: str = "info") -> None:
        """Tells a sentence that a person should read; `level` is `info` or `warning`."""
        self.emit(events.Notice(text=text, level=level))

    @contextmanager
    def stage(self, name: str, total: int | None = None, unit: str = "steps") -> Iterator[Stage]:
        """Brackets a stage with its events."""
        self.emit(events.StageStarted(stage=name, total=total, unit=unit))
        self._uncounted, self._passes, self._told = "" if total else name, 0, self.clock()
        began = self._told
        stage = Stage(self.progress(name))
        yield stage
        placement.give_back()
        finished = events.StageFinished(
            stage=name, summary=stage.summary, seconds=self.clock() - began, reused=stage.reused
        )
        self.stages.append(finished)
        self.emit(finished)

    def progress(self, stage: str) -> Callable[..., None]:
        """A callback (done, total) for long calls inside a stage, with the unit at work where it is one."""

        def tell(done: int, total: int | None, neuron: object = "") -> None:
            self._uncounted = ""
            self.emit(events.StageProgress(stage=stage, done=done, total=total, neuron=str(neuron)))

        return tell

    def counting(self, ask: Callable[[], bool]) -> Callable[[], bool]:
        """`ask`, which is asked before every pass; a stage that counts nothing else tells how many, once a second."""

        def asked() -> bool:
            self._passes += 1
            if self._uncounted and self.clock() >= self._told + 1:
                self._told = self.clock()
                self.emit(events.StageProgress(stage=self._uncounted, done=self._passes))
            return ask()

        return asked
