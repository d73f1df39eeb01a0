"""What an investigation carries, as plain data in the run file, and what its nodes work with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypedDict

import numpy as np
from jaxtyping import Bool, Int

from mecharule_ops.run.live_run import Run
from mecharule_ops.store.ledger import Ledger

ALPHA = 0.05
"""Error of all verdicts of an investigation: shared equally by its units, within each as `Shares` says."""
QUESTION = "the question"
"""Who proposed a rival that the question itself asks about."""
Kind = Literal["look", "leads", "duel", "table", "together"]


class AskedUnits(TypedDict):
    """One unit, or two together, that the question is about."""

    units: list[str]
    regime: int
    families: list[str]
    """Families of rivals that the question names."""
    claims: dict[str, str]
    """Conditions that the question states, each with its words; none where the task's words are to say it."""
    train: int
    """Train records of the draw whose flips were stored when it was asked."""


class Beside(TypedDict):
    """What was found of a rival beside another one, or of it before."""

    kind: Literal["loses", "within", "near", "before"]
    """`loses`: the other one tells more; `within`: it is looked at within the larger; `near`: they are not told apart;
    `before`: it was decided before."""
    rival: str
    """The other one's id; empty where there is none."""
    told_apart: bool
    said: str


class Rival(TypedDict):
    """One prediction with its test and, once decided, its verdict."""

    id: str
    """`r1`."""
    unit: str
    regime: int
    family: str
    condition: str
    words: str
    """The condition for a person."""
    less: str
    """Where the condition is the contrary of a predicate, that in words: there the unit flips less; else empty."""
    by: str
    """`the question`, `offline`, or the language model that proposed it."""
    train: list[int]
    """Flips and records where it holds, then elsewhere, on the train records looked at."""
    mcc: float
    """On them."""
    threshold: float
    hypothesis: str
    """Id in the ledger; empty until registered."""
    state: str
    """`open`; `supported`, `refuted`, `undecided`, `underpowered`, or `weaker` than another; `dropped` where train
    records say too little for it to be tested."""
    held_out: list[int]
    """As `train`, of the deciding look."""
    value: float | None
    low: float | None
    high: float | None
    p: float | None
    """Corrected over the investigation."""
    mcc_held_out: float | None
    beside: list[Beside]


class Step(TypedDict):
    """One test with its price, said before it is made."""

    kind: Kind
    units: list[str]
    regime: int
    rivals: list[str]
    """Those that it tells apart."""
    n: int
    """Records that it reads."""
    forwards: int
    seconds: float | None
    """None where the run timed none."""
    bits: float
    """What it is expected to tell."""
    table: int
    """Of a comparison, the records of the table that may follow, fixed before it; else 0."""


class BoardFact(TypedDict):
    """One thing that is known."""

    id: str
    """`f1`."""
    sentence: str
    value: list[float]
    source: str
    rivals: list[str]


class Purse(TypedDict):
    """What may be spent; None for no limit."""

    forwards: int | None
    seconds: float | None


class InvestigationInput(TypedDict):
    """All that an investigation is started with."""

    question: str
    read_as: str
    """In words, so that a person sees what was understood."""
    unread: list[str]
    """What looks like a condition and was not read as one, so that only the rest is answered."""
    read_by: str
    """The language model that read it so; empty where the program did."""
    asked: list[AskedUnits]
    told: list[BoardFact]
    """What the run held about it before anything was tested."""
    answers: int
    """How many of these, the first ones, answer the question rather than stand beside tests."""
    purse: Purse
    leads: bool
    """Whether the clean leads were stored when it was asked."""
    records: int
    """Records that the run had observed when it was asked, from which all draws are made."""


class InvestigationChange(TypedDict, total=False):
    """What a node changes of an investigation."""

    rivals: list[Rival]
    offered: list[Step]
    """What could be done now, best first, with what cannot be afforded."""
    chosen: Step | None
    steps: list[Step]
    """Done, in order."""
    board: list[BoardFact]
    forwards: int
    seconds: float
    """Both spent, at the prices said before."""
    said: list[str]
    """What a language model proposed; not there until it was asked."""
    refused: list[str]
    """Proposals that were not taken, with the reason."""
    ended: str


class InvestigationState(InvestigationInput, InvestigationChange):
    """An investigation under way; what no node changed yet is not there."""


class ChoosingPolicy(Protocol):
    """Who picks among priced tests."""

    def pick(self, offered: list[Step], rivals: list[Rival], board: list[BoardFact]) -> Step | None:
        """One of the offered tests, each of which can be afforded; None to stop."""
        ...


class RivalProposer(Protocol):
    """Who proposes rivals beside the templates."""

    @property
    def name(self) -> str:
        """A language model's name."""
        ...

    def propose(
        self,
        run: Run,
        asked: AskedUnits,
        known: Sequence[Rival],
        train: Int[np.ndarray, " record"],
        flips: Bool[np.ndarray, " record"],
    ) -> list[str]:
        """Predicates as text, from the `known` rivals and the flips of train records. Raises `MechaRuleError`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class InvestigationRuntime:
    """What an investigation works with."""

    run: Run
    ledger: Ledger
    policy: ChoosingPolicy
    proposer: RivalProposer | None = None
    tell: Callable[[str], None] = lambda line: None


def affordable(step: Step, state: InvestigationState) -> bool:
    """Whether a step's price is within what is left of both purses; unknown seconds are beyond any purse of seconds."""
    purse = state["purse"]
    left = None if purse["forwards"] is None else purse["forwards"] - state.get("forwards", 0)
    if left is not None and step["forwards"] > left:
        return False
    if purse["seconds"] is None or not step["forwards"]:
        return True
    return step["seconds"] is not None and step["seconds"] <= purse["seconds"] - state.get("seconds", 0.0)


def is_tested(state: InvestigationState, units: list[str]) -> bool:
    """Whether a held-out flip of the units was read."""
    return any(
        step["kind"] not in ("look", "leads") and step["units"] == units for step in state.get("steps", [])
    )


def kept(rival: Rival) -> bool:
    """Whether it is put to a test."""
    return rival["state"] != "dropped"


def is_open(rival: Rival) -> bool:
    """Whether it is registered and not decided."""
    return rival["state"] == "open"
