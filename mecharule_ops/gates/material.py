"""Records in three splits, units, and what each unit's ablation does to the first two.

The records are fresh ones of the task's own generator where it has enough that the run never observed; else the run's
own, its held-out ones as the test. Outcomes of the test records are measured elsewhere and once. A gate reads what is
known before the model answers, without the columns that tell the right answer: these would mark wrong answers instead
of predicting them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Int, Shaped

from mecharule_ops.engine.ablation import AblationEngine
from mecharule_ops.engine.behaviour import observe
from mecharule_ops.engine.reference import ReferenceEngine
from mecharule_ops.errors import UsageError
from mecharule_ops.gates.choosing import NOTHING, acting, after, chosen_gates, expected_gain
from mecharule_ops.gates.learning import GateSettings, gate_clauses
from mecharule_ops.gates.outcome import Gate, GatesAsked
from mecharule_ops.mcnemar import Paired
from mecharule_ops.predicates.cuts import PredicateColumns, evaluated
from mecharule_ops.predicates.language import parse_predicate, schema_of
from mecharule_ops.rules.algebra import Rule, lookup_in
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.preparation import chosen_for_train
from mecharule_ops.subsets import unseen
from mecharule_ops.tasks.base import Task
from mecharule_ops.types import BehaviourRecord, Columns, Example, Neuron

LEAST = 60
"""Records of a split below which fresh ones do not stand in for the run's own."""
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Material:
    """Records, splits and outcomes."""

    run: Run
    asked: GatesAsked
    settings: GateSettings
    records: tuple[BehaviourRecord, ...]
    good: Bool[np.ndarray, " record"]
    """Where the outcome is the wanted one without any ablation."""
    find: Int[np.ndarray, " find"]
    choose: Int[np.ndarray, " choose"]
    test: Int[np.ndarray, " test"]
    fresh: bool
    engine: AblationEngine | ReferenceEngine
    """Over all records."""
    clusters: Shaped[np.ndarray, " record"] | None
    """Of records that are not independent; None where all are."""
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
        schema, known = schema_of(task.columns(records)), readable(task, records).keys()
        offered = (*self.run.vocabulary["kept"], *task.account_predicates())
        parsed = dict.fromkeys(parse_predicate(text, schema) for text in offered)
        return tuple(one.text for one in parsed if one.reads <= known)

    def answered(self, positions: Int[np.ndarray, " some"], answers: Sequence[str]) -> np.ndarray:
        """Where another answer to each record would be of the wanted outcome."""
        label, records = self.run.task.label, self.at(positions)
        labels = [label(record.example, text) for record, text in zip(records, answers, strict=True)]
        return self.asked.regime.flipped(np.array(labels, bool))

    def paired(
        self,
        positions: Int[np.ndarray, " some"],
        labels: Bool[np.ndarray, " some"],
        acted: Bool[np.ndarray, " some"] | None = None,
        before: Bool[np.ndarray, " some"] | None = None,
    ) -> Paired:
        """Outcomes after something acted, everywhere unless said, beside those before, the model's own."""
        return Paired.of(
            self.good[positions] if before is None else before,
            labels,
            np.ones(len(positions), bool) if acted is None else acted,
            None if self.clusters is None else self.clusters[positions],
        )

    def on(self, units: Sequence[Neuron]) -> Material:
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


def firing(gates: Sequence[Gate], columns: Columns, records: int) -> Bool[np.ndarray, "gate record"]:
    """Where each gate's rule holds."""
    texts = sorted(frozenset[str]().union(*(gate.rule.predicates for gate in gates)))
    table: PredicateColumns = evaluated(texts, columns)
    lookup = lookup_in(table.matrix, table.texts)
    return np.array([gate.rule.fires(lookup) for gate in gates], bool).reshape(len(gates), records)


def chosen(found: Material) -> tuple[tuple[Gate, ...], Paired]:
    """Gates from the find and choose records alone, none where none helps, and what they do on the choose records."""
    split, before, harm = len(found.find), found.good[found.choose], found.settings.harm
    table = evaluated(found.texts, found.columns(found.learn))
    lookup, part = lookup_in(table.matrix, table.texts), np.arange(split)
    value = found.alone.astype(np.int64) - found.good[found.learn]
    offered = [
        (place, clause)
        for place, row in enumerate(value)
        for clause in gate_clauses(table.on(part), row[:split], found.settings)
    ]
    fires = np.array([clause.fires(lookup)[split:] for _, clause in offered], bool)
    fires = fires.reshape(len(offered), len(before))
    alone = found.alone[[place for place, _ in offered], split:].reshape(fires.shape)
    units = [place for place, _ in offered]
    taken = chosen_gates(units, fires, alone, before, most=found.asked.units, harm=harm)
    gates = tuple(
        Gate(
            unit=found.units[units[one]],
            rule=Rule((offered[one][1],)),
            gain=expected_gain(fires[one], alone[one], before, harm),
            fixed=int((fires[one] & alone[one] & ~before).sum()),
            broken=int((fires[one] & before & ~alone[one]).sum()),
            fired=int(fires[one].sum()),
        )
        for one in taken
    )
    acts = acting([gate.gain for gate in gates], fires[taken])
    return gates, found.paired(found.choose, after(acts, alone[taken], before), acts != NOTHING)


