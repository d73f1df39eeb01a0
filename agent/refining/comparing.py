"""What a language model added to a refinement, in numbers, beside the offline grammar on the same units."""

from __future__ import annotations

from dataclasses import dataclass

from agent.refining.loop import Refined
from agent.refining.state import Refinement, UnitReport

_RISE = 0.005
"""Least rise of a held-out MCC that counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What became of everything that one proposer suggested."""

    proposer: str
    predicates: int
    accepted: int
    in_rules: int
    hypotheses: int
    """Stated with a condition that was not tested before."""
    stand: int
    """Kept on train records and supported on the held-out ones."""
    raised: int
    """Units whose rule predicts the held-out flips better than before."""

    def __str__(self) -> str:
        return (
            f"{self.proposer}: {self.predicates} predicates, {self.accepted} pass the filters, {self.in_rules} are in "
            f"a rule; {self.hypotheses} hypotheses, {self.stand} stand held out; {self.raised} units predicted better"
        )


def tally(refined: Refined) -> Tally:
    """The sums over a refinement's units."""
    reports = refined.reports
    return Tally(
        proposer=refined.proposer,
        predicates=sum(report["proposed"] for report in reports),
        accepted=sum(report["accepted"] for report in reports),
        in_rules=sum(report["in_rule"] for report in reports),
        hypotheses=sum(len(_conditions(report)) for report in reports),
        stand=sum(report["stands"] for report in reports),
        raised=sum((report["after"] or 0.0) > (report["before"] or 0.0) + _RISE for report in reports),
    )


def _conditions(report: UnitReport) -> set[str]:
    """The conditions of all hypotheses that were stated about a unit."""
    ideas = (Refinement.model_validate(said).hypothesis for said in report["said"])
    return {idea.condition.strip() for idea in ideas if idea is not None}


def compared(model: Refined, offline: Refined) -> list[str]:
    """Both tallies, and in words what the model added."""
    told, other = tally(model), tally(offline)
    return [f"on the same {len(model.reports)} units:", f"  {told}", f"  {other}", _added(told, other)]


def _added(model: Tally, offline: Tally) -> str:
    if not model.in_rules and not model.stand:
        return f"{model.proposer} added nothing: none of its predicates is in a rule and none of its hypotheses stands"
    if model.raised > offline.raised or model.stand > offline.stand:
        return f"{model.proposer} found what the offline grammar did not"
    return f"{model.proposer} found no more than the offline grammar finds without a model"
