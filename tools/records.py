"""Records of a run with what a unit does to them: prompt, answer, answer without the unit, lead."""

from __future__ import annotations

import numpy as np

from mecharule_ops.pages.document import Table
from mecharule_ops.plain_text import last_line, plain
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import check_unit, find_certificate, regime_for
from mecharule_ops.run.tabulating import Part, drawn, fires, forwards_missing
from mecharule_ops.types import Neuron
from tools._conditions import condition_of
from tools._tables import shown
from tools.arguments import RecordsArguments
from tools.result import Tell, ToolResult


def records_price(run: Run, given: RecordsArguments) -> int:
    """Flips that are not stored yet of the records that are looked at."""
    unit = Neuron.parse(given.unit)
    check_unit(run, unit)
    return forwards_missing(run, (unit,), _positions(run, given, unit))


def records(run: Run, given: RecordsArguments, tell: Tell) -> ToolResult:
    """A row a train record of the unit's direction: id, prompt, answer, answer without the unit, whether it flips.

    The answer without the unit stands where a certificate holds it; the lead is the least of its tokens. Texts of a
    task that conceals them are left out. Raises `UsageError` for a condition that does not read.
    """
    unit, regime = Neuron.parse(given.unit), regime_for(run, Neuron.parse(given.unit), given.regime)
    positions = _positions(run, given, unit)
    flips = run.flips([(unit,)], positions, regime)[0]
    wanted = {"yes": flips, "no": ~flips, "any": np.ones(len(flips), bool)}[given.flips]
    certificate = find_certificate(run, (unit,), regime)
    after = {row.example: row.after.text for row in certificate.rows} if certificate else {}
    rows = []
    for position, flipped in zip(positions[wanted].tolist(), flips[wanted].tolist(), strict=True):
        record = run.observed.records[position]
        hidden = run.task.concealed
        said = after.get(record.example.id)
        rows.append(
            (
                str(record.example.id),
                "(concealed)" if hidden else last_line(record.example.prompt),
                "(concealed)" if hidden else plain(record.completion),
                "(concealed)" if hidden else "–" if said is None else plain(said),
                "yes" if flipped else "no",
                f"{record.margin:.2f}",
            )
        )
    header = ("record", "prompt", "answer", f"without {unit}", "flips", "lead")
    title = f"{len(rows)} of {len(positions)} train records ({regime.arrow}) of run {run.id}"
    if any(row[3] == "–" for row in rows):
        title += f"; –: no certificate holds the answer without {unit} (`mecharule ablate {run.id} {unit}` writes one)"
    return shown(title, Table(header=header, rows=tuple(rows), align="rlllcr", notes=()), given, run=run.id)


def _positions(run: Run, given: RecordsArguments, unit: Neuron) -> np.ndarray:
    positions = drawn(run, regime_for(run, unit, given.regime), Part.TRAIN)
    return (
        positions if given.where is None else positions[fires(run, condition_of(run, given.where))[positions]]
    )
