"""Records of a run with what a unit does to them: prompt, answer, answer without the unit, lead."""

from __future__ import annotations

from dataclasses import dataclass

from mecharule_ops.pages.document import Table, column
from mecharule_ops.plain_text import last_line, plain
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import find_certificate
from mecharule_ops.run.tabulating import Part, forwards_missing
from tools._accounts import unit_and_regime
from tools._conditions import records_among
from tools._tables import shown
from tools.arguments import RecordsArguments
from tools.result import Priced, Tell


@dataclass(frozen=True, slots=True)
class RecordRow:
    """One record and what ablating the unit does to it."""

    record: str = column("record", side="r")
    prompt: str = column("prompt")
    answer: str = column("answer")
    without: str | None = column("without the unit")
    """Its answer then; None where no certificate holds it."""
    flips: bool = column("flips")
    lead: float = column("lead")
    """The least of its tokens, in logits."""


def records(run: Run, given: RecordsArguments, tell: Tell) -> Priced:
    """A row a train record of the unit's direction: id, prompt, answer, answer without the unit, whether it flips.

    The answer without the unit stands where a certificate holds it; the lead is the least of its tokens. Texts of a
    task that conceals them are left out. Raises `UsageError` for a condition that does not read. Cost: flips that are
    not stored yet of the records that are looked at.
    """
    unit, regime = unit_and_regime(run, given.unit, given.regime)
    positions = records_among(run, regime, Part.TRAIN, given.where)
    yield forwards_missing(run, (unit,), positions)
    flips = run.flips([(unit,)], positions, regime)[0].tolist()
    certificate = find_certificate(run, (unit,), regime)
    after = {row.example: plain(row.after.text) for row in certificate.rows} if certificate else {}
    rows = []
    for position, flipped in zip(positions.tolist(), flips, strict=True):
        record = run.observed.records[position]
        example = record.example
        texts = last_line(example.prompt), plain(record.completion), after.get(example.id)
        said = ("(concealed)",) * 3 if run.task.concealed else texts
        if given.flips in ("any", "yes" if flipped else "no"):
            rows.append(RecordRow(str(example.id), *said, flips=flipped, lead=record.margin))
    title = f"{len(rows)} of {len(positions)} train records ({regime.arrow}) of run {run.id}"
    if any(row.without is None for row in rows):
        title += f"; –: no certificate holds the answer without {unit} (`mecharule ablate {run.id} {unit}` writes one)"
    return shown(title, Table.of_rows(RecordRow, rows), given, run=run.id)
