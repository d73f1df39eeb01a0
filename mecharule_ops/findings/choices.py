"""Where the paper's text leaves a choice, or its published code differs from it: what this tool does."""

from __future__ import annotations

import tomllib
from importlib.resources import files

from mecharule_ops.findings.records import NamedChoice

_ROWS = tomllib.loads(files(__package__).joinpath("choices.toml").read_text(encoding="utf-8"))["choices"]


def choices_for(task: str) -> tuple[NamedChoice, ...]:
    """The choices that a run of this task makes, in the order of the pipeline's influence on the numbers."""
    return tuple(
        NamedChoice(setting=row["setting"], sentence=row["sentence"])
        for row in _ROWS
        if row.get("task", task) == task
    )
