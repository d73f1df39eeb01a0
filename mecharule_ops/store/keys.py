"""What a run file holds by name, each name with the type of its value; no other module spells one.

An artefact is its name, so that it can be handed to SQLite as it is.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Generic, NotRequired, TypedDict, TypeVar

import numpy as np

from mecharule_ops.types import Basis, Intervention, Neuron, Regime, Value

T = TypeVar("T", covariant=True)


class Artefact(str, Generic[T]):
    """The name of an artefact whose value is a `T`."""

    __slots__ = ()

    @property
    def summary(self) -> "Artefact[str]":
        """The line that a person reads about the stage which makes this artefact."""
        return Artefact(f"{self}-summary")


class Vocabulary(TypedDict):
    """The predicates of a run."""

    kept: list[str]
    proposed: int
    refusals: list[dict[str, str]]
    """Proposed predicates that are not used, each `text` with its `reason`."""


class Placed(TypedDict):
    """Where the run's model was when its records were made, what tells its rows and weights from others."""

    device: str
    """`cpu`, `cuda:0` or `mps`."""
    dtype: str
    rows: NotRequired[Value | None]
    """Absent, as the next, from files of earlier versions."""
    model: NotRequired[str]
    """The hash of its weights."""


class HeldOutLook(TypedDict):
    """One set of held-out flips, of a unit, read for one condition."""

    unit: str
    arrow: str
    """Direction of the flips."""
    condition: str
    """As a rule prints."""
    by: str
    """The verb that read them."""


class OwnColumn(TypedDict):
    """A column that somebody made of the records of a run."""

    name: str
    by: str
    """Whose it is."""
    expression: str
    """Empty where it is made of labels."""
    labels: dict[str, Any] | None
    """By record id; the others have none."""


RECORDS = Artefact[list[Any]]("records")
"""Behaviour records, encoded."""
WHOLE = Artefact[list[Any]]("records-of-the-whole-model")
"""The same of the model with all its units, where the run is given some away: replacement values are of these."""
REPRESENTATION = Artefact[np.ndarray]("representation")
"""`[record, channel]`, float32."""
ROUNDING = Artefact[dict[str, Any]]("rounding")
"""How far batches of several sizes moved the leads of some completions, encoded."""
PLACED = Artefact[Placed]("placed")
TOKEN_LENGTHS = Artefact[np.ndarray]("token-lengths")
"""Of each record's prompt."""
TRAIN = Artefact[np.ndarray]("train")
"""True for the records that may select anything."""
FURTHER = Artefact[list[Any]]("further-records")
"""Behaviour records beyond the run's own, encoded: more flips for the accounts of units, none for the search."""
FURTHER_TRAIN = Artefact[np.ndarray]("further-train")
"""True for those of them that may select anything."""
VOCABULARY = Artefact[Vocabulary]("vocabulary")
SPLITTER = Artefact[dict[str, Any]]("splitter")
"""r₀ with its train MCC, encoded."""
FINDINGS = Artefact[str]("findings")
"""The report's data as JSON; there once the run has finished."""
LAST_ANSWER = Artefact[list[str]]("last-answer")
"""Ids of the certificates that the last answer about the run cited."""
PROPOSALS = Artefact[dict[str, Any]]("llm-proposals")
"""How a language model proposed the predicates."""
PROPOSED = (VOCABULARY, VOCABULARY.summary, PROPOSALS)
"""What follows from who proposes."""
HYPOTHESES = Artefact[list[Any]]("ledger")
"""Registered predictions with their tests, encoded."""
LOOKS = Artefact[list[HeldOutLook]]("held-out-looks")
"""In order."""
OWN_COLUMNS = Artefact[list[OwnColumn]]("own-columns")
"""Each may read those before it."""

GATES = Artefact[list[Any]]("gates")
"""All gates that were learned on the run, encoded, in order."""

ACCOUNT, ANCHORED, CHAIN, CONTROLS, AGAIN = "account-", "anchored-", "chain-", "controls-", "again-"
_REPLACEMENT, _CONTEXT, _PACE, _SLOPE = "replacement-", "context-", "pace-", "slope-"


def attribution(basis: Basis, regime: Regime) -> Artefact[np.ndarray]:
    """Signed EAP-IG scores `[layer, channel]`; NaN where they were not asked."""
    return Artefact(f"attribution-{basis.value}-{regime.value}")


def of_unit(kind: str, unit: Neuron, regime: Regime) -> Artefact[dict[str, Any]]:
    """What is kept of one unit, encoded: its account or chain; its anchored rule or controls, made after the report."""
    return Artefact(f"{kind}{regime.value}-{unit}")


def of_units(kind: str, names: Iterable[str]) -> list[Artefact[dict[str, Any]]]:
    """Those of some names that are of one kind: accounts, rules, chains or controls of units; runs of other seeds."""
    return [Artefact(name) for name in names if name.startswith(kind)]


def predicted_rates(basis: Basis, regime: Regime) -> Artefact[np.ndarray]:
    """`[3, layer, channel]`, float32: predicted rates on D⁺ and D⁻, and the mean excess."""
    return Artefact(f"prediction-{basis.value}-{regime.value}")


def predicted_flips(basis: Basis, regime: Regime) -> Artefact[np.ndarray]:
    """`[example, layer · channel / 8]`, uint8: where first order predicts a flip, D̃⁺ before D̃⁻, eight units a byte."""
    return Artefact(f"predicted-flips-{basis.value}-{regime.value}")


def pace(basis: Basis) -> Artefact[float]:
    """Seconds an example-forward."""
    return Artefact(f"{_PACE}{basis.value}")


def replacement(intervention: Intervention) -> Artefact[Mapping[str, np.ndarray]]:
    """A replacement table taken apart into arrays."""
    return Artefact(f"{_REPLACEMENT}{_said(intervention)}")


def context(intervention: Intervention) -> Artefact[str]:
    """The key under which an intervention's outcomes are stored."""
    return Artefact(f"{_CONTEXT}{_said(intervention)}")


def slope(intervention: Intervention) -> Artefact[float]:
    """The lead, a unit of movement, below which an outcome is decided again in float32."""
    return Artefact(f"{_SLOPE}{_said(intervention)}")


def is_observed(name: str) -> bool:
    """Whether an artefact follows from what was observed, whatever the settings of the search."""
    observed = (RECORDS, RECORDS.summary, WHOLE, REPRESENTATION, ROUNDING, PLACED, TOKEN_LENGTHS)
    made = (*observed, *PROPOSED, TRAIN, FURTHER, FURTHER_TRAIN)
    return name in made or name.startswith((_REPLACEMENT, _CONTEXT, _PACE, _SLOPE))


def is_of_whole_model(name: str) -> bool:
    """Whether an artefact is the same whatever units a run is given without."""
    return name in (TRAIN, PLACED) or name.startswith(_REPLACEMENT)


def _said(intervention: Intervention) -> str:
    return f"{intervention.basis.value}-{intervention.baseline.value}-{intervention.phase.value}"
