"""The one door to a run: what its file holds, and on demand its model and the engines that ablate.

The pipeline fills a run; questions about a finished run open the same parts. A model is loaded only when an
ablation is needed that the file does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Int

from mecharule_ops.codec import encode
from mecharule_ops.engine.group_questions import Answering, Counted, Group, InTurn
from mecharule_ops.errors import ModelUnavailable
from mecharule_ops.run.contents import RunContents
from mecharule_ops.store import keys
from mecharule_ops.store.run_store import RunStore
from mecharule_ops.store.stored_engine import Cost, StoredEngine, context_key
from mecharule_ops.tasks.graders import Judge
from mecharule_ops.types import BehaviourRecord, Intervention, Regime

if TYPE_CHECKING:
    from mecharule_ops.engine.ablation import AblationEngine
    from mecharule_ops.engine.reference import ReferenceEngine
    from mecharule_ops.loading.model import Subject
    from mecharule_ops.replacement.baselines import ReplacementTable
    from mecharule_ops.workers.on_ray import Workers
    from mecharule_ops.workers.replica import Assignment


class Run(RunContents):
    """An open run with its model, which is loaded when first needed and kept."""

    def __init__(
        self,
        store: RunStore,
        should_stop: Callable[[], bool] = lambda: False,
        judge: Judge | None = None,
        device: str | None = None,
    ) -> None:
        """`should_stop` is asked before every batch of ablations; then `AblationStopped` is raised.

        `judge` is the language model of a task that is graded by one. `device` goes before what the run would choose.
        """
        super().__init__(store, judge)
        self.should_stop = should_stop
        self.device = device
        self.told_where: Callable[[str], None] = lambda reason: None
        """Hears where the model goes, and why, before it is loaded."""
        self.workers: Workers | None = None
        """Who answers questions about groups; None is this process."""
        self.cost = Cost()
        self._engines: dict[Intervention, StoredEngine] = {}
        self._tables: dict[Intervention, ReplacementTable] = {}

    @cached_property
    def subject(self) -> Subject:
        """The model under study, in the type that the run began in. Raises as `registry.load`."""
        from mecharule_ops.loading.model_names import load

        subject = load(self.config.model, self.device_here(), self.dtype, self.told_where)
        if self.store.writable and not self.store.has(keys.RECORDS):
            self.store.put(keys.PLACED, keys.Placed(device=subject.device_name, dtype=subject.dtype_name))
        return subject

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
        regime: Regime,
        intervention: Intervention | None = None,
    ) -> Bool[np.ndarray, "group record"]:
        """Which of the observed records at `positions`, all of one regime, each group flips; by the run's own baseline.

        Cost: groups × positions example-forwards, less what is stored.
        """
        if not groups:
            return np.zeros((0, len(positions)), bool)
        engine = self.engine(intervention or self.intervention(groups[0][0].basis))
        return regime.flipped(engine.labels(groups, positions))

    def engine(self, intervention: Intervention) -> StoredEngine:
        """The engine of an intervention behind the run's stored outcomes; all engines share one cost."""
        if intervention not in self._engines:
            self._engines[intervention] = StoredEngine(
                lambda: self._checked_engine(intervention),
                self.store,
                self._context(intervention),
                self.observed.records,
                self.cost,
            )
        return self._engines[intervention]

    def observe_further(self, records: Sequence[BehaviourRecord], train: Bool[np.ndarray, " record"]) -> None:
        """Keep records beyond the run's own; `train` is True for those that may select anything."""
        self.store.put(keys.FURTHER_TRAIN, train)
        self.store.put(keys.FURTHER, [encode(record) for record in records])
        self.__dict__.pop("observed", None)
        self._engines.clear()

    def completer(
        self,
        intervention: Intervention,
        *,
        plain: bool = False,
        records: Sequence[BehaviourRecord] | None = None,
        slope: float | None = None,
    ) -> AblationEngine | ReferenceEngine:
        """An engine that asks the model, over the run's records or others: the one place where a run makes one.

        `plain` is the reference path, whatever the run's own engine is. Its batches are the run's, and a stop ends it.
        Without a `slope` every product is in float32.
        """
        from mecharule_ops.engine.ablation import AblationEngine
        from mecharule_ops.engine.reference import ReferenceEngine

        asked = (
            self.subject,
            self.task,
            self.observed.records if records is None else records,
            intervention,
            self.replacement(intervention),
        )
        if plain or self.config.engine == "plain":
            return ReferenceEngine(*asked, rows=self.config.rows, should_stop=self.should_stop)
        return AblationEngine(*asked, rows=self.config.rows, should_stop=self.should_stop, slope=slope)

    def _slope(self, intervention: Intervention) -> float | None:
        """Below which lead outcomes are decided again, measured once a run; None where all products are float32."""
        from mecharule_ops.engine.precision import calibrate, multiplies_changes

        if not multiplies_changes(self.subject):
            return None

        def measured() -> float:
            return calibrate(self.subject, self.task, self.records, self.replacement(intervention)).slope

        return self.store.kept(keys.slope(intervention), measured)

    @property
    def width(self) -> int:
        """How many answer at once."""
        return 1 if self.workers is None else self.workers.count

    def _checked_engine(self, intervention: Intervention) -> Answering:
        if self._measured_context(intervention) != self._context(intervention):
            raise ModelUnavailable(
                f"expected {self.config.model} as it was when run {self.id} was made, its weights, tokenizer or "
                "task have changed; start a new run"
            )
        slope = self._slope(intervention)
        answering: Answering
        if self.workers is None:
            answering = InTurn(self.completer(intervention, slope=slope))
        else:
            answering = self.workers.assigned(self._assignment(intervention, slope), self.should_stop)
        if slope is None or not self.store.writable:
            return answering
        return Counted(answering, partial(self._note_decided, keys.decided(intervention)))

    def _assignment(self, intervention: Intervention, slope: float | None) -> Assignment:
        """What a worker must know to answer as this process does."""
        from mecharule_ops.replacement.table_files import arrays_of
        from mecharule_ops.workers.replica import Assignment

        subject = self.subject
        return Assignment(
            settings=self.config.model_dump_json(),
            device=subject.device.type,
            cards=subject.cards,
            dtype=subject.dtype_name,
            model_hash=subject.model_hash,
            tokenizer_hash=subject.tokenizer_hash,
            records=tuple(self.observed.records),
            intervention=intervention,
            replacement=arrays_of(self.replacement(intervention)),
            slope=slope,
        )

    def _note_decided(self, name: keys.Artefact[keys.Decided], outcomes: int, again: int) -> None:
        before = self.store.find(name) or keys.Decided(outcomes=0, again=0)
        counted = keys.Decided(outcomes=before["outcomes"] + outcomes, again=before["again"] + again)
        self.store.put(name, counted)

    def replacement(self, intervention: Intervention) -> ReplacementTable:
        """The replacement values of an intervention: those in the run file, else measured now and kept there."""
        from mecharule_ops.replacement.table_files import arrays_of, table_from

        if intervention not in self._tables:
            arrays = self.store.kept(
                keys.replacement(intervention), lambda: arrays_of(self.measured_replacement(intervention))
            )
            self._tables[intervention] = table_from(arrays, intervention)
        return self._tables[intervention]

    def measured_replacement(
        self, intervention: Intervention, subject: Subject | None = None
    ) -> ReplacementTable:
        """The replacement values measured now, on the run's model or on `subject`, from some of its train records.

        The held-out ones stay out: a replacement decides what flips, and so which units are found.
        """
        from mecharule_ops.replacement.baselines import replacement_table

        train = [self.records[position] for position in np.flatnonzero(self.train)]
        return replacement_table(subject or self.subject, train, intervention, self.config.seed)

    def _context(self, intervention: Intervention) -> str:
        """The key of stored outcomes, from the run file, so that what is stored is read without the model."""
        return self.store.kept(keys.context(intervention), lambda: self._measured_context(intervention))

    def _measured_context(self, intervention: Intervention) -> str:
        dtype = self.subject.dtype_name
        # A key without a type is of float32.
        of_dtype = {} if dtype == "float32" else {"dtype": dtype}
        return context_key(
            model=self.subject.model_hash,
            tokenizer=self.subject.tokenizer_hash,
            task=self.task.describe(),
            intervention=repr(intervention),
            replacement=self.replacement(intervention).hash,
            **of_dtype,
        )
