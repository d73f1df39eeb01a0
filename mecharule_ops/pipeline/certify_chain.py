"""Certificates of how a unit's flips come about: with others held at their clean values, and together with others.

What the counts of their rows say is computed from the rows alone, here and wherever such a certificate is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mecharule_ops.certificates.certificate import Certificate, ExampleRow
from mecharule_ops.mechanism.mediation import Mediation, Outcome, mediation
from mecharule_ops.mechanism.pairs import PairFlips, pair_flips
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
    found = _mediation(rows, run.config.alpha)
    parts = [f"{through.gone.count} with {through.held}" for through in found.through]
    claim = (
        f"ablating {unit} flips {found.flips.flips}/{found.flips.n} examples ({regime.arrow}); held at clean values "
        f"meanwhile, these prevent of the {found.flips.flips} flips: {', '.join(parts)}"
    )
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
    found = _pairs(rows, str(unit), run.config.alpha)
    parts = [f"{pair.other} {pair.together} ({pair.either} by either alone)" for pair in found]
    claim = (
        f"ablated together with {unit}, of {len(placed)} examples flip ({regime.arrow}): {', '.join(parts)}"
    )
    return certified(run, intervention, (unit, *others), rows, regime=regime, kind="pairs", claim=claim)


def mediation_of(certificate: Certificate) -> Mediation:
    """What a certificate of kind `mediation` counts."""
    return _mediation(certificate.rows, certificate.alpha)


def pairs_of(certificate: Certificate) -> tuple[PairFlips, ...]:
    """What a certificate of kind `pairs` counts, of its first unit with each other."""
    return _pairs(certificate.rows, certificate.units[0], certificate.alpha)


def _mediation(rows: Sequence[ExampleRow], alpha: float) -> Mediation:
    by_hold: dict[str | None, list[ExampleRow]] = {}
    for row in rows:
        by_hold.setdefault(row.held, []).append(row)
    alone = by_hold.pop(None)
    held = {name: _outcome(some) for name, some in by_hold.items() if name is not None}
    return mediation([row.before.tokens for row in alone], _outcome(alone), held, alpha)


def _pairs(rows: Sequence[ExampleRow], unit: str, alpha: float) -> tuple[PairFlips, ...]:
    flips: dict[str, list[bool]] = {}
    for row in rows:
        flips.setdefault(str(row.unit), []).append(row.flipped)
    found = {name: np.array(flipped) for name, flipped in flips.items()}
    others = [name for name in found if "+" not in name and name != unit]
    return tuple(
        pair_flips(other, found[unit], found[other], found[f"{unit}+{other}"], alpha, len(others))
        for other in others
    )


def _outcome(rows: Sequence[ExampleRow]) -> Outcome:
    return Outcome(
        tokens=[row.after.tokens for row in rows], flipped=np.array([row.flipped for row in rows], bool)
    )
