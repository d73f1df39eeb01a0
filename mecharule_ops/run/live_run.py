"""The one door to a run: what its file holds, typed, and on demand its model and the engines that ablate.

The pipeline fills a run; questions about a finished run open the same parts. A model is loaded only when an
ablation is needed that the file does not hold. What a search was told (slices, candidates, settings) is asked here and
rebuilt nowhere else. How searches are planned and events folded is imported when it is asked, as most ask neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial, reduce
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from jaxtyping import Bool, Float, Int

from mecharule_ops import codec, errors, types
from mecharule_ops.cha import prediction, settings
from mecharule_ops.config import RunConfig, make_config
from mecharule_ops.engine.outcomes import Engine, Group
from mecharule_ops.findings.accounts import Account
from mecharule_ops.findings.chain import Chain
from mecharule_ops.findings.controls import AgonistControls
from mecharule_ops.findings.records import Again, Findings, SearchOutcome, from_json
from mecharule_ops.findings.shown import ps_of
from mecharule_ops.predicates.language import Predicate, evaluate, parse_predicate, schema_of
from mecharule_ops.predicates.table import PredicateTable, score_predicates
from mecharule_ops.rules import algebra, families
from mecharule_ops.slices import CompactSlices, E1Condition, compact_slices
from mecharule_ops.store import keys, run_store, stored_engine
from mecharule_ops.tasks import base, task_names

if TYPE_CHECKING:
    from mecharule_ops.engine.ablation import AblationEngine
    from mecharule_ops.engine.chunks import Chunks
    from mecharule_ops.engine.reference import ReferenceEngine
    from mecharule_ops.loading.model import Subject
    from mecharule_ops.replacement.baselines import Observe, ReplacementTable
    from mecharule_ops.state.run_state import RunState


T = TypeVar("T")
_OfUnit = TypeVar("_OfUnit", families.UnitRule, Account, AgonistControls)


@dataclass(frozen=True, slots=True)
class Splitter:
    """r₀; the first two None when no rule was learned."""

    rule: algebra.Rule | None
    train_mcc: float | None
    note: str
    """Why it is not the rule of highest MCC; empty where it is."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ObservedRecords:
    """Every record that a run has observed: its own, then the further ones of its accounts."""

    records: tuple[types.BehaviourRecord, ...]
    labels: Bool[np.ndarray, " record"]
    columns: types.Columns
    train: Bool[np.ndarray, " record"]
    """True for the records that may select anything."""

    def eligible(self, regime: types.Regime) -> Int[np.ndarray, " record"]:
        """Positions of D_b; those of the run's own records come first and are the run's positions."""
        return np.flatnonzero(~regime.flipped(self.labels))


