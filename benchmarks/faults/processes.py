"""Two processes on one run, and twenty readers beside a writer."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mecharule_ops.errors import MechaRuleError
from mecharule_ops.store.run_store import RunStore

from .forge import Attempt, Forge, forge
from .kills import QUIET, files, outcome_of, prepared, verbs
from .result import Figure, Result, Setting

FULL = 12
READERS = 20
ROOT = Path(__file__).parents[2]


def processes(setting: Setting) -> Result:
    """Pairs of resumes begun at once, then writers with readers beside them."""
    problems: list[str] = []
    with forge() as one, forge() as other, ThreadPoolExecutor(2) as pool:
        prepared(one, setting.folder)
        expected = _alone(one, setting.folder)
        refused = 0
        for case in range(setting.count(FULL)):
            runs = _halfway(setting.folder)
            attempts = [pool.submit(made.attempt, runs, ("resume", "b00d", *QUIET)) for made in (one, other)]
            pair = [attempt.result() for attempt in attempts]
            refused += sum(done.code == 1 for done in pair)
            problems += [f"pair {case + 1}: {said}" for said in _wrong_pair(pair, runs, expected)]
        setting.tell(f"processes: {setting.count(FULL)} pairs, {len(problems)} wrong")
        reads = []
        for case in range(setting.count(3)):
            told, wrong = _beside_a_writer(one, setting.folder)
            reads += told
            problems += [f"readers {case + 1}: {said}" for said in wrong]
    return Result(
        tried=f"{setting.count(FULL)} times two processes resume one run at once; {setting.count(3)} times {READERS} "
        "processes read a run over and over while another makes it",
        cases=2 * setting.count(FULL) + READERS * setting.count(3),
        figures=(
            Figure(what="refused by one line because the other process holds the run", value=str(refused)),
            Figure(
                what="whole readings beside a writer",
                value=f"{sum(reads):,}, at least {min(reads):,} a reader",
            ),
        ),
        problems=tuple(problems),
    )


def _halfway(folder: Path) -> Path:
    runs = folder / "runs"
    shutil.rmtree(runs, ignore_errors=True)
    return Path(shutil.copytree(folder / "halfway", runs))


def _alone(made: Forge, folder: Path) -> object:
    runs = _halfway(folder)
    assert made.attempt(runs, ("resume", "b00d", *QUIET)).code == 0
    return outcome_of(runs)


def _wrong_pair(pair: list[Attempt], runs: Path, expected: object) -> list[str]:
    """One goes on; the other is refused by a line, or comes after it."""
    problems = []
    for done in pair:
        held = done.code == 1 and "holds it" in done.said and "Traceback" not in done.err
        if done.hung or not (done.code == 0 or held):
            problems.append(f"exit code {done.code}: {done.said}")
    if not any(done.code == 0 for done in pair):
        problems.append("neither went on")
    elif outcome_of(runs) != expected:
        problems.append("other findings than alone")
    return problems


def _beside_a_writer(made: Forge, folder: Path) -> tuple[list[int], list[str]]:
    """How often each reader read, and what was wrong; the writer is left to its end."""
    runs, stop = folder / "runs", folder / "stop"
    shutil.rmtree(runs, ignore_errors=True)
    stop.unlink(missing_ok=True)
    runs.mkdir()
    command = [sys.executable, "-m", "benchmarks.faults.processes", str(runs), str(stop)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    readers = [
        subprocess.Popen(
            [*command, str(number)],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(READERS)
    ]
    for reader in readers:
        assert reader.stdout is not None
        reader.stdout.readline()
    done = made.attempt(runs, verbs(folder)[0].command)
    stop.touch()
    reads, problems = list[int](), list[str]()
    for reader in readers:
        out, err = reader.communicate(timeout=120)
        told: dict[str, Any] = json.loads(out) if out else {"reads": 0, "wrong": [err.strip()[-300:]]}
        reads.append(told["reads"])
        problems += told["wrong"]
    if done.code != 0:
        problems.append(f"the writer ended with {done.code}: {done.said}")
    return reads, problems


def _read(runs: Path, stop: Path, chance: random.Random) -> dict[str, object]:
    """Read whatever run there is, over and over; what was once there must stay as it was."""
    reads, wrong, before = 0, list[str](), list[str]()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while not stop.exists() or not reads:
        for path in files(runs):
            try:
                with RunStore.open(path, read_only=True) as store:
                    events = [repr(event) for _, _, event in store.events()]
                    names = store.names()
                    for name in chance.sample(names, min(3, len(names))):
                        store.get(name)  # type: ignore[arg-type]
            except MechaRuleError as error:
                wrong.append(str(error))
            else:
                reads += 1
                if events[: len(before)] != before:
                    wrong.append("events that were read before have changed")
                before = events
        if len(wrong) > 5:
            break
    return {"reads": reads, "wrong": wrong}


if __name__ == "__main__":
    found = _read(Path(sys.argv[1]), Path(sys.argv[2]), random.Random(int(sys.argv[3])))
    sys.stdout.write(json.dumps(found) + "\n")
