"""Certificates of what a repair did on its test records: one of those that were wrong before, one of those right.

Their rows are the records on which a gate acted, each with the units that are ablated on it; on the others nothing
changes. A certificate shows what the ablations do, not where the gates fire: the rules are in its claim.
"""

from __future__ import annotations

from collections.abc import Sequence

from mecharule_ops.certificates.certificate import Certificate, Completion, ExampleRow
from mecharule_ops.pipeline.certify import certified
from mecharule_ops.pipeline.repair_material import Material
from mecharule_ops.pipeline.repair_testing import Tested
from mecharule_ops.repair.gates import Gate, units_of
from mecharule_ops.types import Regime


def certify_repair(
    found: Material, tested: Tested, gates: Sequence[Gate], regime: Regime
) -> tuple[Certificate, ...]:
    """The certificates, without one that would have no rows. Cost: a completion a row is already there."""
    task = found.run.task
    rows: dict[bool, list[ExampleRow]] = {}
    for place, ablated in enumerate(tested.acts):
        if not ablated:
            continue
        record, tokens = found.records[found.test[place]], tested.completions[place]
        text = found.run.subject.decode(tokens)
        after = Completion(
            tokens=tokens,
            text=text,
            label=task.label(record.example, text),
            margin=tested.margins[place],
        )
        before = Completion(
            tokens=record.tokens, text=record.completion, label=record.label, margin=record.margin
        )
        rows.setdefault(record.label, []).append(
            ExampleRow(
                example=record.example.id,
                prompt=record.example.prompt,
                slice="test",
                unit="+".join(map(str, ablated)),
                before=before,
                after=after,
            )
        )
    units = units_of(gates)
    made = []
    for label in (bool(regime.value), not regime.value):
        if label in rows:
            some = tuple(rows[label])
            flips = sum(row.flipped for row in some)
            words = found.run.task.words
            claim = (
                f"gates of {', '.join(map(str, units))} act on {len(some)} test records that were "
                f"{words.of(label)}; {flips} of them become {words.of(not label)}"
            )
            made.append(
                certified(
                    found.run,
                    found.intervention,
                    units,
                    some,
                    regime=Regime(int(label)),
                    kind="repair",
                    claim=claim,
                )
            )
    return tuple(made)
