"""Runs: their list and how far they are, one made with other settings as a job, one stopped.

No model is named at the top, so that listing loads no numerical package.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from mecharule_ops import errors, events
from mecharule_ops.facts.fact import fact
from mecharule_ops.pages.document import Table
from mecharule_ops.store import run_directory, run_file, run_log
from tools import arguments, result

if TYPE_CHECKING:
    from mecharule_ops.run.live_run import Run

RUNNING = "running"
_JOBS: list[subprocess.Popen[bytes]] = []
"""Those begun by this process and at work when last looked at."""
BEGUN: set[str] = set()
"""The ids of the runs that this process began as jobs: those that a model may stop."""


def runs(given: arguments.RunsArguments, tell: result.Tell) -> result.ToolResult:
    """A row a run, the one that ended last first, with how it ended or how far it is, or why it cannot be read."""
    if given.stop is not None:
        return _stopped(given.stop)
    folder, limit = run_directory.runs_directory(), arguments.TableArguments(limit=given.limit)
    rows = tuple(_row(one) for one in run_directory.list_runs(folder))
    table = Table(header=("run", "when (UTC)", "task", "model", "status"), rows=rows, align="lllll")
    return result.shown(f"runs in {folder}", table, limit, key="runs", folder=str(folder))


def _row(run: run_directory.RunSummary) -> tuple[str, ...]:
    when = "" if run.when is None else datetime.fromtimestamp(run.when, UTC).strftime("%Y-%m-%d %H:%M")
    return (run.id, when, run.task, run.model, how_far(run.path) if run.status == RUNNING else run.status)


def how_far(path: Path) -> str:
    """`running: guided search mlp_out 1→0, 186 of at most 317 tests, 6 localized so far`."""
    with run_log.RunLog.read(path) as log:
        stage, price = log.latest(events.StageStarted), log.latest(events.Price)
        kinds = [type(event) for _, _, event in log.events()]
        begun = max((at for at, kind in enumerate(kinds) if kind is events.RunStarted), default=0)
        told = Counter(kinds[begun:])  # What a resumed run had is told again.
    most = f" of at most {price.evaluations:,}" if price else ""
    tested = f"{told[events.NodeTested]:,}{most} tests, {told[events.AgonistFound]:,} localized so far"
    return f"{RUNNING}: {stage.stage}, {tested}" if stage else f"{RUNNING}: at its beginning"


def _stopped(name: str) -> result.ToolResult:
    """The process that makes a run hears ^C; the run keeps what it has. Raises `UsageError` where there is none."""
    path = run_directory.find_run(name, run_directory.runs_directory())
    run = next(one for one in run_directory.list_runs(path.parent) if one.path == path)
    process = run_file.holder(path) if run.status == RUNNING else None
    if process is None or process == os.getpid():
        where = run.status if process is None else "made by this very program, which stops it by ^C"
        raise errors.UsageError(f"expected a run that another process makes, {run.id} is {where}")
    os.kill(process, signal.SIGINT)
    said = f"Run {run.id} is told to stop; it keeps what it found, `mecharule resume {run.id}` goes on"
    return result.of_facts([fact(said, f"run:{run.id}", key="runs.stopped", value=run.id)])


def run(run: Run, given: arguments.RunArguments, tell: result.Tell) -> result.Priced:
    """The id of a run with other settings than this one's, which a process of its own makes.

    Cost: what its searches ask at most, though what this run has asked is not asked again.
    """
    from mecharule_ops.config import RunConfig, make_config
    from mecharule_ops.run.outlook import outlook

    if given.task and re.search(r"\.py:\w+$", given.task):
        raise errors.UsageError("expected a task's name or a table; a person starts what runs a file's code")
    same = given.model_dump(include={*RunConfig.model_fields} - {"task"}, exclude_none=True)
    settings: dict[str, object] = {**run.config.model_dump(mode="json"), **same}
    if given.task not in (None, run.config.task):
        settings |= {"task": given.task, "task_settings": {}}
    if given.basis is not None:
        settings["bases"] = given.basis.split(",")
    if given.regime is not None:
        settings["regimes"] = [1, 0] if given.regime == "both" else [int(given.regime)]
    yield sum(search.most.example_forwards for search in outlook(make_config(**settings)).searches)
    words = [given.task, f"--from={run.store.path}", *(f"--set={name}={one}" for name, one in same.items())]
    words += [f"--{name}={one}" for name in ("basis", "regime") if (one := getattr(given, name))]
    started = start_job(["run", *filter(None, words)])
    said = f"Run {started} is at work; `mecharule runs` says how far it is, `mecharule runs --stop {started}` ends it"
    return result.of_facts([fact(said, f"run:{started}", key="run.begun", value=started)])


def start_job(words: Sequence[str]) -> str:
    """The id of the run that a new process makes by this command line, which goes on when this process ends.

    Raises `UsageError` where it does not begin.
    """
    _JOBS[:] = [job for job in _JOBS if job.poll() is None]
    command = [sys.executable, str(Path(__file__).parents[1] / "app.py"), *words]
    command += ["--yes", "--output", "jsonl", "--display", "none"]
    nothing = subprocess.DEVNULL
    with tempfile.TemporaryFile() as told:
        job = subprocess.Popen(command, stdin=nothing, stdout=told, stderr=nothing, start_new_session=True)
        _JOBS.append(job)
        has_ended = False
        while not (first := _first(os.pread(told.fileno(), 1 << 16, 0))) and not has_ended:
            time.sleep(0.05)
            has_ended = job.poll() is not None
    if "run" not in first:
        raise errors.UsageError(first.get("error") or f"the run did not begin, exit code {job.returncode}")
    BEGUN.add(first["run"])
    return first["run"]


def _first(told: bytes) -> dict[str, str]:
    """Of the lines of a run the first that names it, or says why there is none."""
    return next((one for one in map(json.loads, told.split(b"\n")[:-1]) if one.keys() & {"run", "error"}), {})
