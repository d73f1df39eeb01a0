"""What the certificates of a chain count, from their rows alone: no model is needed to read one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mecharule_ops.certificates.certificate import Certificate, ExampleRow
from mecharule_ops.mechanism.mediation import Mediation, Outcome, mediation
from mecharule_ops.mechanism.pairs import PairFlips, pair_flips


def mediation_of(certificate: Certificate) -> Mediation:
    """What a certificate of kind `mediation` counts."""
    return mediation_in(certificate.rows, certificate.alpha)


def pairs_of(certificate: Certificate) -> tuple[PairFlips, ...]:
    """What a certificate of kind `pairs` counts, of its first unit with each other."""
    return pairs_in(certificate.rows, certificate.units[0], certificate.alpha)


def mediation_in(rows: Sequence[ExampleRow], alpha: float) -> Mediation:
    """The flips without a hold, and what remains of them under each."""
    by_hold: dict[str | None, list[ExampleRow]] = {}
    for row in rows:
        by_hold.setdefault(row.held, []).append(row)
    alone = by_hold.pop(None)
    held = {name: _outcome(some) for name, some in by_hold.items() if name is not None}
    return mediation([row.before.tokens for row in alone], _outcome(alone), held, alpha)


def pairs_in(rows: Sequence[ExampleRow], unit: str, alpha: float) -> tuple[PairFlips, ...]:
    """The flips of one unit beside those of each other and of both together."""
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
