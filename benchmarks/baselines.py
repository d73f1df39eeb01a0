"""What each replacement baseline says of the same units: flips of correct answers, and values out of range.

SmolLM2-135M, `+` on 0–99, four-shot, decode phase, 64 correct answers. `slot0` is what the published code writes:
the mean at the first sequence slot, where the massive activations of an attention sink live.

    python benchmarks/baselines.py
"""

from __future__ import annotations

import numpy as np

from mecharule_ops.ablation import AblationEngine
from mecharule_ops.behaviour import observe
from mecharule_ops.subject.baselines import replacement_table
from mecharule_ops.subject.registry import load
from mecharule_ops.tasks.registry import preset
from mecharule_ops.types import Baseline, Basis, Intervention, Neuron

UNITS = ("m0.308", "m1.507", "m2.507", "m9.507", "m10.507", "m11.507", "m13.247", "m28.507")
BASELINES = (Baseline.MEAN_POSITIONAL, Baseline.MEAN, Baseline.ZERO, Baseline.SLOT0)


def main() -> None:
    subject, task = load("smollm2-135m"), preset("arithmetic", "smollm2-135m")
    records = observe(task, subject, task.examples(320, np.random.default_rng(0))).records
    correct = [place for place, record in enumerate(records) if record.label][:64]
    groups = [(Neuron.parse(unit),) for unit in UNITS]
    print(f"{'unit':8} " + " ".join(f"{baseline.value:>24}" for baseline in BASELINES))
    cells = []
    for baseline in BASELINES:
        intervention = Intervention(basis=Basis.MLP_OUT, baseline=baseline)
        table = replacement_table(subject, records, intervention)
        flips = ~AblationEngine(subject, task, records, intervention, table).evaluate(groups, correct).labels
        column = []
        for (unit,), row in zip(groups, flips, strict=True):
            outside, replaced = table.out_of_range(unit)
            column.append(f"{int(row.sum())}/{len(row)} flip, {outside / replaced:.0%} outside")
        cells.append(column)
    for unit, row in zip(UNITS, zip(*cells, strict=True), strict=True):
        print(f"{unit:8} " + " ".join(f"{cell:>24}" for cell in row))


if __name__ == "__main__":
    main()
