"""When and why one unit flips the outcome: the values that a report, an answer and a card read.

Scores are of records that nothing was fitted on; which rules are shown they decide, corrected over the run. A
prediction's are of the same held-out records as the rules', so that what it reaches can be set beside them. The *lead*
is the field's logit difference: of the token that the model writes over another one. Axes in comments: record position.
"""

from dataclasses import dataclass
from enum import StrEnum

from mecharule_ops.rules.families import LEAST_QUIET, STABLE, STRONG, TELLS, Family, Graded, UnitRule
from mecharule_ops.rules.interval import MccInterval
from mecharule_ops.types import FlipsWhere, Neuron, Regime

PREDICTION_HOLDS = 0.70
"""Held-out MCC that a unit's first-order prediction is registered to reach, in the ledger beforehand."""
MOVES, SEEN = 0.5, 0.1
"""First order is called blind to a unit whose ablation moves the lead by `MOVES` logits or more in the median, of which
the first-order drop has less than this share."""


class PredictionKind(StrEnum):
    """What says which records flip: first-order predictions with nothing fitted, and what they are set beside.

    A first-order prediction is attribution patching (Nanda 2023; Kramár et al. 2024, AtP*) read as DeepFool reads a
    gradient (Moosavi-Dezfooli et al. 2016): the answer changes where the linearised margin is crossed. Yang, Jain
    and Wallace (2023, arXiv 2302.02169) infer so about training points. Scored an input at a time on held-out
    ablations: none was found in print, which a search cannot prove. The value is how it is called.
    """

    STEADY = "steady drop"
    """The lead falls by more than itself, to first order with the final scale held, against some competitor."""
    LEAD_ONLY = "lead only"
    """The least lead of the record lies below one threshold, fitted on train: no unit is looked at."""
    DROP_ONLY = "drop only"
    """The largest first-order drop of the record lies above one threshold, fitted on train: no lead is looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionScore:
    """How well one of them says which held-out records flip; what always says yes, or never, has MCC 0."""

    kind: PredictionKind
    predicted: int
    """Held-out records on which it says that the answer changes."""
    held_out: MccInterval | None
    """Against what happened; None where one side has too few records for an interval."""
    records: int
    """Held-out records scored."""
    happened: int
    """Those of them on which it did change: over `records` the base rate."""
    right: int
    """Held-out records of which it says what happened."""
    threshold: float | None = None
    """What train fitted, in logits; None where nothing is fitted. An infinite one always says the same."""

    @property
    def verdict(self) -> str:
        """`supported`, `refuted` where the whole interval lies on a side of the registered MCC, else `undecided`."""
        if self.held_out is None or self.held_out.low < PREDICTION_HOLDS <= self.held_out.high:
            return "undecided"
        return "supported" if self.held_out.low >= PREDICTION_HOLDS else "refuted"


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
    spearman: float | None = None
    """Rank correlation of the two over the records; None where one of them is the same everywhere."""

    @property
    def blind(self) -> bool:
        """Whether the gradient does not see what the ablation does, as at a saturated unit."""
        return self.measured >= MOVES and abs(self.first_order) < SEEN * self.measured


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
    """Of these the ones that nothing was fitted on."""
    families: tuple[UnitRule, ...]
    """The rule over the prompt; of a unit that nearly always flips its exception behind it, where there is one."""
    drive: Graded | None = None
    """How far the unit lowers the lead, by columns of the prompt; scored on held-out prompts whatever their answer."""
    predictions: tuple[PredictionScore, ...] = ()
    becomes_right: PredictionScore | None = None
    """In 0→1 the prediction and the task together, on the flips; `predictions` are of a changed answer."""
    beside_right: tuple[PredictionScore, ...] = ()
    """Lead only and drop only on the flips, beside `becomes_right`."""
    nothing_above: bool = False
    """No later part of the model reads what the unit writes: its drop is its direct push, so that predicting its flips
    is arithmetic, and its score stands in no median of predictions."""
    drop_error: DropError | None = None
    points: LeadsAndDrops | None = None
    """None where no held-out record has a token in reach."""

    def family(self, family: Family) -> UnitRule:
        """The rule of a family."""
        return next(rule for rule in self.families if rule.family is family)

    @property
    def exception(self) -> FlipsWhere | None:
        """Held-out flips where it nearly always flips, and where it never does; None without an exact exception.

        Told where `LEAST_QUIET` held-out records or more meet it, and halves of train give it again.
        """
        rule = next((rule for rule in self.families if rule.family is Family.EXCEPTION), None)
        if rule is None or rule.where is None or rule.chance is None:
            return None
        p, here, there = rule.chance.adjusted or rule.chance.p, rule.where.holds, rule.where.elsewhere
        exact = there.n >= LEAST_QUIET and not there.flips and here.flips >= STRONG * here.n
        stable = rule.agreement is not None and rule.agreement >= STABLE
        return rule.where if exact and stable and p <= rule.chance.level else None

    @property
    def compared(self) -> PredictionScore | None:
        """How well drop against lead tells its flips, with nothing fitted."""
        return self.becomes_right or self.first_order

    @property
    def comparison_holds(self) -> bool:
        """Whether it does for sure: the lower bound of the held-out MCC lies above `TELLS`."""
        score = self.compared
        return score is not None and score.held_out is not None and score.held_out.low > TELLS

    @property
    def first_order(self) -> PredictionScore | None:
        """The score of the cheap one, with the final scale held; None when it was not asked for."""
        return next((score for score in self.predictions if score.kind is PredictionKind.STEADY), None)
