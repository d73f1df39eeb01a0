"""When and why one unit flips the outcome: the values that a report, an answer and a card read.

Scores are of records that chose nothing. A law's are of the same held-out records as the rules', so that what it
reaches can be set beside them. Axes in comments: record position.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from mecharule_ops.rules.driven import DriveRule
from mecharule_ops.rules.families import Family, FamilyRule
from mecharule_ops.rules.interval import MccInterval
from mecharule_ops.rules.trees import Pushes
from mecharule_ops.types import Neuron, Regime


class Law(StrEnum):
    """A prediction of which records flip, with nothing fitted; the value is how it is called."""

    STEADY = "steady drop"
    """The lead falls by more than itself, to first order with the final scale held, against some competitor."""
    DIRECT = "direct push"
    """The unit's own write carries more than the lead."""
    INTEGRATED = "integrated drop"
    """First order at several points between the unit's value and its replacement: as dear as an ablation."""
    FIRST_ORDER = "first-order drop"
    """The same as steady with the final scale moving: what runs scored before it was held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LawScore:
    """How well a law says which held-out records flip."""

    law: Law
    predicted: int
    """Held-out records on which it says that the answer changes."""
    held_out: MccInterval | None
    """Against what happened; None where one side has too few records for an interval."""
    records: int
    """Held-out records scored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DropError:
    """What the first-order drop misses of the measured one: curvature, and repair by later units."""

    records: int
    """Flipped and unflipped held-out records looked at, each at its token where least of the lead is left."""
    measured: float
    """Median fall of the lead there under the ablation, in logits."""
    first_order: float
    """Median first-order drop there."""
    error: float
    """Median absolute difference of the two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadsAndDrops:
    """What a figure draws: held-out records, each at the token and competitor where most is left of drop − lead."""

    lead: tuple[float, ...]
    """How close the model was to the other token there, in logits."""
    drop: tuple[float, ...]
    """First-order drop of that lead, in logits."""
    flipped: tuple[bool, ...]
    """Whether the ablation flips the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """When one unit flips, and what its flips go with."""

    neuron: Neuron
    regime: Regime
    flips: int
    """Records of D_b that it flips, of those below."""
    records: int
    """Records of D_b looked at, the further ones included."""
    held_out: int
    """Of these the ones that chose nothing."""
    families: tuple[FamilyRule, ...]
    laws: tuple[LawScore, ...] = ()
    becomes_right: LawScore | None = None
    """In 0→1 the law and the task together, on the flips; what `laws` predict there is that the answer changes."""
    drive: DriveRule | None = None
    """What the unit responds to."""
    drop_error: DropError | None = None
    points: LeadsAndDrops | None = None
    """None where no held-out record has a token in reach."""
    pushes: Pushes | None = None
    """What the free-form model of the input columns goes by on held-out records; None where none predicts them."""

    def family(self, family: Family) -> FamilyRule:
        """The rule of a family."""
        return next(rule for rule in self.families if rule.family is family)

    def law(self, law: Law) -> LawScore | None:
        """The score of a law; None when it was not asked."""
        return next((score for score in self.laws if score.law is law), None)

    @property
    def first_order(self) -> LawScore | None:
        """The score of the cheap law: with the final scale held, or as runs scored it before it was held."""
        return self.law(Law.STEADY) or self.law(Law.FIRST_ORDER)

    @property
    def best(self) -> FamilyRule | None:
        """The shown rule that train validated best; held-out records do not choose it. None when none is shown."""
        shown = [rule for rule in self.families if rule.rule is not None]
        return max(shown, key=lambda rule: rule.validated or 0.0, default=None)
