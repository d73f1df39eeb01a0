"""A run, its columns, records, vocabulary and refusals as a model is shown them: a line each, long values cut."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from jaxtyping import Int

from mecharule_ops.findings.records import Findings
from mecharule_ops.pages.screen import screen
from mecharule_ops.predicates.table import PredicateTable
from mecharule_ops.run import live_run, opening
from mecharule_ops.types import Columns

_MOST = 5500
"""Characters of a sheet: at most 1,500 tokens."""
_LONGEST, _SHORT = 300, 24
"""Characters of a record's value, and of a column's."""
_MOST_REFUSALS = 12
_MOST_KNOWN = 24
"""Predicates of the vocabulary that are shown with their scores."""
_MOST_VALUES = 8
"""Values of a category that are named."""


def sheet(run: live_run.Run, findings: Findings) -> str:
    """The sheet of a finished run, the same at every question, so that providers cache it.

    A data value stands quoted and is cut short.
    """
    searched = ", ".join(
        f"{opening.short_name(one)} ({one.cost.candidates:,} units, {len(one.tau_agonists)} at τ)"
        for one in findings.searches
    )
    text = (
        f"{screen(findings, ends=False)}\nSearched: {searched}. τ {findings.tau:g}, α {findings.alpha:g}, seed "
        f"{findings.seed}, proposer {findings.proposer}, {len(run.records):,} records.\nColumns for conditions:\n"
    )
    return _cut(text + columns(run.observed.columns, run.task.prompt_columns), _MOST)


def columns(data: Columns, prompt_columns: Collection[str], meanings: Mapping[str, str] | None = None) -> str:
    """Each column with its type, what it holds where the task says so, its values, and when it is known."""
    lines = []
    for name, column in data.items():
        kind = type(column[0].item()).__name__ if len(column) else "unknown"
        known = "known before generation" if name in prompt_columns else "read off the output"
        parts = [kind, (meanings or {}).get(name), _values(column), known]
        lines.append(f"{name}: {', '.join(part for part in parts if part)}")
    return "\n".join(lines)


def _values(column: np.ndarray) -> str:
    """The ends of numbers, the values of a category, one of other texts."""
    values = np.unique(column)
    if column.dtype.kind in "if" and len(values) > _MOST_VALUES:
        return f"from {values[0]:g} to {values[-1]:g}"
    if len(values) > _MOST_VALUES:
        return f"such as {_quoted(str(values[0]), _SHORT)}"
    return f"one of {' '.join(_quoted(value, _SHORT) for value in values.tolist())}"


def rows_in_pairs(
    data: Columns, marks: str, of: Sequence[int], others: Int[np.ndarray, " record"], names: Iterable[str]
) -> str:
    """Each of some records, and the one of the others that it differs least from in the named columns, a row each.

    A number differs by its distance in standard deviations, at most 1, anything else by 1 where it is not equal.
    """
    rows = [f"({' | '.join(data)})"]
    apart = np.zeros((len(of), len(others)))
    for name in names:
        column = data[name].astype(float) if data[name].dtype.kind in "if" else data[name]
        here, there = column[list(of), None], column[others]
        if column.dtype.kind == "f":
            apart += np.minimum(np.abs(here - there) / (float(np.std(column)) or 1.0), 1.0)
        else:
            apart += here != there
    for one, distances in zip(of, apart if len(others) else (), strict=False):
        for mark, place in zip(marks.split("/"), (one, int(others[np.argmin(distances)])), strict=True):
            rows.append(f"{mark}: " + " | ".join(_quoted(column[place].item()) for column in data.values()))
    return _listed(rows if rows[1:] else [])


def vocabulary(table: PredicateTable) -> str:
    """The predicates that tell most, each with its AUC, and how many more there are."""
    scored = sorted(
        zip(table.predicates, table.scores, strict=True), key=lambda pair: -abs(pair[1].auc - 0.5)
    )
    lines = [f"{predicate.text}  (AUC {score.auc:.3f})" for predicate, score in scored[:_MOST_KNOWN]]
    rest = len(scored) - len(lines)
    return _listed([*lines, *([f"and {rest} that tell less"] if rest else [])])


def refusals(refused: Sequence[Mapping[str, str]]) -> str:
    """The latest refusals with their reasons."""
    return _listed(f"{_quoted(row['text'])}: {row['reason']}" for row in refused[-_MOST_REFUSALS:])


def _listed(lines: Iterable[str]) -> str:
    return "\n".join(lines) or "(none)"


def _quoted(value: object, longest: int = _LONGEST) -> str:
    return json.dumps(_cut(value, longest) if isinstance(value, str) else value, ensure_ascii=False)


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
