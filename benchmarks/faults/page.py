"""The page of faults: what was tried, how often, measured and found, from the last run of each row."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from .result import Result

ROOT = Path(__file__).parents[2]
PAGE, RESULTS = ROOT / "docs" / "reliability.md", Path(__file__).with_name("results.json")
MOST_PROBLEMS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What a row is called and what it must come to."""

    title: str
    goal: str


ROWS: Mapping[str, Row] = {
    "kills": Row(
        title="kill −9 of run, resume, fork, refine, gates",
        goal="same findings, no stored ablation repeated, no lock left",
    ),
    "disk": Row(title="a full disk and failing syncs", goal="one line, resumable"),
    "damaged_files": Row(
        title="damaged run files",
        goal="a clear refusal or what was written; never another number, never a traceback",
    ),
    "processes": Row(
        title="two processes on one run, 20 readers beside a writer", goal="no corruption, no deadlock"
    ),
    "fuzzing": Row(title="invented texts", goal="0 escapes, 0 hangs over 1 s, 0 tracebacks"),
    "limits": Row(title="regexes on long texts, expressions at their limits", goal="time and memory bounded"),
    "certificates": Row(title="forged certificates", goal="100 % detected"),
    "screen": Row(title="random keys in the terminal app", goal="no crash, no key lost, memory flat"),
    "soak": Row(title="asking, searching and resuming in one process", goal="memory and file handles flat"),
}
"""Every row, in the order in which it is run; its module and function have its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A row's result as it lies in `results.json`."""

    tried: str
    cases: int
    figures: list[list[str]]
    problems: list[str]
    not_run: list[str]
    scale: float
    seconds: float
    date: str
    cores: int

    @classmethod
    def of(cls, result: Result, *, scale: float, seconds: float) -> Kept:
        """As of now, on this machine."""
        return cls(
            tried=result.tried,
            cases=result.cases,
            figures=[[figure.what, figure.value] for figure in result.figures],
            problems=list(result.problems),
            not_run=list(result.not_run),
            scale=scale,
            seconds=round(seconds),
            date=datetime.now(UTC).strftime("%Y-%m-%d"),
            cores=os.cpu_count() or 0,
        )


def kept() -> Mapping[str, Kept]:
    """The last result of each row that was ever run."""
    found = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
    return {name: Kept(**row) for name, row in found.items()}


def write(rows: Mapping[str, Kept]) -> None:
    """Keep the results and renew the page between its marks."""
    from pages import put_between

    ordered = {name: asdict(rows[name]) for name in ROWS if name in rows}
    RESULTS.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    put_between(PAGE, text_of(rows))


def text_of(rows: Mapping[str, Kept]) -> str:
    """A table of all rows, then each row with its figures."""
    table = ["| what | goal | cases | found now | took |", "|---|---|---|---|---|"]
    table += [_line(name, row, rows.get(name)) for name, row in ROWS.items()]
    sections = [_section(name, rows[name]) for name in ROWS if name in rows]
    return "\n".join(["", *table, "", *sections])


def _line(name: str, row: Row, had: Kept | None) -> str:
    if had is None:
        return f"| [{row.title}](#{name}) | {row.goal} | not run | | |"
    found = "nothing" if not had.problems else f"**{len(had.problems):,}**"
    return f"| [{row.title}](#{name}) | {row.goal} | {had.cases:,} | {found} | {_time(had.seconds)} |"


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _section(name: str, had: Kept) -> str:
    scale = "" if had.scale == 1 else f", scale {had.scale:g}"
    lines = [
        f'<a id="{name}"></a>',
        f"### {ROWS[name].title}",
        "",
        f"{had.tried}. `python -m benchmarks.faults --only {name}`{scale}, {had.date}, {had.cores} cores.",
        "",
        *(f"- {what}: {value}" for what, value in had.figures),
        *(f"- not run: {line}" for line in had.not_run),
        *(f"- **found:** {problem}" for problem in had.problems[:MOST_PROBLEMS]),
    ]
    return "\n".join([*lines, ""])
