"""Tasks and their presets by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from mecharule_ops.errors import UsageError
from mecharule_ops.tasks.arithmetic import Arithmetic

_TASKS: Mapping[str, type[Arithmetic]] = {"arithmetic": Arithmetic}

FOUR_SUMS = "1 + 1 = 2\n3 + 4 = 7\n12 + 5 = 17\n30 + 41 = 71\n"
"""The four-shot prefix with which SmolLM2-135M adds (28 % right on 0–99)."""
SIX_MIXED = "2 + 3 = 5\n9 - 4 = 5\n3 * 4 = 12\n8 / 2 = 4\n6 + 7 = 13\n7 - 2 = 5\n"
"""A six-shot prefix that shows every operator."""

_PAPER: Mapping[str, Any] = {"operators": ("+", "-", "*", "/"), "low": 0, "high": 299}
_PRESETS: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("arithmetic", "paper"): _PAPER,
    ("arithmetic", "qwen2-7b"): _PAPER,
    ("arithmetic", "qwen2-1.5b"): _PAPER,
    ("arithmetic", "gpt-j-6b"): _PAPER,
    ("arithmetic", "smollm2-135m"): {"operators": ("+",), "low": 0, "high": 99, "prefix": FOUR_SUMS},
    ("arithmetic", "arith-tiny"): {"operators": ("+", "-"), "low": 0, "high": 299},
    ("arithmetic", "mixed"): {**_PAPER, "high": 9, "prefix": SIX_MIXED},
}


def task_names() -> tuple[str, ...]:
    """Every task, by the word on the command line."""
    return tuple(_TASKS)


def preset_names(task: str) -> tuple[str, ...]:
    """The models and other names for which a task has settings."""
    return tuple(name for of_task, name in _PRESETS if of_task == task)


def make_task(name: str, **settings: Any) -> Arithmetic:
    """The task of this name; settings left out keep the task's defaults.

    Raises `UsageError` for an unknown task or setting, or a setting that the task refuses.
    """
    if name not in _TASKS:
        raise UsageError(f"expected a task of: {', '.join(_TASKS)}; got {name!r}")
    known = {field.name for field in fields(_TASKS[name])} - {"name"}
    if unknown := sorted(set(settings) - known):
        raise UsageError(f"expected settings of: {', '.join(sorted(known))}; got {', '.join(unknown)}")
    return _TASKS[name](**settings)


def preset(task: str, model_name: str, **settings: Any) -> Arithmetic:
    """The task with the settings that suit a model, and `settings` on top. Raises `UsageError` likewise."""
    if task not in _TASKS:
        return make_task(task)
    if (task, model_name) not in _PRESETS:
        known = ", ".join(preset_names(task))
        raise UsageError(f"expected a preset of {task}: {known}; got {model_name!r}")
    return make_task(task, **{**_PRESETS[task, model_name], **settings})
