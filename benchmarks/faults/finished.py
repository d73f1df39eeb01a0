"""Finished runs of the bundled model, made by the library itself, for faults that start from one."""

from __future__ import annotations

from pathlib import Path

from bundled_run import QUICK, finished

from mecharule_ops.store.run_directory import SUFFIX


def finished_file(folder: Path, name: str = "b00d", **settings: object) -> Path:
    """The file of a run in a folder of its own, made where it is not there yet; read it, copy it, never write it."""
    path = folder / f"run {name}" / f"{name}{SUFFIX}"
    path.parent.mkdir(exist_ok=True)
    return path if path.exists() else finished(path, {**QUICK, **settings})
