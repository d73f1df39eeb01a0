"""Which run a name means."""

import os
from pathlib import Path

from mecharule_ops.events import Notice, RunFinished
from mecharule_ops.store.run_directory import find_run, list_runs, run_path
from mecharule_ops.store.run_store import RunStore


def _run(folder: Path, name: str, *, finished: float | None, written: float) -> None:
    """A run that finished, or did not, at a unix time and was written to last at another."""
    with RunStore.create(run_path(name, folder), {"run": name}, clock=lambda: finished or written) as store:
        if finished is not None:
            store.append([RunFinished(run=name, status="done")])
    os.utime(run_path(name, folder), (written, written))


def test_last_is_the_run_that_finished_last_and_to_resume_the_newest_that_did_not(tmp_path: Path) -> None:
    _run(tmp_path, "aaaa", finished=10.0, written=40.0)
    _run(tmp_path, "bbbb", finished=None, written=15.0)
    _run(tmp_path, "cccc", finished=20.0, written=20.0)
    _run(tmp_path, "dddd", finished=None, written=50.0)
    assert find_run("last", tmp_path).stem == "cccc"
    assert find_run("last", tmp_path, to_resume=True).stem == "dddd"
    with RunStore.open(run_path("dddd", tmp_path)):  # It is under way.
        assert find_run("last", tmp_path, to_resume=True).stem == "bbbb"
    run_path("dddd", tmp_path).unlink()
    run_path("bbbb", tmp_path).unlink()
    assert find_run("last", tmp_path, to_resume=True).stem == "aaaa"


def test_the_list_is_in_the_order_of_the_times_that_it_shows(tmp_path: Path) -> None:
    """By when a run ended, of an unfinished one by its last event, whatever wrote to the file since."""
    _run(tmp_path, "aaaa", finished=10.0, written=40.0)
    _run(tmp_path, "bbbb", finished=30.0, written=30.0)
    clock = iter((5.0, 20.0))
    with RunStore.create(run_path("cccc", tmp_path), {"run": "cccc"}, clock=lambda: next(clock)) as store:
        store.append([Notice(level="info", text="at work")])
    run_path("dddd", tmp_path).write_bytes(b"rubbish")
    # As one that goes while the folder is read.
    run_path("eeee", tmp_path).symlink_to(tmp_path / "taken away")
    told = [(run.id, run.when) for run in list_runs(tmp_path)]
    assert told == [("bbbb", 30.0), ("cccc", 20.0), ("aaaa", 10.0), ("dddd", None)]
