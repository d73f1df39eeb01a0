"""How two rivals are compared: where exactly one holds, or, of one that implies the other, within the larger."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from agent.investigating.investigation import QUESTION, Rival
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.rules.in_words import rule_in_words
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.tabulating import fires
from mecharule_ops.store.ledger import Prediction
from mecharule_ops.types import Regime

DUEL_TEST = (
    "share of held-out records flipped where only the first of two conditions holds, less that where only the other "
    "does; decided by Fisher's exact test, two-sided, at its share of half the error of the unit's verdicts"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RivalComparison:
    """Two rivals of a unit in the order of their conditions, and the two sides on which flips are counted.

    Which sides these are follows from the columns of the run's records and from no outcome.
    """

    first: Rival
    other: Rival
    conditions: tuple[str, str]
    sides: Bool[np.ndarray, "side record"]
    inner: str = ""
    """Of rivals of which one implies the other, the predicate that is looked at within the larger; else empty."""
    within: str = ""
    """The larger, in words."""
    smaller: Rival | None = None
    """The rival whose predicate is looked at within the larger."""

    @property
    def apart(self) -> Bool[np.ndarray, " record"]:
        """Where exactly one side holds: the records that tell."""
        return np.asarray(self.sides[0] != self.sides[1])

    @property
    def prediction(self) -> Prediction:
        """That flips go with the first side; the test is two-sided, so a pair has one, whichever fits train better."""
        one, two = self.conditions
        return Prediction(
            subject=self.first["unit"],
            statement=f"{self.first['unit']} flips ({Regime(self.first['regime']).arrow}) more where "
            f"{'' if self.inner else 'only '}{one} than where {'' if self.inner else 'only '}{two}.",
            condition=f"{one} | {two}",
            test=DUEL_TEST,
            threshold=0.0,
        )


def comparison_of(run: Run, one: Rival, two: Rival) -> RivalComparison:
    """Where only the one or only the other holds; where that leaves a side empty, within the larger of the two.

    There it is the predicate that holds on fewer records, against the rest of the other one or of its contrary.
    """
    first, other = sorted((one, two), key=lambda rival: rival["condition"])
    conditions = first["condition"], other["condition"]
    sides = np.array([fires(run, condition) for condition in conditions])
    a, b = sides
    if ((a & ~b).any() and (b & ~a).any()) or (a == b).all():
        return RivalComparison(first=first, other=other, conditions=conditions, sides=sides)
    texts = [_bare(condition) for condition in conditions]
    holds = [fires(run, text) for text in texts]
    small, large = (0, 1) if holds[0].sum() <= holds[1].sum() else (1, 0)
    inner, outer, text = holds[small], holds[large], texts[large]
    if (inner & ~outer).any():
        outer, text = ~outer, f"not ({text})"
    if (inner & ~outer).any():
        small, large = (0, 1) if not (a & ~b).any() else (1, 0)
        inner, outer, text = sides[small], sides[large], conditions[large]
        texts = list(conditions)
    return RivalComparison(
        first=first,
        other=other,
        conditions=(texts[small], f"({text}) and not ({texts[small]})"),
        sides=np.array([inner, outer & ~inner]),
        inner=_words(run, texts[small], (first, other)[small]),
        within=_words(run, text, (first, other)[large]),
        smaller=(first, other)[small],
    )


def pairs_of(rivals: list[Rival]) -> list[tuple[Rival, Rival]]:
    """Who is compared: the best on train with every other one, and what the question asks about with each other."""
    named = [rival for rival in rivals[1:] if rival["by"] == QUESTION]
    return [
        *((rivals[0], other) for other in rivals[1:]),
        *((one, two) for place, one in enumerate(named) for two in named[place + 1 :]),
    ]


def _bare(condition: str) -> str:
    """A predicate without the `not` around it; a rule of more than one stays as it is."""
    clauses = Rule.parse(condition).clauses
    conditions = clauses[0].conditions
    return conditions[0].predicate if len(clauses) == len(conditions) == 1 else condition


def _words(run: Run, text: str, rival: Rival) -> str:
    """A side in words: the rival's own, or those of the predicate that it or its contrary is."""
    if text == rival["condition"]:
        return rival["words"]
    return (
        rule_in_words(text, run.task) if text != f"not ({rival['condition']})" else f"not ({rival['words']})"
    )
