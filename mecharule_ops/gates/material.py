"""Records in three splits, units, and what each unit's ablation does to the first two.

The records are fresh ones of the task's own generator where it has enough that the run never observed; else the run's
own, its held-out ones as the test. Outcomes of the test records are measured elsewhere and once. A gate reads what is
known before the model answers, without the columns that tell the right answer: these would mark wrong answers instead
of predicting them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Int

from mecharule_ops import errors, subsets, thresholds
from mecharule_ops.engine import ablation, behaviour, reference
from mecharule_ops.gates import learning, outcome
from mecharule_ops.predicates import cuts, language
from mecharule_ops.rules.algebra import Rule, lookup_in
from mecharule_ops.run import live_run, preparation
from mecharule_ops.tasks.base import Task
from mecharule_ops.types import BehaviourRecord, Columns, Example, Neuron

LEAST = 60
"""Records of a split below which fresh ones do not stand in for the run's own."""
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Material:
    """Records, splits and outcomes."""

    run: live_run.Run
    asked: outcome.GatesAsked
    records: tuple[BehaviourRecord, ...]
    good: Bool[np.ndarray, " record"]
    """Where the outcome is the wanted one without any ablation."""
    find: Int[np.ndarray, " find"]
    choose: Int[np.ndarray, " choose"]
    test: Int[np.ndarray, " test"]
    fresh: bool
    engine: ablation.AblationEngine | reference.ReferenceEngine
    """Over all records."""
    units: tuple[Neuron, ...] = ()
    alone: Bool[np.ndarray, "unit learn"]
    """Whether the outcome of each find record, then each choose record, is the wanted one under each unit."""

    @property
    def learn(self) -> Int[np.ndarray, " learn"]:
        """The find records, then the choose records."""
        return np.concatenate([self.find, self.choose])

    def at(self, positions: Sequence[int] | np.ndarray) -> list[BehaviourRecord]:
        """The records at some positions."""
        return [self.records[position] for position in positions]

    def columns(self, positions: Int[np.ndarray, " some"]) -> Columns:
        """What a gate may read of some records."""
        return readable(self.run.task, self.at(positions))

    @property
    def texts(self) -> tuple[str, ...]:
        """The run's vocabulary and the task's larger one, as far as a gate may read it."""
        task, records = self.run.task, self.at(self.learn)
        schema, known = language.schema_of(task.columns(records)), readable(task, records).keys()
        offered = (*self.run.vocabulary["kept"], *task.account_predicates())
        parsed = dict.fromkeys(language.parse_predicate(text, schema) for text in offered)
        return tuple(one.text for one in parsed if one.reads <= known)

    def answered(self, positions: Int[np.ndarray, " some"], answers: Sequence[str]) -> np.ndarray:
        """Where another answer to each record would be of the wanted outcome."""
        label, records = self.run.task.label, self.at(positions)
        labels = [label(record.example, text) for record, text in zip(records, answers, strict=True)]
        return self.asked.regime.flipped(np.array(labels, bool))

    def on(self, units: Sequence[Neuron]) -> "Material":
        """The same with these units, those that fix none of the find records left out. Cost: each on both splits."""
        learn, split = self.learn, len(self.find)
        if not units:
            return replace(self, units=(), alone=np.zeros((0, len(learn)), bool))
        wanted = self.asked.regime.flipped(
            self.engine.evaluate([(unit,) for unit in units], learn.tolist()).labels
        )
        fixes = (wanted[:, :split] & ~self.good[self.find]).any(axis=1)
        kept = tuple(unit for unit, fixed in zip(units, fixes, strict=True) if fixed)
        return replace(self, units=kept, alone=wanted[fixes])


def readable(task: Task, records: Sequence[BehaviourRecord]) -> Columns:
    """The columns of records that are known before the model answers and do not tell the right answer."""
    known = task.prompt_columns - task.solution_columns
    return {name: column for name, column in task.columns(records).items() if name in known}


def acting_units(gates: Sequence[outcome.Gate], columns: Columns, records: int) -> dict[Neuron, list[int]]:
    """The places of the records on which the gates ablate each unit."""
    texts = sorted(frozenset[str]().union(*(gate.rule.predicates for gate in gates)))
    table: cuts.PredicateColumns = cuts.evaluated(texts, columns)
    lookup = lookup_in(table.matrix, table.texts)
    fires = np.array([gate.rule.fires(lookup) for gate in gates], bool).reshape(len(gates), records)
    found: dict[Neuron, list[int]] = {}
    for place, gate in enumerate(learning.acting([one.gain for one in gates], fires).tolist()):
        if gate != learning.NOTHING:
            found.setdefault(gates[gate].unit, []).append(place)
    return found


