"""What one ablation does to prompts that a person types, and what to expect: by first order, similar records.

The replacement values are the run's own; the prompts need not be among its records. Records are similar when every
category is equal: a field that is no number and whose values repeat, so no free text. Among those the closest are
taken, in Manhattan distance over the numbers, each scaled by its range in the records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from mecharule_ops.certificates.certificate import ExampleRow
from mecharule_ops.confidence import lower_bound, upper_bound
from mecharule_ops.engine.group_questions import Group
from mecharule_ops.engine.settling import until_settled
from mecharule_ops.errors import UsageError
from mecharule_ops.mechanism.first_order import effects
from mecharule_ops.run.certify import rows_from
from mecharule_ops.run.live_run import Run
from mecharule_ops.tasks.base import Task
from mecharule_ops.tasks.text import TextTask
from mecharule_ops.types import BehaviourRecord, Example, FlipCount, Intervention, Neuron, Value

_CATEGORIES = 12
"""A field with at most this many values is a category, however few records there are."""


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
    """The example of a typed prompt, or of words that one prompt of a table alone has. Raises `UsageError`."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourFlips:
    """How often the most similar records flip."""

    count: FlipCount
    lower: float
    """Two-sided Clopper–Pearson interval at 1 − α of the flip rate, as if the records were drawn at random."""
    upper: float


def nearest(
    fields: Mapping[str, Value], records: Sequence[Mapping[str, Value]], count: int
) -> Int[np.ndarray, " near"]:
    """Positions of up to `count` matching records, closest first; ties by position."""
    categories = _categories(fields, records)
    matching = [
        place
        for place, other in enumerate(records)
        if fields.keys() == other.keys() and all(other[name] == fields[name] for name in categories)
    ]
    if not matching or count < 1:
        return np.zeros(0, np.int64)
    names = [name for name, value in fields.items() if _is_number(value)]
    values = np.array([[float(records[place][name]) for name in names] for place in matching])
    spread = np.ptp(values, axis=0) if names else np.zeros(0)
    here = np.array([float(fields[name]) for name in names])
    distance = (np.abs(values - here) / np.where(spread > 0, spread, 1.0)).sum(axis=1)
    closest = np.argsort(distance, kind="stable")[:count]
    return np.array(matching, np.int64)[closest]


def flips_with_interval(flips: int, n: int, alpha: float) -> NeighbourFlips:
    """The flips of n neighbours with their interval; [0, 1] without neighbours."""
    count = FlipCount(flips=flips, n=n)
    if n == 0:
        return NeighbourFlips(count=count, lower=0.0, upper=1.0)
    lower, upper = lower_bound(flips, n, alpha / 2), upper_bound(flips, n, alpha / 2)
    return NeighbourFlips(count=count, lower=lower, upper=upper)


def _categories(fields: Mapping[str, Value], records: Sequence[Mapping[str, Value]]) -> list[str]:
    """Fields that are no numbers and not free text, of which no two records need share a value."""
    names = [name for name, value in fields.items() if not _is_number(value)]
    distinct = {name: len({str(record.get(name)) for record in records}) for name in names}
    return [name for name in names if distinct[name] <= max(_CATEGORIES, len(records) // 2)]


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
