"""Columns of a run's own table that have few values, so that each can be told apart and named."""

from __future__ import annotations

import numpy as np

from mecharule_ops.run.live_run import Run
from mecharule_ops.tasks.rival_families import MOST_VALUES


def few_valued(run: Run) -> dict[str, list[str | int]]:
    """The columns of the prompt with 2 to `MOST_VALUES` distinct values, texts or whole numbers.

    None of a task that has words of its own for what its columns hold, or that conceals them.
    """
    task = run.task
    if getattr(task, "rival_families", None) is not None or task.concealed:
        return {}
    own = task.prompt_columns - task.solution_columns
    plain = {
        name: np.unique(values).tolist()
        for name, values in run.observed.columns.items()
        if name in own and values.dtype.kind in "iU"
    }
    return {name: values for name, values in plain.items() if 2 <= len(values) <= MOST_VALUES}
