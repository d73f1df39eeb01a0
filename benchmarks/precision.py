"""Outcomes by products of the change against float32 on the same weights: how many differ, or are decided again.

`python benchmarks/precision.py [MODEL] [GROUPS] [RECORDS] [DTYPE]` ablates random groups of one to eight MLP writes,
and of one head, both ways. It exits with 1 when any outcome differs.
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from setting import Case, Figure

from mecharule_ops.config import make_config
from mecharule_ops.engine.ablation import AblationEngine
from mecharule_ops.engine.behaviour import observe
from mecharule_ops.engine.outcomes import Outcomes
from mecharule_ops.engine.precision import calibrate, multiplies_changes
from mecharule_ops.loading.model_names import load
from mecharule_ops.replacement.baselines import replacement_table
from mecharule_ops.tasks.task_names import task_of
from mecharule_ops.types import Basis, Intervention, Neuron


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One basis, both ways."""

    basis: Basis
    outcomes: int
    differ: int
    again: int
    """Outcomes that were decided again in float32."""
    time: float
    """Over that of products in float32."""
    slope: float
    """A lead below it, times the movement, was decided again."""


def compared(case: Case, groups: int) -> Iterator[Compared]:
    """Random groups on the case's records for MLP writes and heads; nothing where products of the change do not pay."""
    subject = load(case.model, case.device, case.dtype)
    if not multiplies_changes(subject):
        return
    task, rng = task_of(make_config(model=case.model)), np.random.default_rng(0)
    seen = observe(task, subject, task.examples(case.records, rng)).records
    for basis in (Basis.MLP_OUT, Basis.ATTN_HEAD):
        intervention = Intervention(basis=basis, phase=task.phase)
        table = replacement_table(subject, seen, intervention)
        asked = []
        for _ in range(groups):
            layer, size = int(rng.integers(subject.n_layers)), int(rng.integers(1, 9))
            chosen = rng.choice(subject.width(basis), 1 if basis.row.heads else size, replace=False)
            asked.append(tuple(Neuron(basis, layer, int(channel)) for channel in chosen))
        calibrated = calibrate(subject, task, seen, table)
        outcomes: list[Outcomes] = []
        seconds = []
        for slope in (None, calibrated):
            engine = AblationEngine(subject, task, seen, intervention, table, slope=slope)
            engine.evaluate(asked[:1], range(len(seen)))
            began = time.perf_counter()
            outcomes.append(engine.evaluate(asked, range(len(seen))))
            seconds.append(time.perf_counter() - began)
        true, found = outcomes
        yield Compared(
            basis=basis,
            outcomes=true.labels.size,
            differ=int((true.labels != found.labels).sum()),
            again=found.decided_again,
            time=seconds[1] / seconds[0],
            slope=calibrated,
        )


def precision(case: Case, groups: int = 60) -> Iterator[Figure]:
    """Outcomes by products of the change against float32: how many differ, are decided again, cost."""
    for one in compared(replace(case, records=min(case.records, 64)), groups):
        of = f"in {case.dtype}, {case.model} {one.basis}"
        note = f"of {one.outcomes:,}"
        yield Figure(f"outcomes that differ {of}", one.differ, "", "0", note)
        yield Figure(f"share decided again {of}", one.again / one.outcomes, "", "≤ 0.05", note)
        yield Figure(f"time over float32 products {of}", one.time, "", "≤ 0.70", note)


def main(model: str = "arith-tiny", groups: str = "200", records: str = "64", dtype: str = "bfloat16") -> int:
    """Prints a line for each basis; the number of outcomes that differ decides the exit code."""
    worst = -1
    for one in compared(Case(model=model, dtype=dtype, records=int(records)), int(groups)):
        worst = max(worst, one.differ)
        print(
            f"{model} {one.basis}: {one.differ} of {one.outcomes:,} outcomes differ, {one.again:,} decided again "
            f"({one.again / one.outcomes:.2%}), time {one.time:.2f} of float32 products; "
            f"slope {one.slope:.2g}"
        )
    if worst < 0:
        print("every product is in float32: those of the change would not pay for this model and device")
    return int(worst > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
