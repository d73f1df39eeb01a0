"""What a unit's flips might go with, before anything is measured: named families of predicates over the prompt.

A task has its own as `rival_families`; any other task's are made from its columns. A family is one idea ("a carry",
"the size of the numbers"), which its best predicate on train records speaks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from mecharule_ops.tasks.base import Task
from mecharule_ops.types import Columns

MOST_VALUES = 12
"""Distinct values of a column up to which each is a predicate of its own."""
CUTS = (0.25, 0.5, 0.75)
"""Quantiles at which a column of numbers, or the length of a text, is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RivalFamily:
    """One idea of what flips go with."""

    name: str
    """`a carry`: what a person calls it."""
    words: tuple[str, ...]
    """Words of a question that mean it."""
    predicates: tuple[str, ...]


def families_of(task: Task, columns: Columns) -> tuple[RivalFamily, ...]:
    """The task's own families, else one a prompt column, one of equal columns, and one of the prompt's length."""
    own: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] | None = getattr(task, "rival_families", None)
    if own is None:
        return tuple(_of_columns(task, columns))
    return tuple(
        RivalFamily(name=name, words=words, predicates=texts) for name, (words, texts) in own.items()
    )


def _of_columns(task: Task, columns: Columns) -> Iterator[RivalFamily]:
    plain = [name for name in columns if name in task.prompt_columns and name != "prompt"]
    for name in plain:
        if texts := tuple(_of_column(name, columns[name])):
            yield RivalFamily(name=f"the column {name}", words=(name,), predicates=texts)
    kinds = {name: columns[name].dtype.kind for name in plain if name not in task.solution_columns}
    alike = [
        f"{first} == {second}"
        for first, second in combinations(kinds, 2)
        if kinds[first] == kinds[second] and kinds[first] in "iU"
    ]
    if alike:
        yield RivalFamily(name="two columns that are equal", words=("equal", "same"), predicates=tuple(alike))
    if "prompt" in columns and (cuts := _cuts(np.strings.str_len(columns["prompt"]))):
        texts = tuple(f"length(prompt) >= {cut}" for cut in cuts)
        yield RivalFamily(name="the prompt's length", words=("length", "long", "short"), predicates=texts)


def _of_column(name: str, values: np.ndarray) -> Iterator[str]:
    distinct = np.unique(values)
    if values.dtype.kind == "b":
        yield name
        return
    if values.dtype.kind in "iU" and 2 <= len(distinct) <= MOST_VALUES:
        yield from (f"{name} == {value!r}" for value in distinct.tolist())
    if values.dtype.kind in "if":
        yield from (f"{name} >= {cut}" for cut in _cuts(values))
    elif len(distinct) > MOST_VALUES:
        yield from (f"length({name}) >= {cut}" for cut in _cuts(np.strings.str_len(values)))


def _cuts(values: np.ndarray) -> list[int | float]:
    """Distinct quantiles that leave records on both sides."""
    cuts = np.unique(np.quantile(values, CUTS, method="higher"))
    return [cut for cut in cuts.tolist() if values.min() < cut]