class Run:
    """An open run. Its parts are read, and its model loaded, when first asked for, and kept."""

    def __init__(
        self,
        store: run_store.RunStore,
        should_stop: Callable[[], bool] = lambda: False,
        device: str | None = None,
    ) -> None:
        """`should_stop` is asked before every batch of ablations; then `AblationStopped` is raised.

        `device` goes before what the run would choose.
        """
        self.store = store
        self.config: RunConfig = make_config(**cast(Mapping[str, object], store.config["settings"]))
        self.id = str(store.config["run"])
        self._slices: dict[types.Regime, CompactSlices] = {}
        self.should_stop = should_stop
        self.device = device
        self.told_where: Callable[[str], None] = lambda reason: None
        """Hears where the model goes, and why, before it is loaded."""
        self.cost = stored_engine.Cost()
        self._engines: dict[types.Intervention, stored_engine.StoredEngine] = {}
        self._clean: dict[tuple[types.Phase, bool], Chunks] = {}
        self._tables: dict[types.Intervention, ReplacementTable] = {}

    @cached_property
    def task(self) -> base.Task:
        """The task with the model's preset and the run's own settings on top."""
        return task_names.task_of(self.config)

    @cached_property
    def records(self) -> tuple[types.BehaviourRecord, ...]:
        """What the model under study did with nothing further ablated, from the run file."""
        return tuple(codec.decode(types.BehaviourRecord, row) for row in self.store.get(keys.RECORDS))

    def usable(self, examples: Iterable[types.Example]) -> tuple[types.Example, ...]:
        """Those whose targets and foils the model's tokens tell apart, where the task leaves others out."""
        return tuple(one for one in examples if not (self.task.skip_bad and self.subject.untold(one)))

    @property
    def whole_records(self) -> tuple[types.BehaviourRecord, ...]:
        """What the model with all its units did on the same examples."""
        rows = self.store.find(keys.WHOLE)
        return tuple(codec.decode(types.BehaviourRecord, row) for row in rows) if rows else self.records

    @cached_property
    def labels(self) -> Bool[np.ndarray, " record"]:
        """B(x) of the unablated model on every record of the run."""
        return np.array([record.label for record in self.records], bool)

    @cached_property
    def columns(self) -> types.Columns:
        """What predicates read: the typed columns that the task makes of the records."""
        return self.task.columns(self.records)

    @cached_property
    def train(self) -> Bool[np.ndarray, " record"]:
        """True for the records that may select anything."""
        return self.store.get(keys.TRAIN)

    @cached_property
    def observed(self) -> ObservedRecords:
        """Every record observed so far; positions of the run's own are the same."""
        records, labels, columns, train = self.records, self.labels, self.columns, self.train
        if (further := self.store.find(keys.FURTHER)) is not None:
            records = (*records, *(codec.decode(types.BehaviourRecord, row) for row in further))
            labels, columns = np.array([each.label for each in records], bool), self.task.columns(records)
            train = np.concatenate([train, self.store.get(keys.FURTHER_TRAIN)])
        return ObservedRecords(records=records, labels=labels, columns=columns, train=train)

    @property
    def vocabulary(self) -> keys.Vocabulary:
        """The kept predicates' texts in table order, how many were proposed, and what was refused."""
        return self.store.get(keys.VOCABULARY)

    @cached_property
    def table(self) -> PredicateTable:
        """The kept predicates, evaluated again from their texts."""
        texts = self.vocabulary["kept"]
        empty = np.zeros((len(self.records), 0), bool)
        matrix = np.column_stack([self.fires(text) for text in texts]) if texts else empty
        predicates = tuple(map(self.predicate, texts))
        scores = score_predicates(matrix[self.train], self.labels[self.train])
        return PredicateTable(predicates=predicates, matrix=matrix, scores=scores)

    def predicate(self, text: str) -> Predicate:
        """A predicate over this run's columns, whether or not the vocabulary kept it. Raises `PredicateRefused`."""
        return parse_predicate(text, schema_of(self.columns))

    def fires(self, text: str) -> Bool[np.ndarray, " record"]:
        """Where such a predicate is true."""
        return evaluate(self.predicate(text), self.columns)

    def prompt_only(self, text: str) -> bool:
        """Whether such a predicate can be checked before generation."""
        return self.predicate(text).reads <= self.task.prompt_columns

    @property
    def splitter(self) -> Splitter:
        """r₀, its train MCC, and why it was chosen."""
        return codec.decode(Splitter, self.store.get(keys.SPLITTER))

    @property
    def regimes(self) -> tuple[types.Regime, ...]:
        """The regimes that are analysed, in order."""
        return tuple(map(types.Regime, self.config.regimes))

    def eligible(self, regime: types.Regime) -> Int[np.ndarray, " record"]:
        """Positions of D_b."""
        return np.flatnonzero(~regime.flipped(self.labels))

    def intervention(self, basis: types.Basis) -> types.Intervention:
        """How the run ablates units of a basis."""
        return self.config.intervention(basis, self.task.phase)

    def slices(self, regime: types.Regime) -> CompactSlices:
        """The compact slices of one regime; without a rule the spectral split stands in, and says so."""
        if regime not in self._slices:
            self._slices[regime] = self.compacted(regime)
        return self._slices[regime]

    def compacted(self, regime: types.Regime, size: int | None = None) -> CompactSlices:
        """Slices made now, of at most so many records each; by default as the run's own."""
        rule = self.splitter.rule
        return compact_slices(
            self.labels,
            None if rule is None else rule.fires(self.fires),
            self.store.get(keys.REPRESENTATION),
            self.store.get(keys.TOKEN_LENGTHS),
            np.flatnonzero(self.train),
            identifiers=[record.example.id for record in self.records],
            regime=regime,
            condition=E1Condition(self.config.condition),
            rule=None if rule is None else str(rule),
            size=size or self.config.slice_size,
            max_pairs=self.config.max_pairs,
            required=self.config.least_slice,
            seed=self.config.seed,
        )

    def attribution(
        self, basis: types.Basis, regime: types.Regime
    ) -> Float[np.ndarray, "layer channel"] | None:
        """Signed EAP-IG scores of every unit; None where they were not asked.

        Raises `StoreError` where the run has not come so far.
        """
        scores = self.store.get(keys.attribution(basis, regime))
        return None if np.isnan(scores).all() else scores

    def sizes(self, basis: types.Basis, regime: types.Regime) -> tuple[int, int]:
        """(layers, units of each) of a basis that was searched. Raises `StoreError` likewise."""
        layers, width = self.store.get(keys.attribution(basis, regime)).shape
        return layers, width

    def candidates(self, basis: types.Basis, regime: types.Regime) -> types.Candidates:
        """The units that attribution hands to the search."""
        scores, cap = self.attribution(basis, regime), self.config.cap
        if scores is None:
            sizes = self.sizes(basis, regime)
            return types.Candidates.unranked(basis, sizes, cap=cap, layer=self.config.layer)
        return types.Candidates.strongest(basis, scores, cap=cap, layer=self.config.layer)

    def predictions(self, basis: types.Basis, regime: types.Regime) -> tuple[prediction.LayerPrediction, ...]:
        """What first order predicted of each layer's candidates; empty where it was not asked."""
        kept = self.store.find(keys.predicted_rates(basis, regime))
        if kept is None:
            return ()
        associated, unrelated, excess = kept.astype(float)
        packed = self.store.get(keys.predicted_flips(basis, regime))
        flips = np.unpackbits(packed, axis=1, count=excess.size).astype(bool).reshape(-1, *excess.shape)
        split = len(self.slices(regime).associated)
        return tuple(
            prediction.LayerPrediction(
                associated=associated[layer.layer, layer.channels],
                unrelated=unrelated[layer.layer, layer.channels],
                scores=excess[layer.layer, layer.channels],
                flips=(
                    flips[:split, layer.layer, layer.channels],
                    flips[split:, layer.layer, layer.channels],
                ),
            )
            for layer in self.candidates(basis, regime).layers
        )

    def search_settings(self, regime: types.Regime) -> settings.ChaSettings:
        """How every layer is searched in one regime."""
        from mecharule_ops.run.planning import search_settings

        slices = self.slices(regime)
        return search_settings(self.config, regime, len(slices.associated), len(slices.unrelated))

    def account(self, unit: types.Neuron, regime: types.Regime) -> Account | None:
        """When the unit flips, and what its flips go with; None until it was made.

        Of a finished run as its findings have it: which rules are shown is decided over all of them at the end.
        """
        known = self.findings.unit(unit, regime) if self.finished else None
        return known.account if known else self._kept(keys.of_unit(keys.ACCOUNT, unit, regime), Account)

    def rule_ps(self, but: types.Neuron | None = None, regime: types.Regime | None = None) -> list[float]:
        """P of every learned rule of a finished run and of accounts made since, but for the account of one unit."""
        return ps_of(
            rule
            for search in self.findings.searches
            for rule in search.rules
            if rule.family is families.Family.ANCHORED or (rule.neuron, search.regime) != (but, regime)
        )

    def chain(self, unit: types.Neuron, regime: types.Regime) -> Chain | None:
        """How the unit's flips come about; None until it was measured."""
        return self._kept(keys.of_unit(keys.CHAIN, unit, regime), Chain)

    def controls(self, unit: types.Neuron, regime: types.Regime) -> AgonistControls | None:
        """The controls of the report that ranked it among random units, else those made later; None without any."""
        known = self.findings.unit(unit, regime) if self.finished else None
        if known is None:
            return self._kept(keys.of_unit(keys.CONTROLS, unit, regime), AgonistControls)
        return known.controls if known.controls and known.controls.basis is not None else None

    def _kept(self, name: keys.Artefact[dict[str, Any]], form: type[T]) -> T | None:
        """What was measured of a unit; None until it was."""
        kept = self.store.find(name)
        return None if kept is None else codec.decode(form, kept)

    @property
    def told(self) -> RunState:
        """What the run's events say, folded."""
        from mecharule_ops.state.run_state import RunState

        return reduce(RunState.apply, (event for _, _, event in self.store.events()), RunState())

    @property
    def finished(self) -> bool:
        """Whether it has findings."""
        return self.store.has(keys.FINDINGS)

    @cached_property
    def findings(self) -> Findings:
        """What a finished run found and what was measured of its units since, so that one rule is told of each.

        Raises `StoreError` when the run has not finished.
        """
        found = from_json(self.store.get(keys.FINDINGS))
        searches = tuple(
            replace(
                search,
                anchored=self._and_later(keys.ANCHORED, families.UnitRule, search, search.anchored),
                accounts=self._and_later(keys.ACCOUNT, Account, search, search.accounts),
                controls=self._and_later(keys.CONTROLS, AgonistControls, search, search.controls),
            )
            for search in found.searches
        )
        chains = (*found.chains, *self._each(keys.CHAIN, Chain))
        latest = {(chain.unit, chain.regime): chain for chain in chains}
        again = tuple(sorted(self._each(keys.AGAIN, Again), key=lambda one: one.seed))
        return replace(found, searches=searches, chains=tuple(latest.values()), again=again)

    def _each(self, kind: str, form: type[T]) -> Iterator[T]:
        """All that was kept of a kind."""
        for name in keys.of_units(kind, self.store.names()):
            yield codec.decode(form, self.store.get(name))

    def _and_later(
        self, kind: str, form: type[_OfUnit], search: SearchOutcome, known: tuple[_OfUnit, ...]
    ) -> tuple[_OfUnit, ...]:
        """What the report has of units of a search, then what was measured of others; controls that ranked none go."""
        parts = {one.neuron: one for one in known}
        final = {unit for unit, one in parts.items() if getattr(one, "basis", one) is not None}
        about = f"{kind}{search.regime.value}-"
        for name in keys.of_units(about, self.store.names()):
            unit = types.Neuron.parse(name.removeprefix(about))
            if unit.basis is search.intervention.basis and unit not in final:
                parts[unit] = codec.decode(form, self.store.get(name))
        return tuple(parts.values())

    def keep_of_unit(self, name: keys.Artefact[dict[str, Any]], measured: object) -> None:
        """Put what was measured of a unit into the file; the findings have it from now on."""
        self.store.put(name, codec.encode(measured))
        self.__dict__.pop("findings", None)

    @cached_property
    def given(self) -> dict[types.Neuron, ReplacementTable]:
        """The units that the run's model is without, each with the values that it is set to."""
        units = map(types.Neuron.parse, self.config.given)
        return {unit: self.replacement(self.intervention(unit.basis)) for unit in units}

    @cached_property
    def subject(self) -> Subject:
        """The model under study, without the units given. Raises as `registry.load`."""
        for unit, table in self.given.items():
            table.take_away(unit, self.loaded)
        return self.loaded

    @cached_property
    def loaded(self) -> Subject:
        """The model with all its units, in the type that the run began in.

        Raises as `registry.load`, `check_rows`, `begun_with`.
        """
        from mecharule_ops.loading.model_names import load

        self.check_rows()
        return self.begun_with(load(self.config.model, self.device_here(), self.dtype, self.told_where))

    def begun_with(self, subject: Subject) -> Subject:
        """The model, noted with the rows until the run has records, be they taken over, and no more after.

        Raises `ModelUnavailable` where it began with another, and as `check_rows`.
        """
        rows = self.check_rows()
        if not self.finished and self.placed and self.placed.get("model") not in (None, subject.model_hash):
            raise self._other("weights")
        observed = self.store.has(keys.RECORDS) or self.store.has(keys.WHOLE)
        if self.store.writable and not (self.finished or observed):
            of, where = subject.model_hash, subject.device_name
            made = keys.Placed(device=where, dtype=subject.dtype_name, rows=rows, model=of)
            self.store.put(keys.PLACED, made)
        return subject

    def _other(self, what: str) -> errors.ModelUnavailable:
        return errors.ModelUnavailable(
            f"expected {self.config.model} as it was when run {self.id} was made, its {what} have changed; go on with "
            "what it began with, or start a new run"
        )

    def check_rows(self) -> types.Value | None:
        """What tells rows from others, None where the task makes them. Raises `UsageError` for others than it had."""
        here, kept = self.task.describe().get("content"), "content" if self.finished else "rows"
        had = (self.findings.task_settings if self.finished else self.placed or {}).get(kept)
        if had not in (None, here):
            raise errors.UsageError(f"expected the rows of run {self.id}, got others; put the old ones back")
        return here

    @property
    def placed(self) -> keys.Placed | None:
        """Where the model was when the run was made; None before it was loaded at all."""
        return self.store.find(keys.PLACED)

    @property
    def dtype(self) -> str:
        """The type of the weights: the one that the run was made in, else what its settings ask for."""
        return self.placed["dtype"] if self.placed else self.config.dtype

    def device_here(self) -> str:
        """The device to ask for on this machine; a run stays on its kind of device where there is one."""
        from mecharule_ops.loading.placement import kept, this_machine

        if self.device is not None:
            return self.device
        return kept(this_machine(), self.config.device, self.placed["device"] if self.placed else None)

    def flips(
        self,
        groups: Sequence[Group],
        positions: Sequence[int] | Int[np.ndarray, " record"],
        regime: types.Regime,
        intervention: types.Intervention | None = None,
    ) -> Bool[np.ndarray, "group record"]:
        """Which of the observed records at `positions`, all of one regime, each group flips; by the run's own baseline.

        Cost: groups × positions example-forwards, less what is stored.
        """
        if not groups:
            return np.zeros((0, len(positions)), bool)
        engine = self.engine(intervention or self.intervention(groups[0][0].basis))
        return regime.flipped(engine.labels(groups, positions))

    def engine(self, intervention: types.Intervention) -> stored_engine.StoredEngine:
        """The engine of an intervention behind the run's stored outcomes; all engines share one cost."""
        if intervention not in self._engines:
            self._engines[intervention] = stored_engine.StoredEngine(
                lambda: self._checked_engine(intervention),
                self.store,
                self._context(intervention),
                self.observed.records,
                self.cost,
            )
        return self._engines[intervention]

    def observe_further(
        self, records: Sequence[types.BehaviourRecord], train: Bool[np.ndarray, " record"]
    ) -> None:
        """Keep records beyond the run's own; `train` is True for those that may select anything."""
        self.store.put(keys.FURTHER_TRAIN, train)
        self.store.put(keys.FURTHER, [codec.encode(record) for record in records])
        self.__dict__.pop("observed", None)
        self._engines.clear()

    def completer(
        self,
        intervention: types.Intervention,
        *,
        records: Sequence[types.BehaviourRecord] | None = None,
        slope: float | None = None,
    ) -> AblationEngine | ReferenceEngine:
        """An engine that asks the model, over the run's records or others: the one place where a run makes one.

        Its batches are the run's, and a stop ends it; engines over the run's records share their clean passes.
        Without a `slope` every product is in float32.
        """
        from mecharule_ops.engine.ablation import AblationEngine
        from mecharule_ops.engine.reference import ReferenceEngine

        over = self.observed.records if records is None else records
        asked = self.subject, self.task, over, intervention, self.replacement(intervention)
        how: dict[str, Any] = {"rows": self.config.rows, "should_stop": self.should_stop}
        if self.config.engine == "plain":
            return ReferenceEngine(*asked, **how, given=self.given)
        engine = AblationEngine(*asked, **how, slope=slope, clean=self._clean if records is None else None)
        if records is None and self.store.has(keys.SPLITTER):
            for regime in self.regimes:
                engine.keep_together(self.slices(regime).positions)
        return engine

    def clean_kept(self, how: types.Intervention) -> AbstractContextManager[None]:
        """Inside, what is fed back of the run's records begins at the clean passes that its engines share."""
        from mecharule_ops.loading.products import inside
        from mecharule_ops.mechanism.forced import KEPT

        return inside(KEPT, getattr(self.completer(how), "clean", None))

    def _slope(self, intervention: types.Intervention) -> float | None:
        """Below which lead outcomes are decided again, measured once a run; None where all products are float32."""
        from mecharule_ops.engine.precision import calibrate, multiplies_changes

        if not multiplies_changes(self.subject):
            return None

        def measured() -> float:
            return calibrate(self.subject, self.task, self.records, self.replacement(intervention))

        return self.store.kept(keys.slope(intervention), measured)

    def _checked_engine(self, intervention: types.Intervention) -> Engine:
        if self._measured_context(intervention) != self._context(intervention):
            raise self._other("weights, tokenizer or task")
        return self.completer(intervention, slope=self._slope(intervention))

    def replacement(self, intervention: types.Intervention) -> ReplacementTable:
        """The replacement values of an intervention: those in the run file, else measured now and kept there."""
        from mecharule_ops.replacement.table_files import arrays_of, table_from

        if intervention not in self._tables:
            arrays = self.store.kept(
                keys.replacement(intervention), lambda: arrays_of(self.measured_replacement(intervention))
            )
            self._tables[intervention] = table_from(arrays, intervention)
        return self._tables[intervention]

    def measured_replacement(
        self, intervention: types.Intervention, subject: Subject | None = None
    ) -> ReplacementTable:
        """The replacement values measured now, on the run's whole model or on `subject`, from some train records.

        The held-out ones stay out: a replacement decides what flips, and so which units are found. On `subject` they
        are measured to be compared, so their range is that of the values alone.
        """
        from mecharule_ops.loading.given import whole
        from mecharule_ops.replacement.baselines import replacement_table

        records, own = self.whole_records, subject is None
        train = [records[position] for position in np.flatnonzero(self.train)]
        asked = subject or self.loaded, train, intervention, self.config.seed
        with whole():
            return replacement_table(*asked, observe=self._observe if own else None, ranged=own)

    @cached_property
    def _observe(self) -> Observe:
        """What units hold over spans: of all bases that the run searches at once, and once for all baselines."""
        from mecharule_ops.replacement.statistics import observe_values

        measured = cache(partial(observe_values, self.loaded))
        return lambda spans, bases: measured(spans, tuple(dict.fromkeys((*self.config.bases, *bases))))

    def _context(self, intervention: types.Intervention) -> str:
        """The key of stored outcomes, from the run file, so that what is stored is read without the model."""
        return self.store.kept(keys.context(intervention), lambda: self._measured_context(intervention))

    def _measured_context(self, intervention: types.Intervention) -> str:
        dtype = self.subject.dtype_name
        # A key without a type is of float32.
        of_dtype = {} if dtype == "float32" else {"dtype": dtype}
        if self.given:
            of_dtype["given"] = str({str(unit): table.hash for unit, table in self.given.items()})
        return stored_engine.context_key(
            model=self.subject.model_hash,
            tokenizer=self.subject.tokenizer_hash,
            task=self.task.describe(),
            intervention=repr(intervention),
            replacement=self.replacement(intervention).hash,
            **of_dtype,
        )
