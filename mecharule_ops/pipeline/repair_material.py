"""What a repair works on: records in three splits, units, and what each unit's ablation does to the first two.

The records are fresh ones of the task's own generator where it has enough that the run never observed; else the
run's own, its held-out ones as the test. Outcomes of the find and choose records are measured, never those of the
test ones, which are opened elsewhere and once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Bool, Int, Shaped

from mecharule_ops.engine.ablation import AblationEngine
from mecharule_ops.engine.behaviour import observe
from mecharule_ops.engine.reference import ReferenceEngine
from mecharule_ops.errors import DegenerateBehaviour, UsageError
from mecharule_ops.mechanism.first_order import prediction
from mecharule_ops.pipeline.predicting import predicted_flips
from mecharule_ops.pipeline.preparation import chosen_for_train
from mecharule_ops.pipeline.run import Run
from mecharule_ops.predicates.cuts import PredicateColumns, evaluated
from mecharule_ops.random_units import random_units
from mecharule_ops.repair.learning import GateSettings
from mecharule_ops.repair.readings import Readings, read, vocabulary
from mecharule_ops.repair.statistics import Paired
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.rules.families import Family
from mecharule_ops.subsets import some_places, unseen
from mecharule_ops.types import Basis, BehaviourRecord, Example, Intervention, Neuron, Regime

RANKED_ON = 400
"""Records of the unwanted outcome on which units are ranked, by first order and then by ablation."""
LEAST = 60
"""Records of a split below which fresh ones do not stand in for the run's own."""

