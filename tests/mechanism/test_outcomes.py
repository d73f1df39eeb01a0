"""What a predicted change makes of the answer."""

from __future__ import annotations

import numpy as np
from toy_behaviour import toy

from mecharule_ops.mechanism.first_order import predicted_labels


def test_a_predicted_change_is_labelled_by_the_task() -> None:
    """Where the completion up to the change decides, that is the label; else the rest is kept."""
    bench = toy("llama", 40)
    task, subject = bench.task, bench.subject
    long = [record for record in bench.records if len(record.tokens) >= 4]
    position = np.array([index % 4 - 1 for index in range(len(long))])
    token = np.where(position >= 0, 20, -1)
    found = predicted_labels(subject, task, long, position, token)
    for row, record in enumerate(long):
        at = int(position[row])
        spliced = list(record.tokens)
        if at >= 0:
            spliced[at] = 20
        assert found[row] == task.label(record.example, subject.decode(spliced))
    assert (found != [record.label for record in long]).any()
