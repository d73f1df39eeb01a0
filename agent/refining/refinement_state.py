"""What the refinement loop carries, what it is given, and who may suggest something to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypedDict

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from agent.state import RefusalEntry
from mecharule_ops.rules.quality import COVERAGE_FLOOR, THRESHOLD
from mecharule_ops.store.ledger import Ledger
from mecharule_ops.types import AnchoredRule, Columns


class RefinementInput(TypedDict):
    """All that a refinement is started with."""

    units: list[str]
    """Names of cases, in the order in which they are refined."""
    rounds: int
    """Most rounds a unit."""


class UnitReport(TypedDict):
    """The rule of one unit before and after."""

    unit: str
    arrow: str
    """Direction of a flip."""
    before: float | None
    """Held-out MCC."""
    after: float | None
    good_before: bool
    """HQ-T: the held-out MCC and the coverage reach the run's floors."""
    good_after: bool
    rule: str | None
    hypothesis: str | None
    """Id in the ledger of what was said about the unit."""
    prediction: str | None
    """Id in the ledger of the claim that the refined rule predicts its flips; None when there is no new rule."""
    proposed: int
    """Predicates suggested that were new."""
    accepted: int
    """Of them, those that parse and pass the filters."""
    in_rule: int
    """Of those, the ones in the refined rule."""
    stands: bool
    """A hypothesis that was kept is supported on the held-out records."""
    transcript: list[str]
    """What was held, what would refute it, how it was tested and what came of it, a line each."""
    said: list[dict[str, object]]
    """Every suggestion as it was made, for the refinement to be played again."""
    ended: str
    failed: bool
    """The suggester gave no usable reply, so asking again may end otherwise."""


class RefinementState(TypedDict, total=False):
    """A refinement under way, and what a node changes of it; the round's fields belong to the first of `units`."""

    units: list[str]
    rounds: int
    done: int
    waiting: list[str]
    accepted: list[str]
    refused: list[RefusalEntry]
    idea: dict[str, str]
    """The hypothesis that waits for its test; empty without one."""
    statement: str
    condition: str
    """Of the hypothesis that no train record refutes, the best so far; empty without one."""
    fit: float
    """Its MCC on train records."""
    dropped: list[RefusalEntry]
    """Hypotheses that their tests refuted, by condition."""
    last: str
    """Id in the ledger of the latest test of a hypothesis on train records."""
    transcript: list[str]
    said: list[dict[str, object]]
    ended: str
    failed: bool
    spent: bool
    """Nothing more may be asked, of any unit."""
    reports: list[UnitReport]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnitCase:
    """One unit with its flips on the eligible records D_b."""

    unit: str
    arrow: str
    """Direction of a flip."""
    columns: Columns
    """Of D_b."""
    flips: np.ndarray
    """Bool, one an eligible record."""
    train: np.ndarray
    """Bool, one an eligible record; the others are held out."""
    vocabulary: tuple[str, ...]
    """What its rule was learned over."""
    prompt_columns: frozenset[str]
    anchored: AnchoredRule
    """Its rule before refinement."""
    meanings: Mapping[str, str] = field(default_factory=dict)
    """What the columns hold."""


class Idea(BaseModel):
    """One hypothesis about a unit."""

    model_config = ConfigDict(extra="forbid")
    statement: str = Field(max_length=400)
    condition: str = Field(max_length=500)
    refuted_by: str = Field(max_length=400)
    """Which observation would show it to be wrong, in words; empty where only its test says so."""


class Refinement(BaseModel):
    """What is suggested for a unit; the schema of a model's reply."""

    model_config = ConfigDict(extra="forbid")
    predicates: list[str] = Field(max_length=40)
    hypothesis: Idea | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What one unit's rounds have led to so far."""

    rounds: int
    accepted: Sequence[str]
    refused: Sequence[RefusalEntry]
    dropped: Sequence[RefusalEntry] = ()
    """Hypotheses that were refuted, by condition."""


class Suggester(Protocol):
    """Anything that suggests predicates and a hypothesis."""

    @property
    def name(self) -> str:
        """A language model's name, or `offline`."""
        ...

    def suggest(self, case: UnitCase, tried: Tried) -> Refinement:
        """Suggestions for the next round. Raises `MechaRuleError`; `BudgetSpent` when nothing more may be asked."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RefinementRuntime:
    """What a refinement works with."""

    suggester: Suggester
    cases: Mapping[str, UnitCase]
    ledger: Ledger
    seed: int
    threshold: float = THRESHOLD
    """MCC of a good rule."""
    coverage: float = COVERAGE_FLOOR
    """Least share of D_b on which a good rule fires."""
