"""Real Ray actors on the loopback: a run with two workers is the run of one process, also when one is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bundled_run import QUICK, finish, new_run, opened
from outcome_audit import cells

from mecharule_ops.engine.group_questions import GroupQuestion
from mecharule_ops.errors import AblationStopped, ModelUnavailable, UsageError
from mecharule_ops.types import Basis, Neuron
from mecharule_ops.workers import on_ray
from mecharule_ops.workers.on_ray import LEAST, MOST, SHARES, Wanted, WorkerFailed, Workers, cut

pytest.importorskip("ray")


@pytest.mark.parametrize("seed", range(20))
def test_parts_hold_every_pair_of_a_wave_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    wave = [
        GroupQuestion(
            groups=tuple((Neuron(Basis.MLP_OUT, layer, channel),) for channel in range(rng.integers(0, 90))),
            examples=tuple(range(100, 100 + rng.integers(0, 90))),
        )
        for layer in range(rng.integers(1, 5))
    ]
    workers = int(rng.integers(1, 70))
    parts = list(cut(wave, workers))
    asked = Counter(
        (part.place, row, column, group, example)
        for part in parts
        for row, group in zip(part.rows, part.question.groups, strict=True)
        for column, example in zip(part.columns, part.question.examples, strict=True)
    )
    assert asked == Counter(
        (place, row, column, group, example)
        for place, one in enumerate(wave)
        for row, group in enumerate(one.groups)
        for column, example in enumerate(one.examples)
    )
    share = -(-sum(one.pairs for one in wave) // (workers * SHARES))
    assert all(part.question.pairs <= min(MOST, max(LEAST, share)) for part in parts)


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    """Two workers, shared by the runs of this module."""
    made = on_ray.started(2, processors=2)
    yield made
    made.close()


def same_run(one: Path, other: Path) -> bool:
    """Findings, certificates and the stored outcome of every group on every example; margins may differ in rounding."""
    with opened(one, read_only=True) as first, opened(other, read_only=True) as second:
        return (
            replace(first.findings, run="", stages=()) == replace(second.findings, run="", stages=())
            and {each.id for each in first.store.certificates()}
            == {each.id for each in second.store.certificates()}
            and cells(other) == cells(one)
        )


@pytest.mark.parametrize("killed", [False, True], ids=["two workers", "one is killed in a wave"])
def test_a_run_with_two_workers_is_the_run_of_one_process(
    killed: bool, workers: Workers, quick_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when one is killed while it holds a part: Ray starts it again and asks again."""
    import ray

    path, parts, gone = tmp_path / "two.mecharule", on_ray.cut, []

    def killing(*wave: Any) -> Any:
        for part in parts(*wave):
            yield part
            if killed and not gone:
                gone.append(ray.get(workers._actors[0].__ray_call__.remote(lambda self: os.getpid())))
                os.kill(gone[0], signal.SIGKILL)

    monkeypatch.setattr(on_ray, "cut", killing)
    with new_run(path, QUICK) as run:
        run.workers = workers
        finish(run)
    assert bool(gone) == killed
    assert same_run(path, quick_run)
    assert ray.nodes()[0]["NodeManagerAddress"] == "127.0.0.1"


def test_a_worker_with_other_weights_refuses_with_its_own_exit_code(
    workers: Workers, quick_run: Path
) -> None:
    """What it answered would be stored under the run's own."""
    with opened(quick_run, read_only=True) as run:
        assignment = run._assignment(run.intervention(run.config.bases[0]), None)
    other = replace(assignment, model_hash="0" * 16, slope=0.5)
    with pytest.raises(WorkerFailed, match="a worker found others under this name") as caught:
        workers.assigned(other)
    assert caught.value.exit_code == 3


@pytest.mark.slow
def test_a_question_that_takes_every_worker_with_it_is_given_up(
    workers: Workers, quick_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Poisoned:
        def __init__(self, threads: int) -> None:
            """Has nothing to load."""

        def take(self, assignment: object) -> None:
            """Holds none."""

        def answer(self, key: str, assignment: object, part: object) -> None:
            os._exit(1)

    monkeypatch.setattr("mecharule_ops.workers.replica.Replica", Poisoned)
    other = Workers(count=1, threads=0, ours=False)
    with opened(quick_run, read_only=True) as run:
        asked = other.assigned(run._assignment(run.intervention(run.config.bases[0]), None))
    with pytest.raises(WorkerFailed, match="4 of them were lost over the same question"):
        list(asked.answers([GroupQuestion(groups=((Neuron(Basis.ATTN_HEAD, 0, 0),),), examples=(0,))]))
    with pytest.raises(ModelUnavailable, match="expected 9 GPUs for 3 workers, Ray has 0; start fewer"):
        Workers(count=3, threads=0, ours=False)._hired(3)


def test_a_command_that_is_interrupted_leaves_no_process(tmp_path: Path) -> None:
    """^C while workers are at work: exit code 130, and no process of Ray is left that it started."""
    short = tempfile.mkdtemp()
    environment = {**os.environ, "MECHARULE_RUNS": str(tmp_path), "TMPDIR": short}
    command = [sys.executable, "app.py", "run", "arithmetic", "-m", "arith-tiny", "--workers", "1", "--yes"]
    flags = [
        "--display",
        "none",
        "--output",
        "jsonl",
        "--records",
        "200",
        "--regime",
        "1",
        "--set",
        "slice_size=24",
    ]
    with subprocess.Popen(
        [*command, *flags],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        start_new_session=True,
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if '"node_asked"' in line:
                break
        assert of_folder(tmp_path)
        os.killpg(child.pid, signal.SIGINT)
        _, said = child.communicate(timeout=200)
    assert child.returncode == 130, said
    ends = time.monotonic() + 20
    while of_folder(tmp_path) and time.monotonic() < ends:
        time.sleep(0.1)
    assert of_folder(tmp_path) == []
    assert list(Path(short).glob("mecharule-*")) == []


def of_folder(folder: Path) -> list[int]:
    """Processes in whose command line or environment the folder stands, this one aside."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            text = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
            running = "\nState:\tZ" not in (process / "status").read_text()
        except OSError:
            continue
        if str(folder).encode() in text and running and int(process.name) != os.getpid():
            found.append(int(process.name))
    return found


def test_what_cannot_be_started_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="expected 1 or more workers, got 0"):
        on_ray.started(0)
    monkeypatch.setattr(on_ray, "find_spec", lambda name: None)
    with pytest.raises(ModelUnavailable, match=r"pip install 'mecharule\[ray\]'") as caught:
        Wanted(workers=2).check()
    assert caught.value.exit_code == 3


def test_a_stop_ends_the_workers_of_a_wave(workers: Workers, quick_run: Path) -> None:
    """The last test of the module: what was started for the workers is gone afterwards."""
    import ray

    with opened(quick_run, read_only=True) as run:
        assignment = run._assignment(run.intervention(run.config.bases[0]), None)
    for _ in range(2):
        with pytest.raises(AblationStopped):
            workers.assigned(assignment, should_stop=lambda: True)
    assert not ray.is_initialized()
