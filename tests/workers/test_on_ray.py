"""Real Ray actors on the loopback: a run with two workers is the run of one process, also when one is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bundled_run import QUICK, finish, new_run, opened
from outcome_audit import cells

from mecharule_ops.engine.group_questions import GroupQuestion, InTurn
from mecharule_ops.errors import AblationStopped, ModelUnavailable, UsageError
from mecharule_ops.types import Neuron
from mecharule_ops.workers import on_ray
from mecharule_ops.workers.assignment import Failed, WorkerShare
from mecharule_ops.workers.pool import Workers
from mecharule_ops.workers.replica import Replica

pytest.importorskip("ray")


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    """Two workers, shared by the runs of this module."""
    made = Workers(crew=on_ray.started(2, processors=2))
    yield made
    made.close()


def same_run(one: Path, other: Path) -> bool:
    """Findings, certificates and the stored outcome of every group on every example; margins may differ in rounding.

    Workers that a wave left idle were asked ahead, so `one` may hold outcomes that the `other` did not need.
    """
    with opened(one, read_only=True) as first, opened(other, read_only=True) as second:
        return (
            replace(first.findings, run="", stages=()) == replace(second.findings, run="", stages=())
            and {each.id for each in first.store.certificates()}
            == {each.id for each in second.store.certificates()}
            and cells(other) <= cells(one)
        )


def test_a_run_with_two_workers_is_the_run_of_one_process(
    workers: Workers, quick_run: Path, tmp_path: Path
) -> None:
    import ray

    path = tmp_path / "two.mecharule"
    with new_run(path, QUICK) as run:
        run.workers = workers
        finish(run)
    assert same_run(path, quick_run)
    assert ray.nodes()[0]["NodeManagerAddress"] == "127.0.0.1"


def test_a_worker_killed_in_a_wave_is_told_once_and_the_run_ends_the_same(
    workers: Workers, quick_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed while it holds a part; the one in its place joins when it is there."""
    import ray

    crew: Any = workers.crew
    answer, killed = crew.answer, []

    def killing(worker: Any, key: str, part: WorkerShare) -> Any:
        ticket = answer(worker, key, part)
        if not killed:
            killed.append(process)
            os.kill(process, signal.SIGKILL)
        return ticket

    path = tmp_path / "killed.mecharule"
    with new_run(path, QUICK) as run:
        run.workers = workers
        first = next(iter(workers._taken), None) or crew.hire(0)
        workers._taken.setdefault(first, set())
        process = ray.get(first.__ray_call__.remote(lambda self: os.getpid()))
        monkeypatch.setattr(crew, "answer", killing)
        _, told = finish(run)
    assert killed
    lost = [event.text for event in told if "worker was lost" in getattr(event, "text", "")]
    assert len(lost) == 1
    assert "its process ended" in lost[0]
    assert same_run(path, quick_run)


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


def test_a_worker_with_other_weights_refuses(quick_run: Path) -> None:
    """What it answered would be stored under the run's own."""
    with opened(quick_run, read_only=True) as run:
        assignment = run._assignment(run.intervention(run.config.bases[0]), None)
    other = replace(assignment, model_hash="0" * 16)
    failed = Replica(1).take(other)
    assert failed is not None
    assert (failed.exit_code, failed.out_of_memory) == (3, False)
    assert "a worker found others under this name" in failed.sentence


def test_memory_that_ran_out_is_given_back_as_a_value(quick_run: Path) -> None:
    """A part may be smaller next time; any other error is none of memory."""

    class Without:
        error: Exception = MemoryError()

        def evaluate(self, groups: object, examples: object) -> Any:
            raise self.error

    replica = Replica(1)
    replica._engines["k"] = Without()
    assert replica.answer("k", [], []) == Failed(out_of_memory=True, sentence="MemoryError: ", exit_code=1)
    Without.error = ValueError("no\nway")
    assert replica.answer("k", [], []) == Failed(out_of_memory=False, sentence="ValueError: no", exit_code=1)


def test_without_ray_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_ray, "find_spec", lambda name: None)
    with pytest.raises(ModelUnavailable, match=r"pip install 'mecharule\[ray\]'") as caught:
        on_ray.started(2)
    assert caught.value.exit_code == 3


def test_no_worker_at_all_is_refused() -> None:
    with pytest.raises(UsageError, match="expected 1 or more workers, got 0"):
        on_ray.started(0)


def test_a_stop_ends_the_workers_of_a_wave(workers: Workers, quick_run: Path) -> None:
    """The last test of the module: what was started for the workers is gone afterwards."""
    import ray

    with opened(quick_run, read_only=True) as run:
        intervention = run.intervention(run.config.bases[0])
        asked = workers.assigned(
            run._assignment(intervention, None),
            alone=lambda: InTurn(run.completer(intervention)),
            should_stop=lambda: True,
        )
        with pytest.raises(AblationStopped):
            list(asked.answers([GroupQuestion(groups=((Neuron(intervention.basis, 0, 0),),), examples=(0,))]))
    assert not ray.is_initialized()


@pytest.mark.parametrize("cards", [0, 1, 3])
def test_a_worker_asks_for_as_many_cards_as_the_model_lies_on(
    cards: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One on the processor asks for none, and one whose model is spread for all of them."""
    asked: list[dict[str, int]] = []

    def remote(**settings: int) -> Any:
        asked.append(settings)
        return lambda replica: SimpleNamespace(remote=lambda threads: replica)

    monkeypatch.setattr("ray.remote", remote)
    on_ray.RayCrew(1, threads=2, folder=None, ours=False).hire(cards)
    assert asked == [{"num_cpus": 2, "num_gpus": cards}]
