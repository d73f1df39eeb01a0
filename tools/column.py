"""A column of one's own: an expression over the records, or a label of each; kept in the run, with whose it is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np

from mecharule_ops.errors import UsageError
from mecharule_ops.facts.fact import fact
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.tabulating import columns_of, keep_column
from mecharule_ops.store.keys import OwnColumn
from tools.arguments import ColumnArguments
from tools.result import Priced, Tell, of_facts

SHOWN = 8


def column(run: Run, given: ColumnArguments, tell: Tell) -> Priced:
    """What it holds; every condition of this run may name it from now on.

    Raises `UsageError` for a name that is taken, an expression that does not read, labels of no record of the run.
    """
    if not re.fullmatch(r"[a-z_][a-z0-9_]*", given.name) or given.name in run.observed.columns:
        raise UsageError(
            f"expected a name of small letters that no column of the task has, got {given.name!r}"
        )
    if (given.expression is None) == (given.labels is None):
        raise UsageError("expected --expression or --labels, one of them")
    labels = None if given.labels is None else _labels(run, given.labels)
    yield 0
    own = OwnColumn(name=given.name, by=given.by, expression=given.expression or "", labels=labels)
    keep_column(run, own)
    values = columns_of(run)[given.name]
    distinct, counts = np.unique(values, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    held = {str(distinct[place]): int(counts[place]) for place in order}
    told = ", ".join(f"{value} ({count})" for value, count in list(held.items())[:SHOWN])
    rest = f" and {len(held) - SHOWN} more values" if len(held) > SHOWN else ""
    made = f"by labels of {len(labels or {})} records"
    made = f"by the expression {given.expression}" if given.expression else made
    said = f"Column {given.name} of {given.by}, {made}, on {len(values)} records: {told}{rest}"
    value = {"by": given.by, "expression": given.expression, "records": len(values), "values": held}
    return of_facts([fact(said, f"run:{run.id}", key=f"column.{given.name}", value=value)])


def _labels(run: Run, said: str) -> dict[str, str | int | float | bool]:
    """`{record id: label}`, as JSON or from a file of it; all of one type, text, number or truth."""
    try:
        read = json.loads(said if said.lstrip().startswith("{") else Path(said).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        told = "expected labels as JSON {record id: label} or a file of it, got none"
        raise UsageError(f"{told}: {error}") from error
    if not isinstance(read, dict) or not read:
        raise UsageError("expected labels {record id: label}, got none")
    known = {str(record.example.id) for record in run.observed.records}
    if unknown := [id for id in read if id not in known]:
        told = "expected ids of the run's records, as `mecharule records` shows them"
        raise UsageError(f"{told}; got {unknown[0]!r}")
    kinds = {type(value) for value in read.values()}
    if not (kinds <= {str} or kinds <= {bool} or kinds <= {int, float}):
        raise UsageError("expected labels of one type: texts, numbers, or true and false")
    return read
