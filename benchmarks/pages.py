"""What pages of figures share: marks around what a command writes, tables beside the page, what made the numbers.

`python benchmarks/pages.py PAGE` writes commit and class of machine into a page that another command has just made.
"""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from mecharule_ops.pages.as_text import csv_of

Row = TypeVar("Row")
ROOT = Path(__file__).parents[1]
TABLES = ROOT / "docs" / "tables"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
MADE = "Made at commit "
TRAINED = (
    "arith-tiny was trained to write sparsely, on 80 % of the problems asked: its figures tell of the program, not of "
    "models ([penalty.md](penalty.md))."
)
"""Stands on every page of figures of the bundled model."""


def put_between(page: Path, text: str, begin: str = BEGIN, end: str = END) -> None:
    """Replace what stands between the marks. Raises `ValueError` where the page lacks one."""
    before, mark, rest = page.read_text(encoding="utf-8").partition(begin)
    _, closing, after = rest.partition(end)
    if not (mark and closing):
        raise ValueError(f"expected {begin} and {end} in {page.name}")
    page.write_text(f"{before}{begin}\n{text.rstrip()}\n{end}{after}", encoding="utf-8")


def put_table(name: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write `docs/tables/NAME.csv`; returns the link to it that a page in docs/ has. Every column has its own name."""
    assert len({*header}) == len(header), f"expected distinct columns of {name}, got {', '.join(header)}"
    TABLES.mkdir(exist_ok=True)
    (TABLES / f"{name}.csv").write_text(csv_of(header, rows), encoding="utf-8")
    return f"[tables/{name}.csv](tables/{name}.csv)"


def markdown(header: Sequence[str], rows: Iterable[Sequence[object]], *, right: bool = True) -> list[str]:
    """The lines of a Markdown table; all columns but the first stand on the right, or none does."""
    rule = "|---" + ("|---:" if right else "|---") * (len(header) - 1) + "|"
    head, *lines = (f"| {' | '.join(map(str, row))} |" for row in (header, *rows))
    return [head, rule, *lines]


def printed(value: object) -> str:
    """A cell of a CSV: four significant digits; empty for what is not there."""
    if value is None or value != value:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def kept_rows(file: Path, cls: type[Row]) -> list[Row]:
    """The dataclasses that a file holds as JSON; none where there is no file."""
    return [cls(**row) for row in json.loads(file.read_text(encoding="utf-8"))] if file.exists() else []


def keep_rows(file: Path, rows: Sequence[Any]) -> None:
    """Write dataclasses as JSON."""
    file.write_text(
        json.dumps(list(map(asdict, rows)), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def put_rows(name: str, rows: Sequence[Any], *but: str) -> str:
    """Write dataclasses as `docs/tables/NAME.csv`, without the fields named last; returns the link to it."""
    header = tuple(name for name in asdict(rows[0]) if name not in but)
    return put_table(name, header, [tuple(str(getattr(row, each)) for each in header) for row in rows])


def made_at() -> str:
    """`Made at commit abc1234 on 2 cores of an AMD EPYC, no GPU.`; a plus marks uncommitted changes to code."""
    git = ["git", "-C", str(ROOT)]
    head = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    code = [*git, "status", "--porcelain", "--", "*.py"]
    changed = subprocess.run(code, capture_output=True, text=True, check=True).stdout
    return f"{MADE}{head.stdout.strip()}{'+' if changed else ''} on {os.cpu_count()} cores of an {processor()}, no GPU."


def processor() -> str:
    """The processor's name without the machine's, and whether it has AVX-512: two of one name may differ in speed."""
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8") if info.exists() else ""
    named = (line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name"))
    return f"{next(named, platform.machine())} with{'' if 'avx512f' in text else 'out'} AVX-512"


def stamp(page: Path) -> None:
    """Put `made_at` under the page's title, in the place of an earlier one."""
    title, _, rest = page.read_text(encoding="utf-8").partition("\n\n")
    if rest.startswith(MADE):
        rest = rest.partition("\n\n")[2]
    page.write_text(f"{title}\n\n{made_at()}\n\n{rest}", encoding="utf-8")


if __name__ == "__main__":
    for named in sys.argv[1:]:
        stamp(Path(named))
