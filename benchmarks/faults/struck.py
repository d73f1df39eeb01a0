"""Commands of `mecharule` in forked children that are killed, or whose disk fails, at a counted moment.

A parent process loads everything once and forks a child for each command, so that a hundred attempts cost a hundred
runs and not a hundred imports. It preloads `shim.c`, which counts the system calls by which a child writes under its
folder of runs and strikes at one of them. Every group × example that reaches the engine is written down before it is
stored, so that what a killed attempt had paid is known too. Needs Linux and a C compiler. Run as a script this is the
parent; `Mecharule` is its client.
"""

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
HUNG_AFTER = 300.0


class Mode(IntEnum):
    """What happens at the counted call; the numbers are those of `shim.c`."""

    COUNT = 0
    """Nothing: calls are counted."""
    KILL = 1
    """The process is killed before it."""
    TORN = 2
    """The process is killed when half of a write is done."""
    FULL = 3
    """It and every later write fails as on a full disk."""
    SYNC = 4
    """It and every later sync fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When a command is struck; by default never."""

    mode: Mode = Mode.COUNT
    at: int = 1 << 40
    """The number of the call."""
    seconds: float = HUNG_AFTER
    """Killed so long after it began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What became of a command."""

    code: int
    """Its exit code, or minus the signal that ended it."""
    err: str
    seconds: float
    calls: int
    """Calls of its moment's mode; 0 for a killed command."""
    paid: list[int]
    """Group × example cells of each engine call, the last of a killed command perhaps not stored."""

    @property
    def said(self) -> str:
        """The last line on stderr."""
        return (self.err.strip().splitlines() or [""])[-1]


class Mecharule:
    """The command line, whose commands can be struck."""

    def __init__(self, folder: Path) -> None:
        self.spoilt = ""
        """Python code that a child executes before its command, to break the product on purpose."""
        library, source = folder / "shim.so", Path(__file__).with_name("shim.c")
        subprocess.run(["cc", "-O2", "-fPIC", "-shared", "-o", library, source, "-ldl"], check=True)
        path = os.pathsep.join([str(ROOT), *sys.path])
        settings = {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "LD_PRELOAD": str(library)}
        self._folder = folder
        self._parent = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.faults.struck"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **settings},
            cwd=ROOT,
        )

    def close(self) -> None:
        """End the parent."""
        self._parent.communicate()

    def attempt(self, runs: Path, command: Sequence[str], moment: Moment) -> Attempt:
        """A command over a folder of runs, struck at a moment."""
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        asked = {"runs": str(runs), "command": command, "spoilt": self.spoilt, "folder": str(self._folder)}
        self._parent.stdin.write(json.dumps({**asked, **asdict(moment)}) + "\n")
        self._parent.stdin.flush()
        return Attempt(**json.loads(self._parent.stdout.readline()))


# --- the parent ------------------------------------------------------------------------------------------


def _attempted(asked: dict[str, Any]) -> dict[str, Any]:
    """Fork, strike the child at its moment, and take in what it left."""
    folder = Path(asked["folder"])
    err, paid, calls = files = [folder / name for name in ("err", "paid", "calls")]
    for file in files:
        file.write_text("")
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        _child(asked, *(os.open(file, os.O_WRONLY | os.O_APPEND) for file in files))
    ending = os.pidfd_open(child)
    if not select.select([ending], [], [], asked["seconds"])[0]:
        os.kill(child, signal.SIGKILL)
    os.close(ending)
    return {
        "code": os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]),
        "err": err.read_text(errors="replace"),
        "seconds": time.monotonic() - began,
        "calls": int(calls.read_text() or 0),
        "paid": [int(cells) for cells in paid.read_text().split()],
    }


def _child(asked: dict[str, Any], err: int, paid: int, calls: int) -> None:
    """The command, in the forked child; never returns."""
    from mecharule_ops.store.stored_engine import StoredEngine

    keep, code = StoredEngine._keep, 1

    def audited(self: StoredEngine, keys: Any, ids: Any, found: Any) -> None:
        os.write(paid, f"{found.labels.size}\n".encode())
        keep(self, keys, ids, found)

    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(err, 2)
        os.environ["MECHARULE_RUNS"] = asked["runs"]
        StoredEngine._keep = audited  # type: ignore[method-assign]
        exec(asked["spoilt"], {})
        shim = ctypes.CDLL(None)
        shim.faults_seen.restype = ctypes.c_long
        shim.faults_arm(os.fsencode(asked["runs"]), asked["mode"], ctypes.c_long(asked["at"]))
        import app

        try:
            code = app.main(asked["command"])
        except SystemExit as ended:
            code = int(ended.code or 0)
        os.write(calls, str(shim.faults_seen()).encode())
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _main() -> None:
    import shap  # noqa: F401
    import xgboost  # noqa: F401

    import app  # noqa: F401
    import mecharule_ops.engine.ablation
    import mecharule_ops.loading.model_names
    import mecharule_ops.run.analyse  # noqa: F401
    from agent import hypotheses  # noqa: F401
    from agent.verbs import runner  # noqa: F401
    from tools import registry  # noqa: F401

    for line in sys.stdin:
        print(json.dumps(_attempted(json.loads(line))), flush=True)


if __name__ == "__main__":
    _main()
