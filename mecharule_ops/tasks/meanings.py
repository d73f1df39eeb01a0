"""What a task's columns hold, in a few words each, for whoever reads a predicate without knowing the task."""

from __future__ import annotations

from collections.abc import Mapping

from mecharule_ops.tasks.base import Task

EVERY_TASK: Mapping[str, str] = {
    "prompt": "the question as the model reads it",
    "completion": "what the model writes",
}
"""Columns that every bundled task has."""


def meanings_of(task: Task) -> Mapping[str, str]:
    """By column; a task adds its own under `column_meanings`, and a column that is not there speaks for itself."""
    return {**EVERY_TASK, **getattr(task, "column_meanings", {})}
