"""A run's recorded events told again, as fast as asked."""

from __future__ import annotations

import time
from collections.abc import Callable

from mecharule_ops.errors import UsageError
from mecharule_ops.events import Event
from mecharule_ops.pipeline.opening import opened
from tools.result import ToolResult

LONGEST_PAUSE = 5.0
"""Seconds waited at most between two events: a run that was resumed the next day has long gaps."""


def replay(
    name: str, show: Callable[[Event], None], speed: float, wait: Callable[[float], None] = time.sleep
) -> ToolResult:
    """How many events were told. `speed` 1 keeps the recorded pauses, 10 a tenth of them, 0 none.

    Raises `UsageError` for a negative speed.
    """
    if speed < 0:
        raise UsageError(f"expected a speed of 0 or more, got {speed:g}")
    told, before = 0, None
    with opened(name) as run:
        for _, moment, event in run.store.events():
            if speed and before is not None:
                wait(min(LONGEST_PAUSE, max(0.0, moment - before) / speed))
            before = moment
            told += 1
            show(event)
        return ToolResult(data={"run": run.id, "events": told}, text=f"{told} events of run {run.id}")
