"""What a repair works on: records in three splits, units, and what each unit's ablation does to the first two.

The records are fresh ones of the task's own generator where it has enough that the run never observed; else the
run's own, its held-out ones as the test. Outcomes of the find and choose records are measured, never those of the
test ones, which are opened elsewhere and once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Bool, Int, Shaped

from mecharule_ops.engine.ablation import AblationEngine
from mecharule_ops.engine.behaviour import observe
from mecharule_ops.engine.group_questions import Group
from mecharule_ops.engine.reference import ReferenceEngine
from mecharule_ops.engine.settling import until_settled
from mecharule_ops.errors import DegenerateBehaviour, UsageError
from mecharule_ops.mcnemar import Paired
from mecharule_ops.mechanism.first_order import prediction
from mecharule_ops.predicates.cuts import PredicateColumns, evaluated
from mecharule_ops.repair.learning import GateSettings
from mecharule_ops.repair.readings import Readings, read, vocabulary
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.rules.families import Family
from mecharule_ops.run.controlling import same_layers
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.predicting import predicted_flips
from mecharule_ops.run.preparation import chosen_for_train
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Material:
    """Records, splits and outcomes."""

    run: Run
    request: RepairRequest
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

    def under(self, request: RepairRequest) -> Material:
        """The same for a request of the same regime and basis, with what was read and drawn so far."""
        return self if request == self.request else replace(self, request=request)

    @property
    def without_units(self) -> Material:
        """The same as it is for who may not read the units' own columns."""
        mechanism = self.request.family is Family.MECHANISM
        return self.under(replace(self.request, family=Family.CLEAN_RUN)) if mechanism else self

    @property
    def learn(self) -> Int[np.ndarray, " learn"]:
        """The find records, then the choose records."""
        return np.concatenate([self.find, self.choose])

    @property
    def known(self) -> dict[Neuron, Bool[np.ndarray, " learn"]]:
        """`alone` by unit."""
        return dict(zip(self.units, self.alone, strict=True))

    def outcomes(
        self, groups: Sequence[Group], positions: Int[np.ndarray, " some"]
    ) -> Bool[np.ndarray, "group some"]:
        """Where the outcome of some records is the wanted one under each group. Cost: a forward a pair."""
        return self.request.regime.flipped(self.engine.evaluate(groups, positions.tolist()).labels)

    def answered(
        self, records: Sequence[BehaviourRecord], answers: Sequence[str]
    ) -> Bool[np.ndarray, " record"]:
        """Where another answer to each record would be of the wanted outcome."""
        label = self.run.task.label
        labels = [label(record.example, text) for record, text in zip(records, answers, strict=True)]
        return self.request.regime.flipped(np.array(labels, bool))

    def readings(self, positions: Int[np.ndarray, " some"], family: Family | None = None) -> Readings:
        """What gates of the request's family, or of another, may read of some records; kept for the next who asks."""
        family = family or self.request.family
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
        hidden = frozenset[str]() if self.request.solution else self.run.task.solution_columns
        return self._read[key].without(hidden)

    def predicates(self, readings: Readings, positions: np.ndarray) -> PredicateColumns:
        """The run's vocabulary and the task's larger one on some records, as far as their readings go."""
        if not readings.prompt:
            return PredicateColumns(texts=(), matrix=np.zeros((readings.records, 0), bool))
        task = self.run.task
        offered = (*self.run.vocabulary["kept"], *task.account_predicates())
        texts = vocabulary(offered, task, task.columns(self.at(positions)), readings.prompt)
        return evaluated(texts, readings.prompt)

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

    def with_units(self, units: Sequence[Neuron], read: dict[tuple[Family, bytes], Readings]) -> Material:
        """The same with these units tried. Cost: each on the find and choose records."""
        learn = self.learn
        alone = (
            self.outcomes([(unit,) for unit in units], learn) if units else np.zeros((0, len(learn)), bool)
        )
        return replace(self, units=tuple(units), alone=alone, _read=read, _random=[])

    def on_random_units(self) -> Material:
        """The same with as many units of the same layers, drawn at random from all of each; kept for the next who asks.

        It is one draw, and the draw is what is repeated: its records do not tell how another would do.
        Cost: the units on the find and choose records.
        """
        if not self._random:
            read = {key: value for key, value in self._read.items() if key[0] is not Family.MECHANISM}
            self._random.append(self.with_units(same_layers(self.run, self.units, of="repair"), read))
        return self._random[0].under(self.request)


