"""`python -m benchmarks.faults`: every kind of fault, or those of `--only`; exit code 1 where something was found.

A kind is a process of its own. Only all of them at full scale write `docs/reliability.md`.
"""

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "tests" / "support")]

from pages import made_at, put_between  # noqa: E402

from .tried import FULL, table, tried  # noqa: E402


def main() -> int:
    """Try what was asked for, side by side, and tell or write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", choices=list(FULL), help=", ".join(FULL))
    parser.add_argument("--scale", type=float, default=1.0, help="share of the usual number of cases")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    began, names = time.monotonic(), given.only or list(FULL)
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        jobs = [
            pool.submit(tried, name, max(1, round(FULL[name] * given.scale)), given.seed) for name in names
        ]
        rows = {title: row for job in jobs for title, row in job.result().items()}
    text = table(rows)
    sys.stdout.write(text + "\n")
    if names == list(FULL) and given.scale == 1:
        took = f"{made_at()} `make faults` took {(time.monotonic() - began) / 60:.0f} minutes."
        put_between(ROOT / "docs" / "reliability.md", f"{text}\n\n{took}")
    return int(any(found for _, found, _ in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
