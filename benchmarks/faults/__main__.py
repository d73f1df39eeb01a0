"""`python -m benchmarks.faults`: every row one by one, or those of `--only`; writes `docs/reliability.md`.

A row's result is kept in `results.json` beside this file, so that a row that was run alone takes its place in the
page. Exit code 1 when a row found something.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "tests" / "support")]

from .page import ROWS, Kept, kept, write  # noqa: E402
from .result import Result, Setting  # noqa: E402


def main() -> int:
    """Run what was asked for and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", metavar="NAME", action="append", choices=list(ROWS), help=", ".join(ROWS))
    parser.add_argument(
        "--scale", type=float, default=1.0, help="share of the usual number of cases (default 1)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--soak-minutes", type=float, default=3.0)
    options = parser.parse_args()
    found = 0
    for name in options.only or list(ROWS):
        began = time.monotonic()
        _tell(f"{name}: {ROWS[name].title}")
        with tempfile.TemporaryDirectory(prefix="faults-") as folder:
            row: Callable[[Setting], Result] = getattr(import_module(f"benchmarks.faults.{name}"), name)
            result = row(
                Setting(
                    folder=Path(folder),
                    scale=options.scale,
                    seed=options.seed,
                    tell=_tell,
                    soak_seconds=60 * options.soak_minutes,
                )
            )
        kept_rows: Mapping[str, Kept] = {
            **kept(),
            name: Kept.of(result, scale=options.scale, seconds=time.monotonic() - began),
        }
        write(kept_rows)
        for problem in result.problems:
            _tell(f"  found: {problem}")
        _tell(
            f"{name}: {result.cases:,} cases, {len(result.problems)} found, {time.monotonic() - began:.0f} s"
        )
        found += len(result.problems)
    return 1 if found else 0


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
