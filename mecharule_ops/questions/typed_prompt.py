"""What one ablation does to prompts that a person types, and what to expect by first order.

The replacement values are the run's own; the prompts need not be among its records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mecharule_ops.certificates.certificate import ExampleRow
from mecharule_ops.engine.group_questions import Group
from mecharule_ops.engine.settling import until_settled
from mecharule_ops.errors import UsageError
from mecharule_ops.mechanism.first_order import effects
from mecharule_ops.run.certify import rows_from
from mecharule_ops.run.live_run import Run
from mecharule_ops.tasks.base import Task
from mecharule_ops.tasks.text import TextTask
from mecharule_ops.types import BehaviourRecord, Example, Intervention, Neuron


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
    after = engine.completions([units], range(len(records)))
    return rows_from(after, 0, run.subject.decode, records, placed)


def unobserved(example: Example, task: Task) -> BehaviourRecord:
    """A record without a completion: enough for a rule over prompt columns."""
    return BehaviourRecord(
        example=example, tokens=(), completion="", parsed=task.parse(example, ""), label=False
    )


def typed_example(task: Task, text: str) -> Example:
    """The example of a typed prompt; of a table also of words that one prompt alone has, or of a prompt of one's own.

    Raises `UsageError`.
    """
    try:
        return task.read(text)
    except UsageError:
        if not isinstance(task, TextTask) or task.concealed:
            raise
        return task.holding(text)


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


def first_order_of_prompt(run: Run, unit: Neuron, record: BehaviourRecord) -> FirstOrderOfPrompt | None:
    """None without a token in reach. Cost: a clean pass, and a backward a generated token and competitor."""
    answer = until_settled(run.subject, run.task, [record])
    found = effects(run.subject, answer, run.replacement(run.intervention(unit.basis)), [unit])
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