def chosen(found: Material) -> tuple[outcome.Gate, ...]:
    """Gates from the find and choose records alone; none where none helps."""
    split, before = len(found.find), found.good[found.choose]
    table = cuts.evaluated(found.texts, found.columns(found.learn))
    lookup, part = lookup_in(table.matrix, table.texts), np.arange(split)
    offered = [
        (place, clause)
        for place, row in enumerate(found.alone.astype(np.int64) - found.good[found.learn])
        for clause in learning.gate_clauses(table.on(part), row[:split])
    ]
    units = np.array([place for place, _ in offered], int)
    fires = np.array([clause.fires(lookup)[split:] for _, clause in offered], bool)
    fires, alone = fires.reshape(len(offered), len(before)), found.alone[units, split:]
    return tuple(
        outcome.Gate(
            unit=found.units[units[one]],
            rule=Rule((offered[one][1],)),
            gain=learning.expected_gain(fires[one], alone[one], before, thresholds.HARM),
            fixed=int((fires[one] & alone[one] & ~before).sum()),
            broken=int((fires[one] & before & ~alone[one]).sum()),
            fired=int(fires[one].sum()),
        )
        for one in learning.chosen_gates(units.tolist(), fires, alone, before, thresholds.HARM)
    )


def material(run: live_run.Run, asked: outcome.GatesAsked, tell: Tell) -> Material:
    """Records, splits, units and outcomes. Raises `DegenerateBehaviour` where all outcomes are alike.

    Cost: `records` completions, and each unit on two thirds of them.
    """
    if examples := fresh_examples(run, asked):
        records = behaviour.observe(run.task, run.subject, examples, regimes=(asked.regime,)).records
        held, test = _split(run, records, np.arange(len(records)), 1 / 3)
    else:
        records, train = run.observed.records, run.observed.train
        tell(f"fewer than {3 * LEAST} fresh records: the run's own {len(records):,}, its held-out as test")
        held, test = np.flatnonzero(train), np.flatnonzero(~train)
    find, choose = _split(run, records, held, 0.5)
    found = Material(
        run=run,
        asked=asked,
        records=records,
        good=asked.regime.flipped(np.array([record.label for record in records], bool)),
        find=find,
        choose=choose,
        test=test,
        fresh=bool(examples),
        engine=run.completer(run.intervention(asked.basis), records=records),
        alone=np.zeros((0, len(held)), bool),
    )
    units = offered_units(run, asked)
    tell(f"{len(units)} units ablated on {len(held):,} {'fresh ' * bool(examples)}records")
    return found.on(units)


def offered_units(run: live_run.Run, asked: outcome.GatesAsked) -> list[Neuron]:
    """The unit that is named, else those that the run's search found, strongest first.

    Raises `UsageError` for records that are not independent of each other: their test would be too sure.
    """
    if cluster := run.task.cluster_column:
        raise errors.UsageError(
            f"expected records that are independent, those of {run.task.name} share their {cluster}; "
            "learn gates on another task"
        )
    if asked.unit is not None:
        return [asked.unit]
    found = [
        agonist
        for search in run.findings.searches
        if (search.regime, search.intervention.basis) == (asked.regime, asked.basis)
        for agonist in search.agonists
    ]
    ranked = sorted(found, key=lambda one: (-one.estimate.strength, one.neuron))
    return [agonist.neuron for agonist in ranked[: learning.UNITS]]


def fresh_examples(run: live_run.Run, asked: outcome.GatesAsked) -> list[Example]:
    """Examples that the run never observed, none where the task has too few of them for three splits."""
    known = {record.example.id for record in run.observed.records}
    fresh = subsets.unseen(run.task.examples, known, asked.records, of="gates", seed=run.config.seed, salt=2)
    return fresh if len(fresh) >= 3 * LEAST else []


def forwards(run: live_run.Run, asked: outcome.GatesAsked) -> int:
    """Example-forwards that it costs at most: each unit on two thirds of the records, the random ones too, the test."""
    records = len(fresh_examples(run, asked)) or len(run.observed.records)
    return len(offered_units(run, asked)) * (2 * records // 3) * (1 + asked.random) + 2 * records // 3


def _split(
    run: live_run.Run, records: Sequence[BehaviourRecord], among: np.ndarray, share: float
) -> tuple[np.ndarray, np.ndarray]:
    """Positions `among` the records in two parts of equal strata, the second of that share."""
    some = [records[place] for place in among]
    labels = np.array([record.label for record in some], bool)
    first = preparation.chosen_for_train(run, some, labels, run.task.columns(some), share)
    return among[first], among[~first]