def material(run: Run, asked: GatesAsked, settings: GateSettings, tell: Tell) -> Material:
    """Records, splits, units and outcomes. Raises `DegenerateBehaviour` where all outcomes are alike.

    Cost: `records` completions, and each unit on two thirds of them.
    """
    if examples := fresh_examples(run, asked):
        records = observe(run.task, run.subject, examples, regimes=(asked.regime,)).records
        held, test = _split(run, records, np.arange(len(records)), 1 / 3)
    else:
        records, train = run.observed.records, run.observed.train
        tell(f"fewer than {3 * LEAST} fresh records: the run's own {len(records):,}, its held-out as test")
        held, test = np.flatnonzero(train), np.flatnonzero(~train)
    good = asked.regime.flipped(np.array([record.label for record in records], bool))
    clusters = run.task.columns(records)[run.task.cluster_column] if run.task.cluster_column else None
    if clusters is None:
        parts = [*_split(run, records, held, 0.5), test]
    else:
        parts = split_by_cluster(clusters, good, np.random.default_rng([run.config.seed, 3]))
        if not examples:
            parts = [np.intersect1d(part, own) for part, own in zip(parts, (held, held, test), strict=True)]
    find, choose, test = parts
    found = Material(
        run=run,
        asked=asked,
        settings=settings,
        records=records,
        good=good,
        find=find,
        choose=choose,
        test=test,
        fresh=bool(examples),
        engine=run.completer(run.intervention(asked.basis), records=records),
        clusters=clusters,
        alone=np.zeros((0, len(find) + len(choose)), bool),
    )
    units = found_units(run, asked)
    tell(f"{len(units)} units ablated on {len(found.learn):,} {'fresh ' * bool(examples)}records")
    return found.on(units)


def found_units(run: Run, asked: GatesAsked) -> list[Neuron]:
    """The unit that is named, else those that the run's search found, strongest first."""
    if asked.unit is not None:
        return [asked.unit]
    found = [
        agonist
        for search in run.findings.searches
        if (search.regime, search.intervention.basis) == (asked.regime, asked.basis)
        for agonist in search.agonists
    ]
    ranked = sorted(found, key=lambda one: (-one.estimate.strength, one.neuron))
    return [agonist.neuron for agonist in ranked[: asked.units]]


def fresh_examples(run: Run, asked: GatesAsked) -> list[Example]:
    """Examples that the run never observed, none where the task has too few of them for three splits."""
    known = {record.example.id for record in run.observed.records}
    fresh = unseen(run.task.examples, known, asked.records, of="gates", seed=run.config.seed, salt=2)
    return fresh if len(fresh) >= 3 * LEAST else []


def forwards(run: Run, asked: GatesAsked) -> int:
    """Example-forwards that it costs at most: each unit on two thirds of the records, the random ones too, the test."""
    records = len(fresh_examples(run, asked)) or len(run.observed.records)
    return len(found_units(run, asked)) * (2 * records // 3) * (1 + asked.random) + 2 * records // 3


def split_by_cluster(
    clusters: Shaped[np.ndarray, " record"], good: Bool[np.ndarray, " record"], generator: np.random.Generator
) -> list[Int[np.ndarray, " part"]]:
    """Positions of three splits, each of whole clusters: of every three with like shares of good one goes to each.

    Raises `UsageError` for fewer than three clusters.
    """
    names = np.unique(clusters)
    if len(names) < 3:
        raise UsageError(f"expected items of three kinds or more, a split for each, got {len(names)}")
    ranked = sorted(names, key=lambda name: good[clusters == name].mean())
    dealt = np.concatenate([generator.permutation(3) for _ in range(0, len(names), 3)])
    parts = [[name for name, part in zip(ranked, dealt, strict=False) if part == one] for one in range(3)]
    return [np.flatnonzero(np.isin(clusters, some)) for some in parts]


def _split(
    run: Run, records: Sequence[BehaviourRecord], among: np.ndarray, share: float
) -> tuple[np.ndarray, np.ndarray]:
    """Positions `among` the records in two parts of equal strata, the second of that share."""
    some = [records[place] for place in among]
    labels = np.array([record.label for record in some], bool)
    first = chosen_for_train(run, some, labels, run.task.columns(some), share)
    return among[first], among[~first]
