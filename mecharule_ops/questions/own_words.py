"""Columns of a run's own table that have few values, and the conditions that a person may mean by their words."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from mecharule_ops.run.live_run import Run
from mecharule_ops.tasks.text import TextTask

MOST_VALUES = 12


def few_valued(run: Run) -> dict[str, list[str | int]]:
    """The columns of the prompt with 2 to `MOST_VALUES` distinct values, texts or whole numbers.

    None of a task that has words of its own for what its columns hold, or that conceals them.
    """
    task = run.task
    if not isinstance(task, TextTask) or task.concealed:
        return {}
    own = task.prompt_columns - task.solution_columns
    plain = {
        name: np.unique(values).tolist()
        for name, values in run.observed.columns.items()
        if name in own and values.dtype.kind in "iU"
    }
    return {name: values for name, values in plain.items() if 2 <= len(values) <= MOST_VALUES}


def worded_conditions(run: Run) -> list[str]:
    """Predicates that are known by their words: the task's own, single values, equal columns, the prompt's length."""
    few = few_valued(run)
    return [
        *run.task.account_predicates(),
        *(f"{name} == {value!r}" for name, values in few.items() for value in values),
        *(f"{x} == {y}" for x, y in combinations(few, 2) if type(few[x][0]) is type(few[y][0])),
        *(["length(prompt) >= 2"] if "prompt" in run.columns else []),
    ]
