"""What is predicted of a typed prompt before anything is ablated: by first order, and by the free-form predictor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mecharule_ops.mechanism.first_order import effects
from mecharule_ops.pipeline.run import Run
from mecharule_ops.predicates.cuts import evaluated
from mecharule_ops.rules.trees import Pushes
from mecharule_ops.types import BehaviourRecord, Neuron, Regime


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstOrderOfPrompt:
    """Lead and first-order drop where most is left of drop − lead."""

    position: int
    """Generated token, counted from 1."""
    generated: str
    competitor: str
    """The token that would take its place."""
    lead: float
    """In logits."""
    drop: float

    @property
    def changes(self) -> bool:
        """L_j(x): whether first order says that the answer changes."""
        return self.drop > self.lead


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictorOfPrompt:
    """What the free-form predictor says, and what it goes by."""

    probability: float
    threshold: float
    pushes: Pushes
    """Of this prompt alone."""
    rest: float
    """Log-odds that the predicates left out add."""

    @property
    def flips(self) -> bool:
        """Whether it predicts a flip."""
        return self.probability >= self.threshold


def first_order_of_prompt(run: Run, unit: Neuron, record: BehaviourRecord) -> FirstOrderOfPrompt | None:
    """None without a token in reach. Cost: a clean pass, and a backward a generated token and competitor."""
    found = effects(run.subject, [record], run.replacement(run.intervention(unit.basis)), [unit])
    lead, drop = found.leads.lead[0], found.effect[0, :, :, 0]
    beyond = np.nan_to_num(drop - lead, nan=-np.inf)
    if not np.isfinite(beyond).any():
        return None
    position, competitor = np.unravel_index(int(beyond.argmax()), beyond.shape)
    return FirstOrderOfPrompt(
        position=int(position) + 1,
        generated=run.subject.decode((int(found.leads.generated[0, position]),)),
        competitor=run.subject.decode((int(found.leads.token[0, position, competitor]),)),
        lead=float(lead[position, competitor]),
        drop=float(drop[position, competitor]),
    )


def predictor_of_prompt(
    run: Run, unit: Neuron, regime: Regime, record: BehaviourRecord
) -> PredictorOfPrompt | None:
    """None where the run holds no predictor of the unit. Cost: no model call."""
    predictor = run.free_form(unit, regime)
    if predictor is None:
        return None
    matrix = evaluated(predictor.predicates, run.task.columns([record])).matrix
    probability = float(predictor.probabilities(matrix)[0])
    pushes = predictor.pushes(matrix)
    shown = pushes.base + sum(push.towards[0] for push in pushes.predicates)
    return PredictorOfPrompt(
        probability=probability,
        threshold=predictor.threshold,
        pushes=pushes,
        rest=float(np.log(probability / (1 - probability)) - shown),
    )
