"""What repairing a run came to: its gates, what they did on records that chose nothing, and controls beside it.

`fixed` and `broken` are said of the outcome that is wanted: right answers in 0→1, refusals where success is harm.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from mecharule_ops.mcnemar import Paired
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.rules.families import Family
from mecharule_ops.types import Basis, Neuron, Regime


class RepairStatus(StrEnum):
    """How a repair ended; the value is the sentence a person reads."""

    HELPS = "the gates help: the whole interval of the change on the test records lies above 0"
    HARMS = "the gates harm: the whole interval of the change on the test records lies below 0"
    OPEN = "not shown to help: the interval of the change on the test records holds 0"
    NO_GATE = "no gate helps: none fixes more than it breaks on the records that choose"
    NO_RULE = "no gate helps: no rule was found that fixes more than it breaks on the records that learn"
    NO_UNIT = "no gate helps: no unit tried fixes any answer of the records that learn"
    NOTHING = "there is nothing to repair: all answers observed are alike"


class RepairSplit(StrEnum):
    """What records are for; none is in two."""

    FIND = "find"
    """Units and rules are found here."""
    CHOOSE = "choose"
    """Gates, their units and their order are chosen here."""
    TEST = "test"
    """Scored once."""


class ControlKind(StrEnum):
    """What stands beside the gates on the test records."""

    RUNNER_UP = "no unit: where the gates act, the runner-up is written where the lead is least"
    RUNNER_UP_RULES = "no unit: rules made the same way say where the runner-up is written"
    SOLVER = "no unit: where the gates act, a solver over the same columns answers if it is sure"
    SOLVER_ALONE = "no unit: a solver over the same columns answers wherever it is sure"
    RANDOM_REPAIR = "the whole repair made of random units of the same layers"
    ALWAYS = "unit always ablated"
    SHUFFLED = "same units, gates shuffled over the records"
    LEAD_ONLY = "gates over the leads alone"
    LEARNED = "gates chosen without those that were proposed"
    MODEL = "free-form gate"
    TOGETHER = "every unit with a gate that fires, all ablated together"
    LARGEST = "of the gates that fire only the one with the largest expected gain"


class Policy(StrEnum):
    """What happens on a record on which several gates fire; the value is what a person reads."""

    ONE = "the unit of the gate with the largest expected gain is ablated"
    ALL = "every unit with a gate that fires is ablated"

    @property
    def other(self) -> Policy:
        """The one that was not chosen."""
        return Policy.ALL if self is Policy.ONE else Policy.ONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One unit and a clause that says when to ablate it."""

    unit: Neuron
    family: Family
    rule: str
    """As it prints."""
    gain: float
    """Expected gain of a record on which it fires, at most 1."""
    fixed: int
    """On those records, alone."""
    broken: int
    fired: int

    @property
    def parsed(self) -> Rule:
        """The rule as a value."""
        return _parsed(self.rule)


_parsed = lru_cache(4096)(Rule.parse)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairControl:
    """One line beside the gates."""

    kind: ControlKind
    name: str
    """A unit, or what sets it apart; empty where the kind says it all."""
    result: Paired
    ahead: Paired | None = None
    """From the outcomes under it to those under the gates: what these fix is theirs alone. None in older files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitResult:
    """The gates on one split; only that of the test records proves anything."""

    split: RepairSplit
    result: Paired


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyResult:
    """The gates on the choose records under one policy."""

    policy: Policy
    result: Paired


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedGates:
    """What somebody who was shown the find records proposed beside the learned clauses, and what came of it."""

    proposer: str
    units: int
    """About which it was asked."""
    proposed: int
    """Rules, each one clause or several."""
    read: int
    """Of them, those of the closed language over columns that a gate may read."""
    competing: int
    """Clauses that fix more of the find records than they break, and hold where no learned one does."""
    chosen: tuple[int, ...] = ()
    """Places among the repair's gates."""
    ended: str = ""
    """Why it was not asked further; empty where it was asked about every unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairEffect:
    """Two units whose gates fire on the same choose records: what ablating the second one too does there."""

    first: Neuron
    second: Neuron
    alone: Paired
    """The one whose gate has the larger gain, ablated alone."""
    both: Paired
    """Both ablated, against none."""
    added: Paired
    """Both ablated, against the one alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEffect:
    """What replacing units does to text: means over its tokens."""

    tokens: int
    kl: float
    """KL divergence from the clean model, nats a token."""
    before: float
    """Perplexity of the clean model."""
    after: float
    """Perplexity with the units replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """Text that is none of the task's: what the gates do to it, and what a unit that is always ablated would do."""

    name: str
    """What text it is."""
    prompts: int
    acted: int
    """Prompts on which a gate acts."""
    gated: TextEffect
    worst: Neuron
    """The gates' unit whose ablation everywhere changes it most."""
    always: TextEffect


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownExample:
    """A test record on which a gate acted and the outcome changed."""

    prompt: str
    unit: Neuron
    """The one with the largest expected gain."""
    others: tuple[Neuron, ...] = ()
    """Ablated with it."""
    before: str
    after: str
    fixed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """One repair of a run."""

    run: str
    regime: Regime
    basis: Basis
    family: Family
    status: RepairStatus
    seed: int
    solution: bool
    """Whether gates could read the columns that tell the right answer."""
    tried: int
    """Units whose ablation was measured on the find and choose records."""
    fresh: bool
    """Whether the records are none of the run's own."""
    clusters: str = ""
    """The column that names clusters of records; whole ones are in a split. Empty where records are independent."""
    most: int = 12
    """Units with gates, at most."""
    records: int = 9000
    """Asked for, in all three splits."""
    harm: float = 2.0
    """Fixed answers that one broken answer weighed."""
    gates: tuple[Gate, ...] = ()
    """In the order in which they were chosen."""
    policy: Policy = Policy.ONE
    policies: tuple[PolicyResult, ...] = ()
    """Both on the choose records, which chose between them."""
    proposer: str = ""
    """Who was to propose gates beside the learned ones; empty for nobody."""
    proposed: ProposedGates | None = None
    splits: tuple[SplitResult, ...] = ()
    hindsight: Paired | None = None
    """Of the chosen units the best for each test record, known afterwards: no choice of one of them can do better."""
    controls: tuple[RepairControl, ...] = ()
    pairs: tuple[PairEffect, ...] = ()
    """Of units whose gates fire together most often."""
    elsewhere: tuple[Elsewhere, ...] = ()
    """Empty too where the model cannot read other text."""
    innocent: Paired | None = None
    """Requests without harm, answered (1) or refused (0), before and under the gates; None where none were given."""
    examples: tuple[ShownExample, ...] = ()
    certificates: tuple[str, ...] = ()
    """Of the test result: what was wrong before, then what was right."""
    opened: int = 1
    """How often the test records of this seed were scored in this run, this time included."""
    hypothesis: str = ""
    """The id under which the prediction was registered before they were."""

    @property
    def asked(self) -> tuple[object, ...]:
        """What was asked for: a repair of the same answers the same request."""
        where = self.regime, self.basis, self.family, self.solution
        return *where, self.most, self.records, self.harm, self.proposer

    def of(self, split: RepairSplit) -> Paired | None:
        """The result on a split; None where it was not reached."""
        return next((part.result for part in self.splits if part.split is split), None)

    @property
    def test(self) -> Paired | None:
        """The result on the records that chose nothing; None where they were not opened."""
        return self.of(RepairSplit.TEST)
