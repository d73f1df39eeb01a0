"""How long a person waits for a command, beside an earlier checkout: both in turn, so that the machine is the same.

    python benchmarks/command_times.py RUN_FILE [--before CHECKOUT ITS_RUN_FILE] [--times 7]

A RUN_FILE is a finished run of the bundled model, each made by its own checkout. A line a command: median seconds of
processor time and by the clock, and the ratio to the earlier checkout's.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from pages import ROOT

COMMANDS = (("--help",), ("runs",), ("show", "last"), ("ask", "last", "why does the strongest neuron flip?"))


def waited(checkout: Path, command: tuple[str, ...], runs: Path) -> tuple[float, float]:
    """(processor seconds, seconds by the clock) of one command. Raises `CalledProcessError` when it fails."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "MECHARULE_RUNS": str(runs)}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(
        [sys.executable, str(checkout / "app.py"), *command],
        check=True,
        capture_output=True,
        env=environment,
        cwd=runs,
    )
    took, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, took


def main() -> None:
    """A line a command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("--before", type=Path, nargs=2)
    parser.add_argument("--times", type=int, default=7)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sides = []
        for name, (checkout, run) in enumerate(
            [(ROOT, given.run), *([given.before] if given.before else [])]
        ):
            runs = Path(folder) / str(name)
            runs.mkdir()
            shutil.copy(run, runs)
            sides.append((checkout.resolve(), runs))
        for command in COMMANDS:
            taken = [
                [waited(checkout, command, runs) for checkout, runs in sides] for _ in range(given.times + 1)
            ]
            now, *earlier = (_medians(side) for side in zip(*taken[1:], strict=True))
            beside = "".join(f"  {now[0] / each[0]:.2f} of the earlier processor time" for each in earlier)
            print(f"{' '.join(command):50} {now[0]:.2f} s of processor, {now[1]:.2f} s{beside}", flush=True)


def _medians(times: Sequence[tuple[float, float]]) -> tuple[float, float]:
    processor, clock = zip(*times, strict=True)
    return statistics.median(processor), statistics.median(clock)


if __name__ == "__main__":
    main()
