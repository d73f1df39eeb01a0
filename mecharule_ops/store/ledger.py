"""The hypothesis ledger: what was predicted, how it will be decided, and only then what came out.

A hypothesis is stored in the run file before its test runs. From then on what it predicts, its test and threshold
cannot be changed: each entry carries the hash of its prediction, and one that no longer matches is an error, not a
result. It is decided once. That a unit flips more often where a rule holds is a `Claim`, whose sentences are made from
its fields; any other hypothesis is a `Prediction` in words.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from mecharule_ops import codec, events, types
from mecharule_ops.errors import ClaimNotSupported, UsageError
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.store.keys import HYPOTHESES
from mecharule_ops.store.run_store import RunStore

CLAIM_TEST = (
    "share of held-out records flipped where the condition holds, less that elsewhere; supported where its "
    "interval begins at the threshold or above and Fisher's exact p, Holm over the unit's claims, is at most the share "
    "of support in their error; refuted where that interval, whose upper ends err in as much together, ends below the "
    "threshold; else undecided"
)
LEAST_CLASS = 5
"""Held-out records that each side needs where the value decides; with fewer the test is underpowered."""


class HypothesisState(StrEnum):
    """Where a hypothesis stands."""

    OPEN = "open"
    SUPPORTED = "supported"
    REFUTED = "refuted"
    UNDERPOWERED = "underpowered"
    UNDECIDED = "undecided"


class _Fixed:
    """What is fixed before the test runs."""

    __slots__ = ()

    @property
    def sha256(self) -> str:
        """Of everything that was fixed."""
        return hashlib.sha256(codec.canonical_json(codec.encode(self)).encode("ascii")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction(_Fixed):
    """A hypothesis in words, with what decides it."""

    subject: str
    """The unit it is about, such as `m4.1234`."""
    statement: str
    """The hypothesis in a sentence."""
    condition: str
    """What is expected to go with the subject's flips: a predicate, or the ablation that is compared."""
    test: str
    """What decides, in words."""
    threshold: float
    """The test's value from which the hypothesis is supported."""

    @property
    def id(self) -> str:
        """The first 8 digits of the hash: equal predictions are one."""
        return self.sha256[:8]

    @property
    def matter(self) -> "Prediction":
        """What it says of what, and by which test, whatever its threshold."""
        return replace(self, threshold=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim(_Fixed):
    """That a unit flips more often where a rule holds, by a difference of the threshold at least."""

    unit: str
    regime: types.Regime
    rule: Rule
    threshold: float
    by: str
    """Who made it: the verb, or the proposer's name."""

    @property
    def id(self) -> str:
        """The first 8 digits of the hash of what is claimed: two who claim the same claim it once."""
        return replace(self, by="").sha256[:8]

    @property
    def matter(self) -> "Claim":
        """What it says of what, whatever its threshold and whoever said it."""
        return replace(self, threshold=0.0, by="")

    def sentence(self, where: str) -> str:
        """The claim, `where` its rule holds in words."""
        return f"{self.unit} flips ({self.regime.arrow}) more often where {where}."

    @property
    def subject(self) -> str:
        """Its unit, as other predictions name it."""
        return self.unit

    @property
    def condition(self) -> str:
        """Its rule, as other predictions name it."""
        return str(self.rule)

    @property
    def statement(self) -> str:
        """The claim with its rule as it prints."""
        return self.sentence(self.condition)

    @property
    def test(self) -> str:
        """What decides, in words."""
        return CLAIM_TEST


@dataclass(frozen=True, slots=True, kw_only=True)
class TestOutcome:
    """What the deciding test gave."""

    __test__ = False

    value: float | None
    """Of the quantity that the test names; None where too few records of one side leave it without an interval."""
    n: int
    positives: int
    """Records of the test on which the subject flips the outcome."""
    state: str = ""
    """What a test decides by itself, an exact one of few records too; empty where the value decides."""
    counts: tuple[int, ...] = ()
    """Flips and records of each side that was compared; empty where none were kept."""
    low: float | None = None
    high: float | None = None
    """The interval of the value, at the level of that time."""
    p: float | None = None
    """Corrected as the test says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """One entry of the ledger."""

    prediction: Claim | Prediction
    sha256: str
    state: str = HypothesisState.OPEN.value
    outcome: TestOutcome | None = None

    @property
    def id(self) -> str:
        """That of its prediction."""
        return self.prediction.id


class Ledger:
    """The hypotheses of one run, in the order registered."""

    def __init__(self, store: RunStore, emit: Callable[[events.Event], object] = lambda event: None) -> None:
        """`emit` is told before an entry changes, so that no decision is ever told of what nobody heard registered."""
        self._store = store
        self._emit = emit

    def entries(self) -> tuple[Hypothesis, ...]:
        """Every hypothesis. Raises `ClaimNotSupported` when a registered prediction was changed."""
        entries = tuple(codec.decode(Hypothesis, row) for row in self._store.find(HYPOTHESES) or ())
        if changed := [one.prediction for one in entries if one.prediction.sha256 != one.sha256]:
            about = f"the prediction about {changed[0].subject} as it was registered"
            raise ClaimNotSupported(f"expected {about}, it was changed; it decides nothing")
        return entries

    def entry(self, id: str) -> Hypothesis:
        """The hypothesis of an id. Raises `UsageError` when there is none."""
        for entry in self.entries():
            if entry.id == id:
                return entry
        raise UsageError(f"expected a hypothesis of the ledger, got {id!r}; register it first")

    def register(self, prediction: Claim | Prediction, statement: str = "") -> Hypothesis:
        """The open entry of a new prediction, stored; the same prediction again is the same entry.

        Told by its own statement, or another wording of it.
        """
        entries = self.entries()
        known = next((entry for entry in entries if entry.id == prediction.id), None)
        told = {name: getattr(prediction, name) for name in ("subject", "condition", "test", "threshold")}
        worded = statement or prediction.statement
        self._emit(events.HypothesisRegistered(hypothesis=prediction.id, statement=worded, **told))
        if known is not None:
            return known
        made = Hypothesis(prediction=prediction, sha256=prediction.sha256)
        self._write((*entries, made))
        return made

    def entered(self, prediction: Claim | Prediction, statement: str = "") -> Hypothesis:
        """What was decided before whatever its threshold, else registered now, told by a statement."""
        return self.settled(prediction) or self.register(prediction, statement)

    def settled(self, prediction: Claim | Prediction) -> Hypothesis | None:
        """The decided entry that says the same of the same by the same test, whatever its threshold."""
        decided = (entry for entry in self.entries() if entry.outcome is not None)
        return next((entry for entry in decided if entry.prediction.matter == prediction.matter), None)

    def decide(self, id: str, test: Callable[[Claim | Prediction], TestOutcome]) -> Hypothesis:
        """The entry after its test, which runs now and was not run before.

        Raises `UsageError` when it is not registered or decided already.
        """
        entry = self.entry(id)
        if entry.state != HypothesisState.OPEN:
            raise UsageError(f"expected an open hypothesis, {id} is {entry.state}; register a new prediction")
        outcome = test(entry.prediction)
        decided = replace(entry, state=_decision(entry.prediction, outcome).value, outcome=outcome)
        told = {name: getattr(outcome, name) for name in ("value", "n", "positives")}
        told |= {"hypothesis": id, "subject": entry.prediction.subject, "state": decided.state}
        self._emit(events.HypothesisDecided(**told))
        self._write(tuple(decided if other.id == id else other for other in self.entries()))
        return decided

    def _write(self, entries: tuple[Hypothesis, ...]) -> None:
        self._store.put(HYPOTHESES, [codec.encode(entry) for entry in entries])


def _decision(prediction: Claim | Prediction, outcome: TestOutcome) -> HypothesisState:
    if outcome.value is not None and outcome.state:
        return HypothesisState(outcome.state)
    if outcome.value is None or min(outcome.positives, outcome.n - outcome.positives) < LEAST_CLASS:
        return HypothesisState.UNDERPOWERED
    return HypothesisState.SUPPORTED if outcome.value >= prediction.threshold else HypothesisState.REFUTED
