"""The experiments by name: what each asks, which runs it needs, and what it makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mecharule_ops.errors import UsageError
from mecharule_ops.experiments import by_baseline, e0, e1, e2, sensitivity, shared_units
from mecharule_ops.experiments.page import ExperimentPart
from mecharule_ops.experiments.requested_runs import ExperimentRequest, PlannedRun, PlannedRunDone

ALL = "all"
"""The word for every experiment on one page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One experiment of the paper."""

    title: str
    question: str
    plan: Callable[[ExperimentRequest], tuple[PlannedRun, ...]]
    """The runs it needs. Raises `UsageError` when the request does not allow it."""
    part: Callable[[Sequence[PlannedRunDone]], ExperimentPart]
    """What it shows once they are finished; no model, no disk."""


EXPERIMENTS: Mapping[str, Experiment] = {
    "e0": Experiment(
        title="E0: the whole pipeline",
        question="How many units does the pipeline localize, how many get a good rule, what do they flip together?",
        plan=e0.plan,
        part=e0.part,
    ),
    "e1": Experiment(
        title="E1: splits and coverage",
        question="Do slices split by a learned rule lead to more units with a good rule than three other slices?",
        plan=e1.plan,
        part=e1.part,
    ),
    "e2": Experiment(
        title="E2: the search against brute force",
        question="Which τ-agonists does the search find of those that testing every unit alone finds, at what cost?",
        plan=e2.plan,
        part=e2.part,
    ),
    "sensitivity": Experiment(
        title="Sensitivity",
        question="How do the counts and the cost depend on τ, the candidate cap, α, n per slice, completion length?",
        plan=sensitivity.plan,
        part=sensitivity.part,
    ),
    "baselines": Experiment(
        title="Replacement baselines",
        question="What does each replacement baseline make of the same units, and does it stay inside the data?",
        plan=by_baseline.plan,
        part=by_baseline.part,
    ),
    "overlap": Experiment(
        title="Overlap",
        question="Which units and flips are shared between conditions, tasks, bases, regimes, and with attribution?",
        plan=shared_units.plan,
        part=shared_units.part,
    ),
}


def chosen(name: str) -> tuple[str, ...]:
    """The experiments that a word names: one, several with commas, or all. Raises `UsageError` with the known ones."""
    if name == ALL:
        return tuple(EXPERIMENTS)
    names = tuple(dict.fromkeys(name.split(",")))
    if unknown := [one for one in names if one not in EXPERIMENTS]:
        raise UsageError(f"expected an experiment of: {', '.join(EXPERIMENTS)} or {ALL}; got {unknown[0]!r}")
    return names
