"""The rules table: a row a localized unit with its rule, sortable, filterable, and written as CSV or Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import astuple, dataclass

from mecharule_ops.plain_text import plain
from mecharule_ops.state.run_state import RunState
from tui.units import strongest
from tui.words import arrow, rate, signed_rate

HEADER = ("unit", "flips", "E", "MCC", "rule", "reads", "Sel", "UCB", "MCC all")
"""Column titles: `MCC` is the held-out score (HQ-T), `MCC all` the descriptive one (HQ-F)."""
STRENGTH = HEADER.index("E")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRow:
    """One localized unit."""

    unit: str
    regime: int
    strength: float
    held_out: float | None
    rule: str
    reads: str
    """`prompt`, `output`, or empty without a rule."""
    selectivity: float
    ucb: float
    full: float | None

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as printed, in the order of `HEADER`."""
        return (
            self.unit,
            arrow(self.regime),
            rate(self.strength),
            rate(self.held_out),
            self.rule or "none predicts",
            self.reads,
            signed_rate(self.selectivity),
            rate(self.ucb),
            rate(self.full),
        )


def rule_rows(state: RunState) -> tuple[RuleRow, ...]:
    """Every localized unit, strongest first."""
    rows = []
    for agonist in strongest(state):
        learned = state.rules.get((agonist.regime, agonist.neuron))
        rule = learned if learned and learned.predicts else None
        rows.append(
            RuleRow(
                unit=plain(agonist.neuron),
                regime=agonist.regime,
                strength=agonist.strength,
                ucb=agonist.ucb,
                selectivity=agonist.signed_selectivity,
                held_out=learned.held_out_mcc if learned else None,
                full=learned.full_mcc if learned else None,
                reads="" if rule is None else "prompt" if rule.prompt_only else "output",
                rule=plain(rule.rule) if rule else "",
            )
        )
    return tuple(rows)


def arranged(rows: Sequence[RuleRow], column: int, text: str) -> list[RuleRow]:
    """The rows that contain a text, by one column: numbers from the largest, words from A; blanks last."""
    wanted = text.casefold()
    kept = [row for row in rows if wanted in " ".join(row.cells).casefold()]
    return sorted(kept, key=lambda row: _order(astuple(row)[column]))


def _order(value: str | float | None) -> tuple[bool, float, str]:
    if value is None or value == "":
        return True, 0.0, ""
    return (False, 0.0, value) if isinstance(value, str) else (False, -value, "")


def as_csv(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The table as CSV; a cell that a spreadsheet would run as a formula is quoted by an apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([[_harmless(cell) for cell in row] for row in rows])
    return out.getvalue()


def _harmless(cell: str) -> str:
    is_number = cell.replace(".", "", 1).lstrip("+-").isdigit()
    return f"'{cell}" if cell[:1] in {"=", "+", "-", "@"} and not is_number else cell


def as_markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The table as Markdown; the cells are code, so that nothing in them is markup."""
    lines = [_markdown_row(header), _markdown_row(["---"] * len(header))]
    return "\n".join([*lines, *(_markdown_row([_code(cell) for cell in row]) for row in rows)]) + "\n"


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _code(cell: str) -> str:
    fence = "`" * (max((len(run) for run in _ticks(cell)), default=0) + 1)
    space = " " if cell.startswith("`") or cell.endswith("`") else ""
    return f"{fence}{space}{cell.replace('|', chr(92) + '|')}{space}{fence}" if cell else ""


def _ticks(cell: str) -> list[str]:
    return "".join(char if char == "`" else " " for char in cell).split()
