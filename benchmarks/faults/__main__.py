"""`python -m benchmarks.faults`: every row, or those of `--only`, several at once; writes `docs/reliability.md`.

Each row is a process of its own, so that its memory and what it listens to are its own. A row's result is kept in
`results.json` beside this file, so that a row that was run alone takes its place in the page. Exit code 1 when a row
found something, or did not end.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "tests" / "support")]

from .page import ROWS, Kept, kept, write  # noqa: E402
from .result import Result, Setting  # noqa: E402

LONGEST_FIRST = ("screen", "soak", "fuzzing", "kills", "disk", "limits", "processes")
"""So that no core is left with one of them at the end."""


def main() -> int:
    """Run what was asked for and write the page."""
    given = _arguments()
    if given.into is not None:
        _one(given)
        return 0
    names = given.only or [*LONGEST_FIRST, *(name for name in ROWS if name not in LONGEST_FIRST)]
    found = 0
    with ThreadPoolExecutor(given.jobs) as pool:
        for row in as_completed([pool.submit(_in_process, name, given) for name in names]):
            name, result = row.result()
            if result is None:
                _tell(f"{name}: it did not end")
                found += 1
                continue
            write({**kept(), name: result})
            for problem in result.problems:
                _tell(f"  found: {problem}")
            _tell(f"{name}: {result.cases:,} cases, {len(result.problems)} found, {result.seconds} s")
            found += len(result.problems)
    return 1 if found else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", metavar="NAME", action="append", choices=list(ROWS), help=", ".join(ROWS))
    parser.add_argument(
        "--scale", type=float, default=1.0, help="share of the usual number of cases (default 1)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--soak-minutes", type=float, default=15.0)
    # Some rows wait more than they compute.
    most = 1 + (os.cpu_count() or 1)
    parser.add_argument(
        "--jobs", type=int, default=most, help="rows at once (default: one more than there are cores)"
    )
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def _in_process(name: str, given: argparse.Namespace) -> tuple[str, Kept | None]:
    """A row's result from a process of its own; None where that came to nothing."""
    with tempfile.TemporaryDirectory(prefix="fault-") as folder:
        into = Path(folder) / "result.json"
        command = [sys.executable, "-m", "benchmarks.faults", "--only", name, "--into", str(into)]
        command += ["--scale", str(given.scale), "--seed", str(given.seed)]
        subprocess.run([*command, "--soak-minutes", str(given.soak_minutes)], cwd=ROOT, check=False)
        if not into.is_file():
            return name, None
        return name, Kept(**json.loads(into.read_text(encoding="utf-8")))


def _one(given: argparse.Namespace) -> None:
    """One row in this process, its result in a file."""
    (name,) = given.only
    began = time.monotonic()
    _tell(f"{name}: {ROWS[name].title}")
    row: Callable[[Setting], Result] = getattr(import_module(f"benchmarks.faults.{name}"), name)
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        result = row(
            Setting(
                folder=Path(folder),
                scale=given.scale,
                seed=given.seed,
                tell=_tell,
                soak_seconds=60 * given.soak_minutes,
            )
        )
    done = Kept.of(result, scale=given.scale, seconds=time.monotonic() - began)
    given.into.write_text(json.dumps(asdict(done)), encoding="utf-8")


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
