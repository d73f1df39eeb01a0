"""What generation costs under an attached gate over plain generation: 64 prompts at once, the median ratio of rounds.

The gates are those of one seed in the file that `benchmarks.repair` wrote; both ways run in turn in this process.

    python -m benchmarks.repair_cost [--known benchmarks/repair.json] [--rounds 15]
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
from mecharule_ops.findings.repair import Repair
from mecharule_ops.loading.model import Subject
from mecharule_ops.loading.registry import load
from mecharule_ops.repair.attached import LoadedGate
from mecharule_ops.repair.folder import FORMAT, GateFile, described
from mecharule_ops.replacement.baselines import replacement_table
from mecharule_ops.rules.families import Family
from mecharule_ops.tasks.base import Task
from mecharule_ops.tasks.registry import preset
from mecharule_ops.types import BehaviourRecord, Intervention

ROWS = 64


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
        versions={},
    )
    return LoadedGate(stated, table, task)


def ratio(gate: LoadedGate, subject: Subject, records: tuple[BehaviourRecord, ...], rounds: int) -> float:
    """Median over rounds of gated time over plain time."""
    prompts = subject.encode([record.example.prompt for record in records[:ROWS]])
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
    given = parser.parse_args()
    found = [decode(Repair, one) for one in json.loads(given.known.read_text(encoding="utf-8"))["repairs"]]
    subject, task = load("arith-tiny"), preset("arithmetic", "arith-tiny")
    records = observe(task, subject, task.examples(256, np.random.default_rng(0))).records
    for family in Family:
        made = next((one for one in found if one.family is family and one.gates and not one.solution), None)
        if made is not None:
            times = ratio(loaded(made, subject, task, records), subject, records, given.rounds)
            print(f"{family.value}: {len(made.gates)} clauses, {times:.2f} × the time of plain generation")


if __name__ == "__main__":
    main()
