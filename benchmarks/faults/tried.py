"""All cases of one kind of fault, counted, and the table of them."""

import random
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from bundled_run import QUICK, finished

from .durable import Bench, Case, disks, kills, races
from .forged import forged
from .keys import keys

FULL: Mapping[str, int] = {"keys": 20_000, "kills": 90, "disks": 72, "forged": 5_000, "races": 24}
"""Cases of each kind; of forgeries the most, where there are so many."""
Found = Mapping[str, tuple[int, int, list[str]]]
"""By what was done: how often, how often something was found, and what."""


def table(rows: Found) -> str:
    """The page's table; a find is bold."""
    lines = [
        f"| {title} | {tried:,} | {f'**{found:,}**' if found else 'nothing'} |"
        for title, (tried, found, _) in rows.items()
    ]
    return "\n".join(["| what was done | times | found |", "|---|---:|---:|", *lines])


def tried(name: str, count: int, seed: int) -> Found:
    """All cases of one kind; what is found is told at once."""
    rows: dict[str, tuple[int, int, list[str]]] = {}
    with TemporaryDirectory(prefix="faults-") as folder:
        for title, problems in _cases(name, Path(folder), random.Random(seed), count):
            times, found, said = rows.get(title, (0, 0, []))
            rows[title] = times + 1, found + bool(problems), said + problems
            for problem in problems:
                sys.stderr.write(f"found: {title}: {problem}\n")
    sys.stderr.write(f"{name}: {sum(times for times, _, _ in rows.values()):,} tried\n")
    return rows


def _cases(name: str, folder: Path, chance: random.Random, count: int) -> Iterator[Case]:
    if name == "keys":
        yield from keys(folder, chance, count)
        return
    run = finished(folder / "b00d.mecharule", QUICK)
    if name == "forged":
        yield from forged(run, folder, chance, count)
        return
    with Bench(folder, run) as bench:
        yield from {"kills": kills, "disks": disks, "races": races}[name](bench, chance, count)
