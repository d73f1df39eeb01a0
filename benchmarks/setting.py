"""What the benchmarks measure on: a model, its answers to the arithmetic task, 64 + 64 examples of one label."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from statistics import median

import numpy as np

from mecharule_ops.engine.ablation import AblationEngine
from mecharule_ops.engine.behaviour import Behaviour, observe
from mecharule_ops.engine.reference import ReferenceEngine
from mecharule_ops.loading.model import Subject
from mecharule_ops.loading.registry import load
from mecharule_ops.replacement.baselines import replacement_table
from mecharule_ops.tasks.base import Task
from mecharule_ops.tasks.registry import preset
from mecharule_ops.types import Intervention

SLICE = 64
"""Examples a slice, two slices."""
SMOLLM2 = "smollm2-135m"


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table."""

    figure: str
    value: float
    unit: str
    goal: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """A model, its observed behaviour and 64 + 64 examples of one label."""

    subject: Subject
    task: Task
    behaviour: Behaviour
    examples: list[int]

    def engines(self, intervention: Intervention) -> tuple[AblationEngine, ReferenceEngine]:
        """The fast engine, and the hooked decoding loop, which keeps the clean cache of all the examples."""
        records = self.behaviour.records
        table = replacement_table(self.subject, records, intervention)
        fast = AblationEngine(self.subject, self.task, records, intervention, table)
        rows = len(self.examples)
        return fast, ReferenceEngine(self.subject, self.task, records, intervention, table, rows=rows)


@cache
def setting(model: str, label: bool) -> Setting:
    """Behaviour on enough records to fill both slices with answers of one label."""
    subject, task = load(model), preset("arithmetic", model)
    behaviour = observe(task, subject, task.examples(700, np.random.default_rng(0)))
    chosen = np.flatnonzero(behaviour.labels == label)[: 2 * SLICE].tolist()
    return Setting(subject, task, behaviour, chosen)


def seconds(work: Callable[[], object], times: int = 3) -> float:
    """Median wall time of a call, after one that is not counted."""
    work()
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return median(taken)
