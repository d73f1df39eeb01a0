"""Outcomes of weights in bfloat16 against float32 on the same weights: how many differ, how many are decided again.

`python benchmarks/precision.py [MODEL] [GROUPS] [RECORDS]` ablates random groups of one to eight MLP writes, and of
one head, both ways. It exits with 1 when any outcome differs.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from mecharule_ops.config import make_config
from mecharule_ops.engine.ablation import AblationEngine, Outcomes
from mecharule_ops.engine.behaviour import observe
from mecharule_ops.engine.precision import calibrate, multiplies_changes
from mecharule_ops.loading.registry import load
from mecharule_ops.replacement.baselines import replacement_table
from mecharule_ops.tasks.registry import task_of
from mecharule_ops.types import Basis, Intervention, Neuron


def main(model: str = "arith-tiny", groups: str = "200", records: str = "64") -> int:
    """Prints a line for each basis; the number of outcomes that differ decides the exit code."""
    subject = load(model, dtype="bfloat16")
    if not multiplies_changes(subject):
        print("this processor has no instructions for bfloat16 matrices: every product is in float32 anyway")
        return 0
    task, rng = task_of(make_config(model=model)), np.random.default_rng(0)
    seen = observe(task, subject, task.examples(int(records), rng)).records
    worst = 0
    for basis in (Basis.MLP_OUT, Basis.ATTN_HEAD):
        intervention = Intervention(basis=basis, phase=task.phase)
        table = replacement_table(subject, seen, intervention)
        asked = []
        for _ in range(int(groups)):
            layer, size = int(rng.integers(subject.n_layers)), int(rng.integers(1, 9))
            chosen = rng.choice(subject.width(basis), 1 if basis.row.heads else size, replace=False)
            asked.append(tuple(Neuron(basis, layer, int(channel)) for channel in chosen))
        calibration = calibrate(subject, task, seen, table)
        outcomes: list[Outcomes] = []
        seconds = []
        for slope in (None, calibration.slope):
            engine = AblationEngine(subject, task, seen, intervention, table, slope=slope)
            engine.evaluate(asked[:1], range(len(seen)))
            began = time.perf_counter()
            outcomes.append(engine.evaluate(asked, range(len(seen))))
            seconds.append(time.perf_counter() - began)
        true, found = outcomes
        differ = int((true.labels != found.labels).sum())
        worst = max(worst, differ)
        print(
            f"{model} {basis}: {differ} of {true.labels.size:,} outcomes differ, {found.decided_again:,} decided again "
            f"({found.decided_again / true.labels.size:.2%}), time {seconds[1] / seconds[0]:.2f} of float32 products; "
            f"calibration on {calibration.compared:,} leads, {calibration.turned} turned"
        )
    return int(worst > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
