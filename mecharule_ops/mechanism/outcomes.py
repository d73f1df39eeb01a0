"""What a predicted change does to the answer.

It turns attribution patching of logit differences into labels. Two predictions that are never mixed: that the answer
changes (first order), and what its label becomes. The second puts the competitor that wins in the place of the first
changed token and asks the task: where the task can tell from the completion up to there, that is the label; else the
rest of the clean completion is kept behind it. In 1→0 the two nearly agree, in 0→1 most changed answers stay wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Int

from mecharule_ops.loading.model import Subject
from mecharule_ops.tasks.base import Task
from mecharule_ops.types import BehaviourRecord


def predicted_labels(
    subject: Subject,
    task: Task,
    records: Sequence[BehaviourRecord],
    position: Int[np.ndarray, " record"],
    token: Int[np.ndarray, " record"],
) -> Bool[np.ndarray, " record"]:
    """The label of every record after its predicted change; its own where none is predicted (position −1)."""
    labels = np.array([record.label for record in records], bool)
    for row in np.flatnonzero(position >= 0).tolist():
        record, at = records[row], int(position[row])
        begun = (*record.tokens[:at], int(token[row]))
        decided = task.decide(record.example, subject.decode(begun))
        if decided is None:
            whole = (*begun, *record.tokens[at + 1 :])
            decided = task.label(record.example, subject.decode(whole))
        labels[row] = decided
    return labels
