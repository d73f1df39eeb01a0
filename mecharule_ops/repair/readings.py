"""What a gate may read of a record, by family, and where a set of gates fires.

A gate does not read the columns that tell the right answer (`task.solution_columns`) unless it is told to: beside the
model's own tokens they would mark wrong answers instead of predicting them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from jaxtyping import Bool, Float32

from mecharule_ops.findings.repair_outcome import Gate, Policy
from mecharule_ops.loading.model import Subject
from mecharule_ops.mechanism.columns import (
    clean_run_columns,
    first_order_columns,
    mechanism_columns,
    written_columns,
)
from mecharule_ops.mechanism.effects import Effect
from mecharule_ops.mechanism.first_order import Effects, effects
from mecharule_ops.mechanism.leads import Leads
from mecharule_ops.predicates.cuts import PredicateColumns, column_predicates, evaluated
from mecharule_ops.predicates.language import parse_predicate, schema_of
from mecharule_ops.repair.gates import Acts, acting_units, units_of
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.rules.algebra import lookup_in
from mecharule_ops.rules.families import Family
from mecharule_ops.tasks.base import Task
from mecharule_ops.types import BehaviourRecord, Columns, Neuron, Phase


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Readings:
    """Columns of some records that the gates of one family may read."""

    family: Family
    records: int
    prompt: Columns
    """What is known before the model answers."""
    clean: Columns = field(default_factory=dict)
    """Of the clean run; empty in the input family."""
    leads: Leads | None = None
    """From which those are read."""
    drops: Effects | None = None
    pushes: Effects | None = None
    decode: Callable[[Sequence[int]], str] = str
    positions: tuple[int, ...] = ()

    @property
    def leads_alone(self) -> Readings:
        """The same with nothing but the numbers of the leads."""
        leads = {
            name: column
            for name, column in self.clean.items()
            if column.dtype.kind == "f" and name != "least_at"
        }
        return Readings(family=Family.CLEAN_RUN, records=self.records, prompt={}, clean=leads)

    def without(self, columns: frozenset[str]) -> Readings:
        """The same without some of the prompt's columns."""
        left = {name: column for name, column in self.prompt.items() if name not in columns}
        return replace(self, prompt=left)

    def of(self, unit: Neuron) -> dict[str, np.ndarray]:
        """Every column that a gate of this unit may read."""
        return {**self.prompt, **self.values(unit)}

    def values(self, unit: Neuron) -> dict[str, np.ndarray]:
        """Those beyond the prompt's."""
        if self.drops is None or self.pushes is None:
            return dict(self.clean)
        own = mechanism_columns(unit, self.drops, self.pushes, self.positions)
        return {**self.clean, **own, **first_order_columns(unit, self.drops, self.decode)}

    def features(self, unit: Neuron, texts: Sequence[str]) -> Float32[np.ndarray, "record column"]:
        """What trees read: these predicates, and the numbers as they are."""
        columns = self.of(unit)
        numbers = [column for column in columns.values() if column.dtype.kind in "if"]
        return np.column_stack([evaluated(texts, columns).matrix, *numbers]).astype(np.float32)


def read(
    subject: Subject,
    task: Task,
    records: Sequence[BehaviourRecord],
    replacement: ReplacementTable,
    family: Family,
    units: Sequence[Neuron],
    *,
    leads: Leads | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Readings:
    """The columns of the records' prompts, clean completions and units, as far as the family goes.

    Cost: nothing; one forward over prompts and completions, or none where the clean run's `leads` are known; or one
    with a backward a generated token in reach and competitor.
    """
    known = task.prompt_columns
    prompt = {name: column for name, column in task.columns(records).items() if name in known}
    if family is Family.INPUT:
        return Readings(family=family, records=len(records), prompt=prompt)
    asked = units if family is Family.MECHANISM else units[:1]
    pushes: Effects | None = None
    if leads is None or family is Family.MECHANISM:
        pushes = effects(subject, records, replacement, asked, effect=Effect.DIRECT, should_stop=should_stop)
        leads = pushes.leads
    positions = tuple(range(first_in_reach(replacement), task.max_new_tokens))
    clean = {
        **clean_run_columns(leads, subject.decode, positions),
        **written_columns(leads, subject.decode, range(task.max_new_tokens)),
    }
    found = Readings(family=family, records=len(records), prompt=prompt, clean=clean, leads=leads)
    if family is Family.CLEAN_RUN:
        return found
    drops = effects(subject, records, replacement, units, should_stop=should_stop)
    return replace(found, drops=drops, pushes=pushes, decode=subject.decode, positions=positions)


def first_in_reach(replacement: ReplacementTable) -> int:
    """The first generated token that an intervention can change, from 0."""
    return 1 if replacement.intervention.phase is Phase.DECODE else 0


def vocabulary(texts: Iterable[str], task: Task, columns: Columns, prompt: Columns) -> tuple[str, ...]:
    """Of the texts, distinct, those that read nothing but the prompt's columns given; `columns` are the task's."""
    schema = schema_of(columns)
    parsed = dict.fromkeys(parse_predicate(text, schema) for text in texts)
    return tuple(one.text for one in parsed if one.reads <= prompt.keys())


def predicates_of(
    readings: Readings, unit: Neuron, prompt_texts: PredicateColumns, learn: np.ndarray
) -> PredicateColumns:
    """The prompt's predicates, and those cut from the unit's other columns on the records `learn` (positions)."""
    values = readings.values(unit)
    if not values:
        return prompt_texts
    return prompt_texts.beside(evaluated(column_predicates(values, learn), values))


def firing(gates: Sequence[Gate], readings: Readings) -> Bool[np.ndarray, "gate record"]:
    """Where each gate's rule holds."""
    fires = np.zeros((len(gates), readings.records), bool)
    rules = [gate.parsed for gate in gates]
    # Columns that are no unit's own are evaluated once for all gates.
    read_of = [gate.unit if readings.drops is not None else None for gate in gates]
    for unit in dict.fromkeys(read_of):
        places = [place for place, other in enumerate(read_of) if other == unit]
        texts = sorted(frozenset[str]().union(*(rules[place].predicates for place in places)))
        table = evaluated(texts, readings.of(gates[places[0]].unit))
        lookup = lookup_in(table.matrix, table.texts)
        for place in places:
            fires[place] = rules[place].fires(lookup)
    return fires


def decided(
    subject: Subject,
    task: Task,
    replacement: ReplacementTable,
    gates: Sequence[Gate],
    policy: Policy,
    records: Sequence[BehaviourRecord],
    leads: Leads | None = None,
) -> Acts:
    """The units that are ablated on each record. Cost: that of the family's columns."""
    if not records or not gates:
        return [()] * len(records)
    family = next(each for each in reversed(Family) if any(gate.family is each for gate in gates))
    with torch.inference_mode(False), torch.enable_grad():
        readings = read(subject, task, records, replacement, family, units_of(gates), leads=leads)
    return acting_units(gates, firing(gates, readings), policy)
