"""Certificates of how a unit's flips come about: with others held at their clean values, and together with others.

What the counts of their rows say is computed from the rows alone (`findings.chain_counts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.findings.chain_counts import mediation_in, pairs_in
from mecharule_ops.pipeline.certify import certified, rows_from
from mecharule_ops.pipeline.held_units import held_units
from mecharule_ops.pipeline.run import Run
from mecharule_ops.types import Neuron, Regime

Placed = Sequence[tuple[str, int]]
"""(slice, position among the run's records)."""


def certify_mediation(
    run: Run, unit: Neuron, regime: Regime, holds: Sequence[str], placed: Placed
) -> Certificate:
    """The unit ablated alone, then with each of `holds` at its clean value (`mediation.named`).

    Cost: `len(holds)` + 1 completions an example, and the clean values of what is held.
    """
    intervention, subject = run.intervention(unit.basis), run.subject
    held = [held_units(subject, (unit,), name) for name in holds]
    engine = run.completer(intervention)
    after = engine.completions([(unit,)] * (len(held) + 1), [place for _, place in placed], [(), *held])
    rows = tuple(
        replace(row, held=name)
        for index, name in enumerate((None, *holds))
        for row in rows_from(after, index, subject.decode, run.records, placed)
    )
    found = mediation_in(rows, run.config.alpha)
    parts = [f"{through.gone.count} with {through.held}" for through in found.through]
    claim = f"ablating {unit} flips {found.flips.flips}/{found.flips.n} examples ({regime.arrow})"
    if parts:
        claim += f"; held at clean values meanwhile, these prevent of the {found.flips.flips} flips: {', '.join(parts)}"
    return certified(run, intervention, (unit,), rows, regime=regime, kind="mediation", claim=claim)


def certify_pairs(
    run: Run, unit: Neuron, others: Sequence[Neuron], regime: Regime, placed: Placed
) -> Certificate:
    """The unit alone, and each of the others, of its basis, alone and together with it.

    Cost: 2 × `len(others)` + 1 completions an example.
    """
    intervention = run.intervention(unit.basis)
    groups = [(unit,), *((other,) for other in others), *((unit, other) for other in others)]
    after = run.completer(intervention).completions(groups, [place for _, place in placed])
    rows = tuple(
        replace(row, unit="+".join(map(str, group)))
        for index, group in enumerate(groups)
        for row in rows_from(after, index, run.subject.decode, run.records, placed)
    )
    found = pairs_in(rows, str(unit), run.config.alpha)
    parts = [f"{pair.other} {pair.together} ({pair.either} by either alone)" for pair in found]
    claim = (
        f"ablated together with {unit}, of {len(placed)} examples flip ({regime.arrow}): {', '.join(parts)}"
    )
    return certified(run, intervention, (unit, *others), rows, regime=regime, kind="pairs", claim=claim)
