"""Records, vocabulary and refusals as a model is shown them: a row a line under the columns' names, long texts cut."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from jaxtyping import Bool

from mecharule_ops.predicates.table import PredicateTable
from mecharule_ops.types import Columns

_LONGEST = 300
_MOST_REFUSALS = 12
_MOST_KNOWN = 24
"""Predicates of the vocabulary that are shown with their scores."""
_MOST_VALUES = 8
"""Values of a category that are named."""
_NOTHING = "(none)"


def pairs(columns: Columns, positions: Iterable[tuple[int, int]], left: str, right: str) -> str:
    """Pairs of records, two rows each, the first marked `left` and the second `right`."""
    rows = [
        f"{mark}: {_row(columns, position)}"
        for pair in positions
        for mark, position in zip((left, right), pair, strict=True)
    ]
    return listed([f"({' | '.join(columns)})", *rows] if rows else [])


def nearest(
    columns: Columns, of: Iterable[int], among: Bool[np.ndarray, " record"], names: Iterable[str]
) -> list[tuple[int, int]]:
    """Each record beside the one `among` others that it differs least from in the named columns; the first on a tie.

    A number differs by its distance in standard deviations, at most 1, anything else by 1 where it is not equal.
    """
    others = np.flatnonzero(among)
    if not len(others):
        return []
    return [
        (position, int(others[np.argmin(_distances(columns, position, others, names))])) for position in of
    ]


def _distances(columns: Columns, position: int, others: np.ndarray, names: Iterable[str]) -> np.ndarray:
    total = np.zeros(len(others))
    for name in names:
        column = columns[name]
        if column.dtype.kind in "if":
            spread = float(np.std(column.astype(np.float64))) or 1.0
            apart = np.abs(column[others].astype(np.float64) - float(column[position])) / spread
            total += np.minimum(apart, 1.0)
        else:
            total += column[others] != column[position]
    return total


def _row(columns: Columns, position: int) -> str:
    values = (_short(column[position].item()) for column in columns.values())
    return " | ".join(json.dumps(value, ensure_ascii=False) for value in values)


def listed(lines: Iterable[str]) -> str:
    """A line each, or that there is none."""
    return "\n".join(lines) or _NOTHING


def contrast(
    target: Bool[np.ndarray, " record"], allowed: Bool[np.ndarray, " record"], count: int, seed: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Positions of `count` true and `count` false records among those allowed, drawn without repetition."""
    generator = np.random.default_rng(list(seed))
    drawn = []
    for wanted in (True, False):
        positions = np.flatnonzero((target == wanted) & allowed)
        drawn.append(sorted(generator.permutation(positions)[:count].tolist()))
    return drawn[0], drawn[1]


def vocabulary(table: PredicateTable) -> str:
    """The predicates that tell most, each with its AUC, and how many more there are."""
    scored = list(zip(table.predicates, table.scores, strict=True))
    best = sorted(scored, key=lambda pair: -abs(pair[1].auc - 0.5))[:_MOST_KNOWN]
    lines = [f"{predicate.text}  (AUC {score.auc:.3f})" for predicate, score in best]
    if len(scored) > len(best):
        lines.append(f"and {len(scored) - len(best)} that tell less")
    return listed(lines)


def refusals(refused: Sequence[Mapping[str, str]]) -> str:
    """The latest refusals with their reasons."""
    rows = [f"{json.dumps(_short(row['text']), ensure_ascii=False)}: {row['reason']}" for row in refused]
    return listed(rows[-_MOST_REFUSALS:])


def columns(
    schema: Mapping[str, type],
    prompt_columns: frozenset[str],
    meanings: Mapping[str, str] | None = None,
    data: Columns | None = None,
) -> str:
    """Each column with its type, what it holds where the task says so, the values of `data`, and when it is known."""
    lines = []
    for name, kind in schema.items():
        meaning = (meanings or {}).get(name)
        told = "known before generation" if name in prompt_columns else "read off the output"
        parts = [kind.__name__, meaning, None if data is None else _range(data[name]), told]
        lines.append(f"{name}: {', '.join(part for part in parts if part)}")
    return "\n".join(lines)


def _range(column: np.ndarray) -> str:
    """The ends of numbers, or the values of a category; empty for other texts."""
    if column.dtype.kind in "if" and len(column):
        return f"from {column.min():g} to {column.max():g}"
    values = np.unique(column)
    if column.dtype.kind == "b" or len(values) > _MOST_VALUES:
        return ""
    return "one of " + " ".join(json.dumps(_short(str(value)), ensure_ascii=False) for value in values)


def _short(value: object) -> object:
    if isinstance(value, str) and len(value) > _LONGEST:
        return value[: _LONGEST - 1] + "…"
    return value
