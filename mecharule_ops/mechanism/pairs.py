"""Two units together: whether ablating both flips more or fewer records than either alone lets one expect.

Activation patching of two units at once, beside that of each. Ablations are exact and each record has one outcome
under each, so without any interaction a record flips under both exactly when it flips under one of them. Records that
flip only under both are flips that the two prevent for each other (backup: either alone carries the answer); records
that flip under one and not under both are undone by the second ablation. Whether the two units flip the same records
is another question: if their flips fell independently, n (1 − (1 − p)(1 − q)) records would flip under either, and
fewer when they flip the same ones.

Axes: record.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from jaxtyping import Bool

from mecharule_ops.mcnemar import mcnemar_p
from mecharule_ops.mechanism.mediation import Bounded


class Interaction(StrEnum):
    """What a pair shows; the value is what a person reads."""

    BACKUP = "back each other up"
    CANCEL = "undo each other"
    NONE = "no interaction shown"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFlips:
    """Flips of a unit and of another one, alone and together, on the same records."""

    other: str
    n: int
    alone: int
    """Under the unit alone."""
    other_alone: int
    both: int
    """Under each of the two alone."""
    either: int
    """Under at least one alone: what happens together if they do not interact."""
    independent: float
    """Records expected under at least one if their flips fell independently of each other."""
    together: int
    """With both ablated at once."""
    extra: Bounded
    """Flips together that neither makes alone, of the records that neither flips."""
    lost: Bounded
    """Records that either flips alone and both together do not, of those that either flips."""
    p_value: float
    """Two-sided sign test of extra against lost flips."""
    level: float
    """What it is compared with: α over the number of pairs (Bonferroni)."""

    @property
    def interaction(self) -> Interaction:
        """Backup or cancellation where the sign test says so."""
        if self.p_value >= self.level:
            return Interaction.NONE
        return Interaction.BACKUP if self.extra.count > self.lost.count else Interaction.CANCEL


def pair_flips(
    other: str,
    one: Bool[np.ndarray, " record"],
    two: Bool[np.ndarray, " record"],
    together: Bool[np.ndarray, " record"],
    alpha: float,
    pairs: int,
) -> PairFlips:
    """The counts of one pair out of `pairs`: flips under the one alone, the other alone, both at once."""
    n, either = len(one), one | two
    extra, lost = int((together & ~either).sum()), int((either & ~together).sum())
    rates = (one.mean(), two.mean()) if n else (0.0, 0.0)
    return PairFlips(
        other=other,
        n=n,
        alone=int(one.sum()),
        other_alone=int(two.sum()),
        both=int((one & two).sum()),
        either=int(either.sum()),
        independent=float(n * (1 - (1 - rates[0]) * (1 - rates[1]))),
        together=int(together.sum()),
        extra=Bounded.of(extra, int((~either).sum()), alpha),
        lost=Bounded.of(lost, int(either.sum()), alpha),
        p_value=mcnemar_p(extra, lost),
        level=alpha / pairs,
    )
