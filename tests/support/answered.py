"""Records of a task's examples with completions that no model wrote."""

import numpy as np

from mecharule_ops.tasks.base import Task
from mecharule_ops.types import BehaviourRecord, Example


def answered(task: Task, example: Example, completion: str = "") -> BehaviourRecord:
    """The example, answered so and labelled by its task."""
    parsed, label = task.parse(example, completion), task.label(example, completion)
    return BehaviourRecord(example=example, tokens=(1,), completion=completion, parsed=parsed, label=label)


def all_answered(task: Task, *completions: str, count: int = 10**6) -> list[BehaviourRecord]:
    """The task's first examples, or all, answered in turn; one completion is everybody's."""
    count = len(completions) if len(completions) > 1 else count
    examples = task.examples(count, np.random.default_rng(0))
    said = completions if len(completions) > 1 else [*completions, ""][:1] * len(examples)
    return [answered(task, *pair) for pair in zip(examples, said, strict=True)]
