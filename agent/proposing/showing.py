"""Records, vocabulary and refusals as a model is shown them: one JSON object a line, long texts cut."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from jaxtyping import Bool

from agent.state import RefusalEntry
from mecharule_ops.predicates.table import PredicateTable
from mecharule_ops.types import Columns

_LONGEST = 300
_MOST_REFUSALS = 12
_MOST_KNOWN = 24
"""Predicates of the vocabulary that are shown with their scores."""
_NOTHING = "(none)"


def records(columns: Columns, positions: Iterable[int]) -> str:
    """The records at these positions, a line each."""
    lines = []
    for position in positions:
        row = {name: _short(column[position].item()) for name, column in columns.items()}
        lines.append(json.dumps(row, ensure_ascii=False))
    return listed(lines)


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


def refusals(refused: Sequence[RefusalEntry]) -> str:
    """The latest refusals with their reasons."""
    rows = [f"{json.dumps(_short(row['text']), ensure_ascii=False)}: {row['reason']}" for row in refused]
    return listed(rows[-_MOST_REFUSALS:])


def columns(
    schema: Mapping[str, type], prompt_columns: frozenset[str], meanings: Mapping[str, str] | None = None
) -> str:
    """Each column with its type, what it holds where the task says so, and when it is known."""
    lines = []
    for name, kind in schema.items():
        meaning = (meanings or {}).get(name)
        told = "known before generation" if name in prompt_columns else "read off the output"
        lines.append(f"{name}: {kind.__name__}, {f'{meaning}, ' if meaning else ''}{told}")
    return "\n".join(lines)


def _short(value: object) -> object:
    if isinstance(value, str) and len(value) > _LONGEST:
        return value[: _LONGEST - 1] + "…"
    return value
