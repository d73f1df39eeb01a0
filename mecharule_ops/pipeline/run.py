"""One run with everything it can lead to: its file, and on demand its model, records, predicates, engines.

The pipeline fills a run; questions about a finished run open the same parts. A model is loaded only when an
ablation is needed that the file does not hold.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, cast

import numpy as np
from jaxtyping import Bool, Int

from mecharule_ops.config import RunConfig, make_config
from mecharule_ops.errors import ModelUnavailable, UsageError
from mecharule_ops.findings.as_json import from_json
from mecharule_ops.findings.records import Findings
from mecharule_ops.findings.suppression import Suppression
from mecharule_ops.predicates.language import Predicate, evaluate, parse_predicate, schema_of
from mecharule_ops.predicates.table import PredicateTable, score_predicates
from mecharule_ops.store.codec import decode
from mecharule_ops.store.run_store import RunStore
from mecharule_ops.store.stored_engine import Cost, Engine, StoredEngine, context_key
from mecharule_ops.store.verdicts import StoredVerdicts
from mecharule_ops.tasks.base import Task
from mecharule_ops.tasks.graders import Judge
from mecharule_ops.tasks.jailbreak import with_judge
from mecharule_ops.tasks.registry import make_task, preset, preset_names
from mecharule_ops.types import Basis, BehaviourRecord, Columns, Intervention

if TYPE_CHECKING:
    from mecharule_ops.engine.ablation import AblationEngine
    from mecharule_ops.engine.reference import ReferenceEngine
    from mecharule_ops.loading.model import Subject
    from mecharule_ops.replacement.baselines import ReplacementTable


def task_of(config: RunConfig) -> Task:
    """The task of a config: the model's preset with the config's settings on top. Raises `UsageError`."""
    name = config.task
    settings = {
        key: tuple(value) if isinstance(value, list) else value for key, value in config.task_settings.items()
    }
    try:
        if config.model in preset_names(name):
            return preset(name, config.model, **settings)
        return make_task(name, **settings)
    except (TypeError, AttributeError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(f"expected settings of the types {name} has, got {settings}: {reason}") from error


class Run:
    """An open run. Attributes are loaded when first read and kept."""

    def __init__(
        self,
        store: RunStore,
        should_stop: Callable[[], bool] = lambda: False,
        judge: Judge | None = None,
    ) -> None:
        """`should_stop` is asked before every batch of ablations; then `AblationStopped` is raised.

        `judge` is the language model of a task that is graded by one.
        """
        self.store = store
        self._judge = judge
        self.should_stop = should_stop
        self.config: RunConfig = make_config(**cast(Mapping[str, object], store.config["settings"]))
        self.id = str(store.config["run"])
        self.cost = Cost()
        self._engines: dict[Intervention, StoredEngine] = {}

    @cached_property
    def task(self) -> Task:
        """The task with the model's preset and the run's own settings on top."""
        return with_judge(task_of(self.config), lambda judge: StoredVerdicts(self.store, judge), self._judge)

    @cached_property
    def suppression(self) -> Suppression | None:
        """How this run hides units that flip 0→1; None when it tells them. The key is made once a run."""
        if not self.config.suppress_only:
            return None
        if not self.store.has("suppression-key"):
            self.store.put("suppression-key", secrets.token_hex(16))
        return Suppression(bytes.fromhex(cast(str, self.store.get("suppression-key"))))

    @cached_property
    def subject(self) -> Subject:
        """The model under study. Raises `ModelUnavailable`."""
        from mecharule_ops.loading.registry import load

        return load(self.config.model)

    @cached_property
    def records(self) -> tuple[BehaviourRecord, ...]:
        """What the unablated model did, from the run file."""
        return tuple(decode(BehaviourRecord, row) for row in cast(list, self.store.get("records")))

    @cached_property
    def labels(self) -> Bool[np.ndarray, " record"]:
        return np.array([record.label for record in self.records], bool)

    @cached_property
    def columns(self) -> Columns:
        return self.task.columns(self.records)

    @cached_property
    def train(self) -> Bool[np.ndarray, " record"]:
        """True for the records that may select anything."""
        return cast(np.ndarray, self.store.get("train"))

    @cached_property
    def table(self) -> PredicateTable:
        """The kept predicates, evaluated again from their texts."""
        texts = cast(list[str], cast(dict, self.store.get("vocabulary"))["kept"])
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

    @cached_property
    def findings(self) -> Findings:
        """The report's data of a finished run. Raises `StoreError` when the run has not finished."""
        return from_json(cast(str, self.store.get("findings")))

    def eligible(self, regime: int) -> Int[np.ndarray, " record"]:
        """Positions of D_b."""
        return np.flatnonzero(self.labels == bool(regime))

    def intervention(self, basis: Basis) -> Intervention:
        return self.config.intervention(basis, self.task.phase)

    def engine(self, intervention: Intervention) -> StoredEngine:
        """The engine of an intervention behind the run's stored outcomes; all engines share one cost."""
        if intervention not in self._engines:
            self._engines[intervention] = StoredEngine(
                self._engine_maker(intervention),
                self.store,
                self._context(intervention),
                self.records,
                self.cost,
            )
        return self._engines[intervention]

    def replacement(self, intervention: Intervention) -> ReplacementTable:
        """The replacement values of an intervention: those in the run file, else measured now and kept there."""
        from mecharule_ops.replacement.table_files import arrays_of, table_from

        name = f"replacement-{_name(intervention)}"
        if intervention not in self._tables and self.store.has(name):
            arrays = cast(Mapping[str, np.ndarray], self.store.get(name))
            self._tables[intervention] = table_from(arrays, intervention)
        elif intervention not in self._tables:
            self._tables[intervention] = self.measured_replacement(intervention)
            if self.store.writable:
                self.store.put(name, arrays_of(self._tables[intervention]))
        return self._tables[intervention]

    def measured_replacement(
        self, intervention: Intervention, subject: Subject | None = None
    ) -> ReplacementTable:
        """The replacement values measured now, on the run's model or on `subject`, from its own train records.

        The held-out ones stay out: a replacement decides what flips, and so which units are found.
        """
        from mecharule_ops.replacement.baselines import replacement_table

        train = [self.records[position] for position in np.flatnonzero(self.train)]
        return replacement_table(subject or self.subject, train, intervention)

    @cached_property
    def _tables(self) -> dict[Intervention, ReplacementTable]:
        return {}

    def completer(
        self, intervention: Intervention, *, plain: bool = False
    ) -> AblationEngine | ReferenceEngine:
        """An engine for whole completions; `plain` is the reference path, whatever the run's own engine is."""
        from mecharule_ops.engine.ablation import AblationEngine
        from mecharule_ops.engine.reference import ReferenceEngine

        kind = ReferenceEngine if plain or self.config.engine == "plain" else AblationEngine
        return kind(self.subject, self.task, self.records, intervention, self.replacement(intervention))

    def _context(self, intervention: Intervention) -> str:
        """The key of stored outcomes, from the run file, so that what is stored is read without the model."""
        name = f"context-{_name(intervention)}"
        if self.store.has(name):
            return cast(str, self.store.get(name))
        context = self._measured_context(intervention)
        if self.store.writable:
            self.store.put(name, context)
        return context

    def _measured_context(self, intervention: Intervention) -> str:
        return context_key(
            model=self.subject.model_hash,
            tokenizer=self.subject.tokenizer_hash,
            task=self.task.describe(),
            intervention=repr(intervention),
            replacement=self.replacement(intervention).hash,
        )

    def _engine_maker(self, intervention: Intervention) -> Callable[[], Engine]:
        def make() -> Engine:
            if self._measured_context(intervention) != self._context(intervention):
                raise ModelUnavailable(
                    f"expected {self.config.model} as it was when run {self.id} was made, its weights, tokenizer or "
                    "task have changed; start a new run"
                )
            replacement = self.replacement(intervention)
            if self.config.engine == "plain":
                from mecharule_ops.engine.reference import ReferenceEngine

                return ReferenceEngine(
                    self.subject,
                    self.task,
                    self.records,
                    intervention,
                    replacement,
                    should_stop=self.should_stop,
                )
            from mecharule_ops.engine.ablation import AblationEngine

            return AblationEngine(
                self.subject,
                self.task,
                self.records,
                intervention,
                replacement,
                rows=self.config.rows,
                should_stop=self.should_stop,
            )

        return make


def _name(intervention: Intervention) -> str:
    """As part of an artefact's name."""
    return f"{intervention.basis.value}-{intervention.baseline.value}-{intervention.phase.value}"
