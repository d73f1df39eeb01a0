"""Asking, searching, stopping and resuming in one process for a while: memory and file handles stay as they were."""

from __future__ import annotations

import gc
import os
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from agent.answering.conversation import ask
from bundled_run import QUICK

from agent.verbs import runner
from mecharule_ops.config import make_config
from mecharule_ops.errors import AblationStopped
from mecharule_ops.events import Event
from mecharule_ops.store.run_directory import SUFFIX
from tools.registry import call

from .finished import finished_file
from .memory import open_files, resident
from .result import Figure, Result, Setting

WARM = 3
"""Rounds before the first measure: caches fill, libraries load what they load late."""
GROWTH = 1.15
"""Memory at the end over that after the warm rounds; above it is a find."""
QUESTIONS = (
    "what did the search find?",
    "why does the strongest unit flip?",
    "what did the search miss?",
    "xyzzy?",
)


def soak(setting: Setting) -> Result:
    """Rounds until the time is over, at least two after the warm ones."""
    runs = setting.folder / "soak"
    runs.mkdir()
    shutil.copy(finished_file(setting.folder), runs / f"b00d{SUFFIX}")
    before = os.environ.get("MECHARULE_RUNS")
    os.environ["MECHARULE_RUNS"] = str(runs)
    marks: list[tuple[float, int, int]] = []
    began = time.monotonic()
    try:
        while time.monotonic() - began < setting.soak_seconds or len(marks) < WARM + 2:
            _round(runs, len(marks))
            gc.collect()
            marks.append((resident(), open_files(), threading.active_count()))
            setting.tell(f"soak: round {len(marks)}, {marks[-1][0]:.0f} MB, {marks[-1][1]} file handles")
    finally:
        if before is None:
            del os.environ["MECHARULE_RUNS"]
        else:
            os.environ["MECHARULE_RUNS"] = before
    first, last = marks[WARM], marks[-1]
    problems = []
    if last[0] > GROWTH * first[0]:
        problems.append(f"memory grew from {first[0]:.0f} to {last[0]:.0f} MB")
    problems += [
        f"{what} grew from {one} to {other}"
        for what, one, other in (("file handles", first[1], last[1]), ("threads", first[2], last[2]))
        if other > one
    ]
    return Result(
        tried=f"{(time.monotonic() - began) / 60:.1f} minutes in one process, {len(marks)} rounds of {len(QUESTIONS)} "
        "questions, a search stopped halfway and resumed, and three tools",
        cases=len(marks),
        figures=(
            Figure(
                what=f"memory after {WARM + 1} rounds, at the end",
                value=f"{first[0]:.0f} MB, {last[0]:.0f} MB",
            ),
            Figure(what="file handles then, at the end", value=f"{first[1]}, {last[1]}"),
            Figure(what="threads then, at the end", value=f"{first[2]}, {last[2]}"),
        ),
        problems=tuple(problems),
    )


def _round(runs: Path, number: int) -> None:
    """Questions and tools about a finished run; another run, stopped by its n-th event, resumed and removed."""
    for question in QUESTIONS:
        ask("b00d", question)
    for name, given in (("show", {"run": "b00d"}), ("runs", {}), ("show", {"run": "b00d", "table": "units"})):
        call(name, given)
    config = make_config(**{**QUICK, "seed": number})
    with suppress(AblationStopped):
        runner.start(config, _nobody, runner.agreed, _after(3 + number % 8))
    (made,) = (path for path in runs.glob(f"*{SUFFIX}") if path.stem != "b00d")
    runner.resume(made.stem, _nobody, runner.agreed)
    for part in runs.glob(f"{made.stem}*"):
        part.unlink()


def _nobody(event: Event) -> None:
    """Nobody watches."""


def _after(times: int) -> Callable[[], bool]:
    """A stop flag that is up after so many looks at it."""
    left = iter(range(times))
    return lambda: next(left, None) is None
