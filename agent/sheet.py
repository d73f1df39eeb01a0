"""What a model is told of a run before the question: the run's own screen and its columns, at most 1,500 tokens."""

from __future__ import annotations

import numpy as np

from mecharule_ops.findings.records import Findings
from mecharule_ops.pages.screen import screen
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import short_name

MOST = 5500
"""Characters."""
_VALUES = 8
"""Values of a column that are listed."""


def sheet(run: Run, findings: Findings) -> str:
    """The sheet of a finished run, the same at every question, so that providers cache it.

    A data value stands quoted and is cut short.
    """
    searched = ", ".join(
        f"{short_name(one)} ({one.cost.candidates:,} units, {len(one.tau_agonists)} at τ)"
        for one in findings.searches
    )
    head = [
        screen(findings).partition("\n\nAsk")[0].strip(),
        f"Searched: {searched}. τ {findings.tau:g}, α {findings.alpha:g}, seed {findings.seed}, "
        f"proposer {findings.proposer}, {len(run.records):,} records.",
        "Columns for conditions: " + "; ".join(columns(run)),
    ]
    text = "\n".join(head)
    return text if len(text) <= MOST else f"{text[: MOST - 1]}…"


def columns(run: Run) -> list[str]:
    """Each column with its type and range, or its values where they are few."""
    told = []
    for name, values in run.observed.columns.items():
        kinds = np.unique(values)
        if kinds.dtype.kind in "iuf" and len(kinds) > _VALUES:
            told.append(f"{name} (number, {kinds[0]} to {kinds[-1]})")
        elif len(kinds) <= _VALUES:
            told.append(f"{name} ({', '.join(repr(_cut(str(each))) for each in kinds)})")
        else:
            told.append(f"{name} (text, such as {_cut(str(kinds[0]))!r})")
    return told


def _cut(text: str, most: int = 24) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
