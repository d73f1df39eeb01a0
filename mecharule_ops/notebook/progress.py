"""A run's events as one live line: updated in place in a notebook, a line a finished stage elsewhere."""

import sys
import time
from collections.abc import Callable
from typing import Any

from mecharule_ops.events import Event, RunFinished, RunStarted, StageFinished
from mecharule_ops.state.run_state import RunState

SECONDS_BETWEEN = 0.2
"""A notebook's line is written again at most this often."""


def line_of(state: RunState) -> str:
    """Where a run is, in one line.

    >>> from mecharule_ops.events import StageProgress
    >>> line_of(RunState().apply(StageProgress(stage="behaviour", done=64, total=300)))
    'behaviour 64/300'
    """
    found = len({(one.regime, one.neuron) for one in state.agonists.values()})
    stage = state.status if state.finished else ""
    if not state.finished and state.stage is not None:
        total = "" if state.stage.total is None else f" {state.stage.done:,}/{state.stage.total:,}"
        stage = f"{state.stage.stage}{total}"
    parts = [
        f"run {state.header.run}" if state.header else "",
        stage,
        f"{state.tested:,} groups or units ablated" if state.searches else "",
        f"{found:,} localized" if found else "",
    ]
    return " · ".join(filter(None, parts))


class Progress:
    """Is told every event and shows one line; `write` updates the line, `tell` prints a new one."""

    def __init__(
        self,
        *,
        write: Callable[[str], None] | None = None,
        tell: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`write` is None outside a notebook, where each finished stage is told instead."""
        self._write, self._tell, self._clock = write, tell, clock
        self._state = RunState()
        self._written = float("-inf")

    def __call__(self, event: Event) -> None:
        """Folds the event in, and shows it where it is time."""
        self._state = self._state.apply(event)
        ends = isinstance(event, RunStarted | RunFinished)
        if self._write is None:
            if isinstance(event, StageFinished):
                self._tell(f"{event.stage}: {event.summary}")
            elif ends:
                self._tell(line_of(self._state))
        elif ends or self._clock() - self._written >= SECONDS_BETWEEN:
            self._written = self._clock()
            self._write(line_of(self._state))


def live_progress() -> Progress:
    """The listener that fits where the code runs: a notebook's kernel, or anything else; IPython is not imported."""
    ipython: Any = sys.modules.get("IPython")
    if ipython is None or getattr(ipython.get_ipython(), "kernel", None) is None:
        return Progress()
    shown = ipython.display.display({"text/plain": ""}, raw=True, display_id=True)
    return Progress(write=lambda line: shown.update({"text/plain": line}, raw=True))