def material(run: Run, request: RepairRequest, tell: Tell = lambda line: None) -> Material:
    """Records, splits, units and outcomes. Raises `DegenerateBehaviour` where all outcomes are alike.

    Cost: `records` completions; first order on `RANKED_ON` records; twice as many units as are tried ablated on as
    many; the tried ones on the find and choose records.
    """
    examples = fresh_examples(run, request)
    if examples:
        tell(f"{len(examples):,} fresh records observed")
        records = observe(run.task, run.subject, examples, regimes=(request.regime,)).records
        held, test = _split(run, records, np.arange(len(records)), 1 / 3)
    else:
        records, train = run.observed.records, run.observed.train
        tell(
            f"fewer than {3 * LEAST} fresh records: the run's own {len(records):,} stand in, its held-out as test"
        )
        held, test = np.flatnonzero(train), np.flatnonzero(~train)
    good = request.regime.flipped(np.array([record.label for record in records], bool))
    clusters = run.task.columns(records)[run.task.cluster_column] if run.task.cluster_column else None
    if clusters is None:
        parts = [*_split(run, records, held, 0.5), test]
    else:
        parts = split_by_cluster(clusters, good, np.random.default_rng([run.config.seed, 3]))
        if not examples:
            parts = [np.intersect1d(part, own) for part, own in zip(parts, (held, held, test), strict=True)]
    find, choose, test = parts
    intervention = run.intervention(request.basis)
    found = Material(
        run=run,
        request=request,
        intervention=intervention,
        table=run.replacement(intervention),
        records=records,
        good=good,
        find=find,
        choose=choose,
        test=test,
        fresh=bool(examples),
        clusters=clusters,
        engine=run.completer(intervention, records=records),
    )
    units = _units(found, tell)
    if request.budget is not None:
        units = units[: max(1, request.budget // max(1, len(found.learn)))]
    tell(f"{len(units)} units ablated on {len(found.learn):,} records")
    return found.with_units(units, {})


def fresh_examples(run: Run, request: RepairRequest) -> list[Example]:
    """Examples that the run never observed, none where the task has too few of them for three splits."""
    known = {record.example.id for record in run.observed.records}
    fresh = unseen(run.task.examples, known, request.records, of="repair", seed=run.config.seed, salt=2)
    return fresh if len(fresh) >= 3 * LEAST else []


def repair_forwards(run: Run, request: RepairRequest) -> int:
    """Example-forwards that a repair costs, nearly all of them those of the tried units."""
    records = len(fresh_examples(run, request)) or len(run.observed.records)
    learn = 2 * records // 3
    units = request.tried if request.budget is None else min(request.tried, max(1, request.budget // learn))
    # Each chosen unit, shuffled ones, gates over leads, the other policy, the runner-up everywhere, random units.
    controls = (request.units + 4) * (records - learn) + learn + request.random * units * learn
    # Several units at once, of the gates, of those over leads and of the random repair's.
    policies = 3 * learn
    return units * learn + 2 * request.tried * min(RANKED_ON, learn // 2) + policies + controls


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


def _units(found: Material, tell: Tell) -> list[Neuron]:
    """The units to try: those that first order or the run's search says flip most, by their measured flips."""
    run, request = found.run, found.request
    bad = found.find[~found.good[found.find]]
    bad = some_places(found.records, bad, RANKED_ON, of="ranked on", seed=run.config.seed)
    if not len(bad):
        raise DegenerateBehaviour("expected records to mend, every outcome is the wanted one already")
    settled = until_settled(run.subject, run.task, found.at(bad))
    first_order = prediction(run.subject, settled, found.table, should_stop=run.should_stop)
    promised = predicted_flips(run, first_order, found.at(bad), request.regime).sum(0)
    ranked = [first_order.units[place] for place in np.argsort(-promised, kind="stable")]
    known = _searched(run, request)
    asked = list(dict.fromkeys((*known, *ranked)))[: max(2 * request.tried, len(known))]
    tell(f"{len(asked)} units ablated on {len(bad)} records to be mended")
    mended = found.outcomes([(unit,) for unit in asked], bad).sum(1)
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
