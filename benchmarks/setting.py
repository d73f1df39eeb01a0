"""What the benchmarks measure on: a model on a device, its answers to the arithmetic task, examples of one label."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from statistics import median

import numpy as np

from mecharule_ops.config import make_config
from mecharule_ops.engine.ablation import AblationEngine
from mecharule_ops.engine.behaviour import Behaviour, observe
from mecharule_ops.engine.precision import calibrate, multiplies_changes
from mecharule_ops.engine.reference import ReferenceEngine
from mecharule_ops.loading.model import Subject
from mecharule_ops.loading.model_names import load
from mecharule_ops.replacement.baselines import replacement_table
from mecharule_ops.subsets import some_places
from mecharule_ops.tasks.base import Task
from mecharule_ops.tasks.task_names import task_of
from mecharule_ops.types import Intervention

SLICE = 64
"""Examples a slice, two slices."""
SMOLLM2 = "smollm2-135m"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Which model is measured, where and how much of it."""

    model: str = SMOLLM2
    device: str = "cpu"
    dtype: str = "float32"
    records: int = 700
    """Examples that the behaviour is observed on."""
    slice: int = SLICE
    """Examples a slice, at most."""

    def goal(self, text: str) -> str:
        """A goal of the project, which stands on SmolLM2 in float32."""
        return text if (self.model, self.dtype) == (SMOLLM2, "float32") else ""


DEFAULT = Case()


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table."""

    figure: str
    value: float
    unit: str
    goal: str = ""
    note: str = ""
    section: str = ""
    made: str = ""
    """At which commit, on what class of machine."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Setting:
    """A model, its observed behaviour and examples of one label for two slices."""

    case: Case
    subject: Subject
    task: Task
    behaviour: Behaviour
    examples: list[int]

    @cached_property
    def depths(self) -> tuple[int, int, int]:
        """A low, a middle and a high layer: 2, 14 and 28 of 30."""
        layers = self.subject.n_layers
        high = max(0, layers - 2)
        return min(2, high), min(max(0, layers // 2 - 1), high), high

    def engines(self, intervention: Intervention) -> tuple[AblationEngine, ReferenceEngine]:
        """The fast engine as a run makes it, and the hooked decoding loop, which keeps the examples' clean cache."""
        records = self.behaviour.records
        table = replacement_table(self.subject, records, intervention)
        asked = self.subject, self.task, records, intervention, table
        slope = None
        if multiplies_changes(self.subject):
            slope = calibrate(self.subject, self.task, records, table)
        return AblationEngine(*asked, slope=slope), ReferenceEngine(*asked, rows=len(self.examples))


@cache
def setting(case: Case, label: bool) -> Setting:
    """Behaviour on the case's records, and as many of one label as fill both slices, where there are as many."""
    subject = load(case.model, case.device, case.dtype)
    task = task_of(make_config(model=case.model))
    behaviour = observe(task, subject, task.examples(case.records, np.random.default_rng(0)))
    places = np.flatnonzero(behaviour.labels == label)
    chosen = some_places(behaviour.records, places, 2 * case.slice, of="slices").tolist()
    return Setting(case=case, subject=subject, task=task, behaviour=behaviour, examples=chosen)


def seconds(work: Callable[[], object], times: int = 3) -> float:
    """Median wall time of a call, after one that is not counted."""
    work()
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return median(taken)
