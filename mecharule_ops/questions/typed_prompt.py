"""What one ablation does to prompts that a person types, and what is predicted of it: by first order, by the trees.

The replacement values are the run's own; the prompts need not be among its records. Cost: one completion a prompt
without and one with the ablation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mecharule_ops.certificates.certificate import ExampleRow
from mecharule_ops.engine.group_questions import Group
from mecharule_ops.mechanism.first_order import effects
from mecharule_ops.predicates.cuts import evaluated
from mecharule_ops.rules.trees import Pushes
from mecharule_ops.run.certify import rows_of
from mecharule_ops.run.live_run import Run
from mecharule_ops.tasks.base import Task
from mecharule_ops.types import BehaviourRecord, Example, Intervention, Neuron, Regime


def observed(run: Run, examples: Sequence[Example]) -> tuple[BehaviourRecord, ...]:
    """What the unablated model does on the examples, in order."""
    subject, task = run.subject, run.task
    prompts = subject.encode([example.prompt for example in examples])
    generation = subject.generate(prompts, task.max_new_tokens, subject.stop_ids(task.stop))
    records = []
    for example, tokens, margin in zip(examples, generation.tokens, generation.margins, strict=True):
        text = subject.decode(tokens)
        record = BehaviourRecord(
            example=example,
            tokens=tokens,
            completion=text,
            parsed=task.parse(example, text),
            label=task.label(example, text),
            margin=float(margin),
        )
        records.append(record)
    return tuple(records)


def ablated_rows(
    run: Run,
    intervention: Intervention,
    units: Group,
    records: Sequence[BehaviourRecord],
    slices: Sequence[str],
) -> tuple[ExampleRow, ...]:
    """Each record before and after the ablation, in the slice named for it."""
    engine = run.completer(intervention, records=records)
    placed = [(name, place) for place, name in enumerate(slices)]
    return rows_of(engine, run.subject.decode, records, units, placed)


def unobserved(example: Example, task: Task) -> BehaviourRecord:
    """A record without a completion: enough for a rule over prompt columns."""
    return BehaviourRecord(
        example=example, tokens=(), completion="", parsed=task.parse(example, ""), label=False
    )


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
