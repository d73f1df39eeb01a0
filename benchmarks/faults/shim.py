"""The preloaded shim of `shim.c`: compiled once a folder, armed in a child before its command starts."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Mapping
from enum import IntEnum
from pathlib import Path

SOURCE = Path(__file__).with_name("shim.c")


class Mode(IntEnum):
    """What happens at the armed call; the numbers are those of `shim.c`."""

    COUNT = 0
    """Nothing: calls are counted."""
    KILL = 1
    """The process is killed before it."""
    TORN = 2
    """The process is killed when half of a write is done."""
    FULL = 3
    """It and every later write fails as on a full disk."""
    SYNC = 4
    """It and every later fsync fails."""


def compiled(folder: Path) -> Path | None:
    """The shim as a library in a folder; None on a machine without a C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    library = folder / "shim.so"
    subprocess.run([compiler, "-O2", "-fPIC", "-shared", "-o", library, SOURCE, "-ldl"], check=True)
    return library


def preloaded(library: Path | None) -> Mapping[str, str]:
    """The environment of a process that has the shim."""
    return {} if library is None else {"LD_PRELOAD": str(library)}


def arm(folder: str, mode: Mode, at: int) -> None:
    """From now on the calls of this process under a folder count, and the one of that number is struck."""
    ctypes.CDLL(None).faults_arm(os.fsencode(folder), int(mode), ctypes.c_long(at))


def seen() -> int:
    """Calls of the armed class so far."""
    count = ctypes.CDLL(None).faults_seen
    count.restype = ctypes.c_long
    return int(count())
