"""What one ablation does to prompts that a person types: before, after, and the row that certifies it.

The replacement values are the run's own; the prompts need not be among its records. Cost: one completion a prompt
without and one with the ablation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool

from mecharule_ops.certificates.certificate import ExampleRow
from mecharule_ops.engine.asking import Group
from mecharule_ops.pipeline.certify import rows_of
from mecharule_ops.pipeline.run import Run
from mecharule_ops.predicates.language import evaluate, parse_predicate, schema_of
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.tasks.base import Task
from mecharule_ops.types import BehaviourRecord, Example, Intervention


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


def rule_fires(rule: Rule, task: Task, records: Sequence[BehaviourRecord]) -> Bool[np.ndarray, " record"]:
    """Where a rule fires on records, also on ones that no run has seen."""
    columns = task.columns(records)
    schema = schema_of(columns)
    return rule.fires(lambda text: evaluate(parse_predicate(text, schema), columns))


def unobserved(example: Example, task: Task) -> BehaviourRecord:
    """A record without a completion: enough for a rule over prompt columns."""
    return BehaviourRecord(
        example=example, tokens=(), completion="", parsed=task.parse(example, ""), label=False
    )
