"""A column of one's own: an expression over the records, or a label of each; kept in the run, with whose it is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np

from mecharule_ops.errors import UsageError
from mecharule_ops.facts.fact import FactValue, fact
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.tabulating import columns_of, keep_column
from mecharule_ops.store.keys import OwnColumn
from tools.arguments import ColumnArguments
from tools.result import Tell, ToolResult, of_facts

SHOWN = 8


def column(run: Run, given: ColumnArguments, tell: Tell) -> ToolResult:
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
    keep_column(
        run, OwnColumn(name=given.name, by=given.by, expression=given.expression or "", labels=labels)
    )
    values = columns_of(run)[given.name]
    distinct, counts = np.unique(values, return_counts=True)
    many = [int(place) for place in np.argsort(-counts, kind="stable")]
    told = ", ".join(f"{distinct[place]} ({counts[place]})" for place in many[:SHOWN])
    rest = f" and {len(many) - SHOWN} more values" if len(many) > SHOWN else ""
    made = (
        f"by the expression {given.expression}"
        if given.expression
        else f"by labels of {len(labels or {})} records"
    )
    held: dict[str, FactValue] = {str(distinct[place]): int(counts[place]) for place in many}
    return of_facts(
        [
            fact(
                f"Column {given.name} of {given.by}, {made}, on {len(values)} records: {told}{rest}",
                f"run:{run.id}",
                key=f"column.{given.name}",
                value={
                    "by": given.by,
                    "expression": given.expression,
                    "records": len(values),
                    "values": held,
                },
            )
        ]
    )


def _labels(run: Run, said: str) -> dict[str, str | int | float | bool]:
    """`{record id: label}`, as JSON or from a file of it; all of one type, text, number or truth."""
    try:
        read = json.loads(said if said.lstrip().startswith("{") else Path(said).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"expected labels as JSON {{record id: label}} or a file of it, got none: {error}"
        ) from error
    if not isinstance(read, dict) or not read:
        raise UsageError("expected labels {record id: label}, got none")
    known = {str(record.example.id) for record in run.observed.records}
    if unknown := [id for id in read if id not in known]:
        raise UsageError(
            f"expected ids of the run's records, as `mecharule records` shows them; got {unknown[0]!r}"
        )
    kinds = {type(value) for value in read.values()}
    if not (kinds <= {str} or kinds <= {bool} or kinds <= {int, float}):
        raise UsageError("expected labels of one type: texts, numbers, or true and false")
    return read
