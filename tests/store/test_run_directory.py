"""Which run a name means."""

from __future__ import annotations

import os
from pathlib import Path

from mecharule_ops.events import RunFinished
from mecharule_ops.store.run_directory import find_run, run_path
from mecharule_ops.store.run_store import RunStore


def test_last_is_the_newest_finished_run_and_to_resume_the_newest_that_is_not(tmp_path: Path) -> None:
    for name, finished in (("aaaa", True), ("bbbb", False), ("cccc", True), ("dddd", False)):
        with RunStore.create(run_path(name, tmp_path), {"run": name}) as store:
            if finished:
                store.append([RunFinished(run=name, status="done")])
        os.utime(run_path(name, tmp_path), (len(name), ord(name[0])))
    assert find_run("last", tmp_path).stem == "cccc"
    assert find_run("last", tmp_path, to_resume=True).stem == "dddd"
    run_path("dddd", tmp_path).unlink()
    run_path("bbbb", tmp_path).unlink()
    assert find_run("last", tmp_path, to_resume=True).stem == "cccc"
