"""Commands of `mecharule` in forked children that can be killed or starved, one at a time.

The parent loads everything once and forks a child for each command, so that a hundred attempts cost a hundred runs and
not a hundred imports. Every group × example that reaches the engine is written down before it is evaluated, so that
what a killed attempt had paid is known too. Run as a script it is the parent; `Forge` is its client.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
HUNG_AFTER = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When a command is struck; the first that comes. Nothing set: never."""

    event: tuple[str, int] | None = None
    """Killed once it told so many events of a kind; only with `--output jsonl`."""
    seconds: float | None = None
    """Killed so long after it began."""
    mode: int = 0
    """As `shim.Mode`, at the call of number `at`."""
    at: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What became of a command."""

    code: int
    """Its exit code, or minus the signal that ended it."""
    out: str
    err: str
    seconds: float
    calls: int
    """Writes under the folder of runs that the shim counted; 0 for a killed command."""
    paid: tuple[int, ...]
    """Group × example cells of each engine call, the last of a killed command perhaps not finished."""
    hung: bool

    @property
    def killed(self) -> bool:
        """Whether a kill ended it."""
        return self.code == -signal.SIGKILL

    @property
    def said(self) -> str:
        """The last line on stderr."""
        return (self.err.strip().splitlines() or [""])[-1]


class Forge:
    """A running parent; `forge` opens one."""

    def __init__(self, library: Path | None) -> None:
        from .shim import preloaded

        path = os.pathsep.join([str(ROOT), str(ROOT / "tests" / "support")])
        environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **preloaded(library)}
        self.shim = library is not None
        self._child = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.faults.forge"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=ROOT,
        )

    def attempt(self, runs: Path, arguments: Sequence[str], moment: Moment | None = None) -> Attempt:
        """A command over a folder of runs, perhaps struck."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        asked = {
            "runs": str(runs),
            "arguments": list(arguments),
            "moment": asdict(moment or Moment()),
            "shim": self.shim,
        }
        self._child.stdin.write(json.dumps(asked) + "\n")
        self._child.stdin.flush()
        answer = self._child.stdout.readline()
        assert answer, "the forge ended"
        return Attempt(**{**(told := json.loads(answer)), "paid": tuple(told["paid"])})

    def close(self) -> None:
        """End the parent."""
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait(timeout=30)


@contextmanager
def forge(library: Path | None = None) -> Iterator[Forge]:
    """A forge for the block."""
    made = Forge(library)
    try:
        yield made
    finally:
        made.close()


# --- the parent ------------------------------------------------------------------------------------------


def _child(asked: Mapping[str, Any], out: int, err: int, audit: int, counted: int) -> None:
    """The command, in the forked child; never returns."""
    code = 1
    try:
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.environ["MECHARULE_RUNS"] = asked["runs"]
        _audited(audit)
        moment = asked["moment"]
        if asked["shim"]:
            from . import shim

            shim.arm(asked["runs"], shim.Mode(moment["mode"]), moment["at"])
        import app

        try:
            code = app.main(asked["arguments"])
        except SystemExit as ended:
            code = int(ended.code or 0)
        if asked["shim"]:
            os.write(counted, str(shim.seen()).encode())
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _audited(audit: int) -> None:
    from mecharule_ops.engine.group_questions import Answer, GroupQuestion
    from mecharule_ops.store.stored_engine import StoredEngine

    keep = StoredEngine._keep

    def audited(self: StoredEngine, question: GroupQuestion, answer: Answer) -> None:
        os.write(audit, f"{answer.labels.size}\n".encode())
        keep(self, question, answer)

    StoredEngine._keep = audited  # type: ignore[method-assign]


def _attempted(asked: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Fork, read what the child prints, strike it at its moment, and take in what it left."""
    files = [
        os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_TRUNC) for name in ("err", "audit", "calls")
    ]
    reader, writer = os.pipe()
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _child(asked, writer, *files)
    os.close(writer)
    printed, hung = _listened(child, reader, asked["moment"], began)
    os.close(reader)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    err, audit, calls = (os.pread(file, 1 << 26, 0).decode() for file in files)
    for file in files:
        os.close(file)
    return {
        "code": code,
        "out": printed.decode(errors="replace"),
        "err": err,
        "seconds": time.monotonic() - began,
        "calls": int(calls or 0),
        "paid": [int(cells) for cells in audit.split()],
        "hung": hung,
    }


def _listened(child: int, reader: int, moment: Mapping[str, Any], began: float) -> tuple[bytes, bool]:
    """All that a child prints until it ends or is killed, and whether it hung."""
    printed, told = bytearray(), 0
    kind, wanted = moment["event"] or ("", -1)
    ends = began + (HUNG_AFTER if moment["seconds"] is None else moment["seconds"])
    while True:
        ready, _, _ = select.select([reader], [], [], max(0.0, ends - time.monotonic()))
        if not ready:
            os.kill(child, signal.SIGKILL)
            return bytes(printed), moment["seconds"] is None
        piece = os.read(reader, 1 << 16)
        if not piece:
            return bytes(printed), False
        printed += piece
        if wanted > 0:
            told = sum(
                json.loads(line)["kind"] == kind for line in printed.splitlines(True) if line[-1:] == b"\n"
            )
            if told >= wanted:
                os.kill(child, signal.SIGKILL)
                wanted = -1


def _main() -> None:
    import shap  # noqa: F401
    import xgboost  # noqa: F401

    import app  # noqa: F401
    import mecharule_ops.engine.ablation
    import mecharule_ops.loading.model_names
    import mecharule_ops.run.analyse  # noqa: F401
    from agent.verbs import runner  # noqa: F401
    from tools import registry  # noqa: F401

    answers = os.fdopen(os.dup(1), "w")
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            answers.write(json.dumps(_attempted(json.loads(line), Path(folder))) + "\n")
            answers.flush()


if __name__ == "__main__":
    _main()