GATES = {"input": Family.INPUT, "clean": Family.CLEAN_RUN, "mechanism": Family.MECHANISM}
"""What gates read, by the word that a person says."""

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairRequest:
    """What is asked of a repair."""

    regime: Regime = Regime.BASELINE_NEGATIVE
    """The outcome to be mended: 0→1 makes right what was wrong, 1→0 makes refused what was answered."""
    basis: Basis = Basis.MLP_OUT
    family: Family = Family.INPUT
    units: int = 12
    """Units with gates, at most."""
    tried: int = 24
    """Units whose ablation is measured."""
    records: int = 9000
    """Observed for the three splits."""
    budget: int | None = None
    """Ablated completions on the find and choose records, at most; fewer units are tried to keep it."""
    model: bool = False
    """Whether a free-form gate stands beside."""
    random: bool = True
    """Whether the whole repair is made of random units too, which costs as much again."""
    solution: bool = False
    """Whether gates may read the columns that tell the right answer."""
    harmless: str = ""
    """A file of requests without harm, on which gates that make refused what was answered are tried too."""
    proposer: str = ""
    """Who proposes gates beside the learned ones; empty for nobody."""
    learning: GateSettings = field(default_factory=GateSettings)

    def wanted(self, labels: Bool[np.ndarray, "*shape"]) -> Bool[np.ndarray, "*shape"]:
        """Where outcomes are the wanted ones."""
        return labels != bool(self.regime.value)

    def wanted_of(self, records: Sequence[BehaviourRecord]) -> Bool[np.ndarray, " record"]:
        """The records whose outcome is the wanted one."""
        return self.wanted(np.array([record.label for record in records], bool))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Material:
    """Records, splits and outcomes."""

    run: Run
    intervention: Intervention
    table: ReplacementTable
    records: tuple[BehaviourRecord, ...]
    good: Bool[np.ndarray, " record"]
    """Where the outcome is the wanted one without any ablation."""
    find: Int[np.ndarray, " find"]
    choose: Int[np.ndarray, " choose"]
    test: Int[np.ndarray, " test"]
    fresh: bool
    engine: AblationEngine | ReferenceEngine
    """Over all records."""
    units: tuple[Neuron, ...] = ()
    """Tried, those that fix most of the find records first."""
    alone: Bool[np.ndarray, "unit learn"] = field(default_factory=lambda: np.zeros((0, 0), bool))
    """Whether the outcome of each find record, then each choose record, is the wanted one under each unit."""
    clusters: Shaped[np.ndarray, " record"] | None = None
    """Of records that are not independent; None where all are."""
    _read: dict[tuple[Family, bytes], Readings] = field(default_factory=dict)
    _random: list[Material] = field(default_factory=list)

    @property
    def learn(self) -> Int[np.ndarray, " learn"]:
        """The find records, then the choose records."""
        return np.concatenate([self.find, self.choose])

    def readings(
        self, request: RepairRequest, positions: Int[np.ndarray, " some"], family: Family | None = None
    ) -> Readings:
        """What gates of the request's family, or of another, may read of some records; kept for the next who asks."""
        family = family or request.family
        key = (family, positions.tobytes())
        if key not in self._read:
            run = self.run
            self._read[key] = read(
                run.subject,
                run.task,
                self.at(positions),
                self.table,
                family,
                self.units,
                should_stop=run.should_stop,
            )
        hidden = frozenset[str]() if request.solution else self.run.task.solution_columns
        return self._read[key].without(hidden)

    def at(self, positions: Sequence[int] | np.ndarray) -> list[BehaviourRecord]:
        """The records at some positions."""
        return [self.records[position] for position in positions]

    def paired(
        self,
        positions: Int[np.ndarray, " some"],
        after: Bool[np.ndarray, " some"],
        acted: Bool[np.ndarray, " some"] | None = None,
        before: Bool[np.ndarray, " some"] | None = None,
    ) -> Paired:
        """Outcomes after something acted, everywhere unless said, beside those before, the model's own."""
        return Paired.of(
            self.good[positions] if before is None else before,
            after,
            np.ones(len(positions), bool) if acted is None else acted,
            None if self.clusters is None else self.clusters[positions],
        )

    def on_random_units(self, request: RepairRequest) -> Material:
        """The same with as many units of the same layers, drawn at random from all of each; kept for the next who asks.

        It is one draw, and the draw is what is repeated: its records do not tell how another would do.
        Cost: the units on the find and choose records.
        """
        if not self._random:
            layers = Counter(unit.layer for unit in self.units)
            width, seed = self.run.subject.width(request.basis), self.run.config.seed
            units = tuple(
                unit
                for layer, count in sorted(layers.items())
                for unit in random_units(request.basis, [layer], width, count, of="repair", seed=seed)
            )
            read = {key: value for key, value in self._read.items() if key[0] is not Family.MECHANISM}
            self._random.append(
                replace(self, units=units, alone=_alone(self, request, units), _read=read, _random=[])
            )
        return self._random[0]


