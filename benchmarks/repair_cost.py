"""What generation costs under an attached gate over plain generation: 64 prompts at once, the median ratio of rounds.

The gates are those of one seed in the file that `benchmarks/repair.py` wrote, or with `--unit` one gate a family that
is written here and mends nothing; both ways run in turn in this process.

    python benchmarks/repair_cost.py [--known benchmarks/repair.json] [--rounds 15] [--model NAME --unit UNIT]
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from mecharule_ops.codec import decode
from mecharule_ops.engine.behaviour import observe
from mecharule_ops.findings.repair_outcome import Gate, Repair, RepairStatus
from mecharule_ops.loading.model import Subject
from mecharule_ops.loading.model_names import load
from mecharule_ops.repair.attached import LoadedGate
from mecharule_ops.repair.gate_folder import FORMAT, GateFile, described
from mecharule_ops.replacement.baselines import replacement_table
from mecharule_ops.rules.families import Family
from mecharule_ops.subsets import some_records
from mecharule_ops.tasks.base import Task
from mecharule_ops.tasks.task_names import preset
from mecharule_ops.types import BehaviourRecord, Intervention, Neuron, Regime

ROWS = 64
BY_HAND = {
    Family.INPUT: "a >= b",
    Family.CLEAN_RUN: "least_lead < 0.5",
    Family.MECHANISM: "drop_minus_lead >= 0",
}


def loaded(made: Repair, subject: Subject, task: Task, records: tuple[BehaviourRecord, ...]) -> LoadedGate:
    """The gates as an export would hold them, on replacement values of these records."""
    table = replacement_table(subject, records, Intervention(basis=made.basis, phase=task.phase))
    how = table.intervention
    stated = GateFile(
        format=FORMAT,
        run=made.run,
        model=subject.name,
        model_hash=subject.model_hash,
        tokenizer_hash=subject.tokenizer_hash,
        task=described(task.describe()),
        basis=how.basis,
        baseline=how.baseline,
        phase=how.phase,
        values_hash=table.hash,
        gates=made.gates,
        policy=made.policy,
        versions={},
    )
    return LoadedGate(stated, table, task)


def by_hand(unit: Neuron, family: Family) -> Repair:
    """One gate of a unit, as a repair would hold it."""
    gate = Gate(unit=unit, family=family, rule=BY_HAND[family], gain=0.1, fixed=1, broken=0, fired=1)
    return Repair(
        run="by hand",
        regime=Regime.BASELINE_NEGATIVE,
        basis=unit.basis,
        family=family,
        status=RepairStatus.OPEN,
        seed=0,
        solution=False,
        tried=1,
        fresh=True,
        gates=(gate,),
    )


def ratio(gate: LoadedGate, subject: Subject, records: tuple[BehaviourRecord, ...], rounds: int) -> float:
    """Median over rounds of gated time over plain time."""
    prompts = subject.encode([record.example.prompt for record in some_records(records, ROWS, of="cost")])
    width = max(map(len, prompts))
    ids = torch.tensor([[0] * (width - len(one)) + list(one) for one in prompts])
    mask = torch.tensor([[0] * (width - len(one)) + [1] * len(one) for one in prompts])
    model: Any = subject.hf
    given = {
        "attention_mask": mask,
        "max_new_tokens": gate.task.max_new_tokens,
        "do_sample": False,
        "eos_token_id": sorted(subject.stop_ids(gate.task.stop)),
        "pad_token_id": 0,
    }

    def seconds() -> float:
        began = time.perf_counter()
        model.generate(ids, **given)
        return time.perf_counter() - began

    taken = []
    for _ in range(rounds + 1):
        plain = seconds()
        with gate.attached(model, subject.tokenizer):
            taken.append(seconds() / plain)
    return median(taken[1:])


def main() -> None:
    """Prints a line a family."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--known", type=Path, default=Path(__file__).parent / "repair.json")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--model", default="arith-tiny")
    parser.add_argument("--unit")
    given = parser.parse_args()
    if given.unit:
        found = [by_hand(Neuron.parse(given.unit), family) for family in Family]
    else:
        found = [
            decode(Repair, one) for one in json.loads(given.known.read_text(encoding="utf-8"))["repairs"]
        ]
    subject, task = load(given.model), preset("arithmetic", given.model)
    records = observe(task, subject, task.examples(ROWS, np.random.default_rng(0))).records
    for family in Family:
        made = next((one for one in found if one.family is family and one.gates and not one.solution), None)
        if made is not None:
            times = ratio(loaded(made, subject, task, records), subject, records, given.rounds)
            print(f"{family.value}: {len(made.gates)} clauses, {times:.2f} × the time of plain generation")


if __name__ == "__main__":
    main()
