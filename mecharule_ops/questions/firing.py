"""Where a rule fires on records, whether or not a run has seen them. Loads no model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool

from mecharule_ops.predicates.language import evaluate, parse_predicate, schema_of
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.tasks.base import Task
from mecharule_ops.types import BehaviourRecord


def rule_fires(rule: Rule, task: Task, records: Sequence[BehaviourRecord]) -> Bool[np.ndarray, " record"]:
    """Where a rule fires on records, also on ones that no run has seen."""
    columns = task.columns(records)
    schema = schema_of(columns)
    return rule.fires(lambda text: evaluate(parse_predicate(text, schema), columns))