def material(run: Run, request: RepairRequest, tell: Tell = lambda line: None) -> Material:
    """Records, splits, units and outcomes. Raises `DegenerateBehaviour` where all outcomes are alike.

    Cost: `records` completions; first order on `RANKED_ON` records; twice as many units as are tried ablated on as
    many; the tried ones on the find and choose records.
    """
    intervention = run.intervention(request.basis)
    table = run.replacement(intervention)
    records, parts, fresh, clusters = _records(run, request, tell)
    good = request.wanted_of(records)
    find, choose, test = parts
    found = Material(
        run=run,
        intervention=intervention,
        table=table,
        records=records,
        good=good,
        find=find,
        choose=choose,
        test=test,
        fresh=fresh,
        clusters=clusters,
        engine=run.completer(intervention, records=records),
    )
    units = _units(found, request, tell)
    if request.budget is not None:
        units = units[: max(1, request.budget // max(1, len(found.learn)))]
    tell(f"{len(units)} units ablated on {len(found.learn):,} records")
    return replace(found, units=tuple(units), alone=_alone(found, request, units), _read={}, _random=[])


def _alone(
    found: Material, request: RepairRequest, units: Sequence[Neuron]
) -> Bool[np.ndarray, "unit learn"]:
    """The wanted outcome of each find and choose record under each unit."""
    if not units:
        return np.zeros((0, len(found.learn)), bool)
    return request.wanted(found.engine.evaluate([(unit,) for unit in units], found.learn.tolist()).labels)


def fresh_examples(run: Run, request: RepairRequest) -> list[Example]:
    """Examples that the run never observed, none where the task has too few of them for three splits."""
    known = {record.example.id for record in run.observed.records}
    fresh = unseen(run.task.examples, known, request.records, of="repair", seed=run.config.seed, salt=2)
    return fresh if len(fresh) >= 3 * LEAST else []


def _records(
    run: Run, request: RepairRequest, tell: Tell
) -> tuple[tuple[BehaviourRecord, ...], list[np.ndarray], bool, np.ndarray | None]:
    """(records, positions of the three splits, whether they are fresh, the cluster of each where they come in such)."""
    unseen = fresh_examples(run, request)
    if unseen:
        tell(f"{len(unseen):,} fresh records observed")
        records = observe(run.task, run.subject, unseen).records
        held, test = _split(run, records, np.arange(len(records)), 1 / 3)
    else:
        records, train = run.observed.records, run.observed.train
        tell(
            f"fewer than {3 * LEAST} fresh records: the run's own {len(records):,} stand in, its held-out as test"
        )
        held, test = np.flatnonzero(train), np.flatnonzero(~train)
    if not run.task.cluster_column:
        return records, [*_split(run, records, held, 0.5), test], bool(unseen), None
    clusters = run.task.columns(records)[run.task.cluster_column]
    parts = split_by_cluster(
        clusters, request.wanted_of(records), np.random.default_rng([run.config.seed, 3])
    )
    if not unseen:
        parts = [np.intersect1d(part, own) for part, own in zip(parts, (held, held, test), strict=True)]
    return records, parts, bool(unseen), clusters


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
    chosen = [records[place] for place in among]
    labels = np.array([record.label for record in chosen], bool)
    first = chosen_for_train(run, chosen, labels, run.task.columns(chosen), share)
    return among[first], among[~first]


def _units(found: Material, request: RepairRequest, tell: Tell) -> list[Neuron]:
    """The units to try: those that first order or the run's search says flip most, by their measured flips."""
    bad = found.find[~found.good[found.find]]
    bad = some_places(found.records, bad, RANKED_ON, of="ranked on", seed=found.run.config.seed)
    if not len(bad):
        raise DegenerateBehaviour("expected records to mend, every outcome is the wanted one already")
    first_order = prediction(found.run.subject, found.at(bad), found.table, should_stop=found.run.should_stop)
    promised = predicted_flips(found.run, first_order, found.at(bad), request.regime).sum(0)
    ranked = [first_order.units[place] for place in np.argsort(-promised, kind="stable")]
    known = _searched(found.run, request)
    asked = list(dict.fromkeys((*known, *ranked)))[: max(2 * request.tried, len(known))]
    tell(f"{len(asked)} units ablated on {len(bad)} records to be mended")
    labels = found.engine.evaluate([(unit,) for unit in asked], bad.tolist()).labels
    mended = request.wanted(labels).sum(1)
    order = np.argsort(-mended, kind="stable")[: request.tried]
    return [asked[place] for place in order if mended[place]]


def _searched(run: Run, request: RepairRequest) -> list[Neuron]:
    """Units that the run found in this regime and basis, strongest first; none where it hides them."""
    if not run.finished:
        return []
    return [
        agonist.neuron
        for search in run.findings.searches
        if search.regime is request.regime
        and search.intervention.basis is request.basis
        and not search.suppressed
        for agonist in search.agonists
    ][: request.tried]


def prompt_predicates(found: Material, readings: Readings, positions: np.ndarray) -> PredicateColumns:
    """The run's vocabulary and the task's larger one, as far as the readings go."""
    if not readings.prompt:
        return PredicateColumns(texts=(), matrix=np.zeros((readings.records, 0), bool))
    columns = found.run.task.columns(found.at(positions))
    offered = (*found.run.vocabulary["kept"], *found.run.task.account_predicates())
    return evaluated(vocabulary(offered, found.run.task, columns, readings.prompt), readings.prompt)
