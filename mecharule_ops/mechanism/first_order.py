"""The first-order prediction: do(j) changes the answer of x where, at some token in reach, j's drop exceeds the lead.

    L_j(x) = some generated token t in reach and some competitor w have d_{j,t,w}(x) > ℓ_{t,w}(x)

with d the steady first-order drop, attribution patching of the logit difference ℓ (see `effects`), unless another
effect is asked for. Nothing is fitted. The excess is the largest d − ℓ, so that L_j is "the excess is positive";
units are ranked by the share of records on which it is. The first token for which it holds, and the competitor with
the largest d − ℓ there, are the predicted change of the completion.

What becomes of the label is another prediction, never mixed with that the answer changes: the competitor that wins is
put in the place of the first changed token and the task is asked. Where the task can tell from the completion up to
there, that is the label; else the rest of the clean completion is kept behind it. In 1→0 the two nearly agree, in 0→1
most changed answers stay wrong.

Records run batch by batch; one that does not fit in memory is halved.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float16, Float32, Int, Int16
from torch import Tensor

from mecharule_ops import errors, thresholds
from mecharule_ops.loading import model, placement, products
from mecharule_ops.mechanism import forced, unit_axis
from mecharule_ops.mechanism.effects import ESTIMATORS, AtPosition, Effect, direction
from mecharule_ops.mechanism.leads import LeadHead, Leads
from mecharule_ops.passes.batches import default_rows, parts
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.tasks.base import Task
from mecharule_ops.types import Basis, BehaviourRecord, Neuron

Stop = Callable[[], bool]
Take = Callable[[list[int], Tensor, Mapping[Effect, Iterator[AtPosition]]], None]
"""Given one batch: its records, which of them each predicted token belongs to, its effects token by token."""
Progress = Callable[[int, int], None]
"""Called with (records done, records in all)."""
_HALF = 60_000.0
"""Larger excesses are stored as this, near the end of 16-bit floats."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Effects:
    """Leads and what each of some units carries of them, in full."""

    units: tuple[Neuron, ...]
    leads: Leads
    effect: Float32[np.ndarray, "record position competitor unit"]
    """d or p, in logits; NaN out of reach."""

    @property
    def excess(self) -> Float32[np.ndarray, "record unit"]:
        """Largest effect − lead over tokens and competitors, positive where L_j(x); −∞ without a token in reach."""
        beyond = self.effect - self.leads.lead[:, :, :, None]
        return np.nan_to_num(beyond, nan=-np.inf).max((1, 2), initial=-np.inf)

    @property
    def largest(self) -> Float32[np.ndarray, "record unit"]:
        """The largest effect over tokens and competitors; NaN for a record without a token in reach."""
        return np.fmax.reduce(self.effect, axis=(1, 2), initial=np.nan)

    def of(self, units: Sequence[Neuron]) -> "Effects":
        """The same for some of the units."""
        places = [self.units.index(unit) for unit in units]
        return Effects(units=tuple(units), leads=self.leads, effect=self.effect[..., places])

    def closest(self, unit: Neuron) -> tuple[Float32[np.ndarray, " record"], Float32[np.ndarray, " record"]]:
        """(lead, effect) of each record at the token and competitor with the largest effect − lead; NaN without one."""
        effect = self.effect[..., self.units.index(unit)].reshape(len(self.effect), -1)
        lead = self.leads.lead.reshape(effect.shape)
        beyond = np.nan_to_num(effect - lead, nan=-np.inf)
        there = np.isfinite(beyond).any(1, keepdims=True) if beyond.size else np.zeros((len(effect), 1), bool)
        found = np.full((2, len(effect)), np.nan, np.float32)
        rows = np.flatnonzero(there)
        places = beyond[rows].argmax(1) if len(rows) else rows
        found[:, rows] = lead[rows, places], effect[rows, places]
        return found[0], found[1]

    def changes(self, unit: Neuron) -> tuple[Int[np.ndarray, " record"], Int[np.ndarray, " record"]]:
        """(t of the first changed token, the token that takes its place), −1 where no change is predicted."""
        best = np.nan_to_num(self.effect[..., self.units.index(unit)] - self.leads.lead, nan=-np.inf)
        if not best.shape[1]:
            none = np.full(len(best), -1)
            return none, none
        changed = (best > 0).any(2)
        some, position = changed.any(1), changed.argmax(1)
        rows = np.arange(len(best))
        token = self.leads.token[rows, position, best[rows, position].argmax(1)]
        return np.where(some, position, -1), np.where(some, token, -1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FirstOrderPass:
    """The prediction for many units, reduced per record and unit."""

    units: tuple[Neuron, ...]
    leads: Leads
    excess: Float16[np.ndarray, "record unit"]
    """Largest effect − lead, in logits, rounded to 16 bits; −∞ without a token in reach."""
    change: Int16[np.ndarray, "record unit"]
    """t · competitors + competitor of the predicted change; −1 where none is predicted, so where L_j(x) is false."""


def prediction(
    subject: model.Subject,
    records: Sequence[BehaviourRecord],
    replacement: ReplacementTable,
    *,
    competitors: int = thresholds.COMPETITORS,
    units: Sequence[Neuron] | None = None,
    on_progress: Progress = lambda done, total: None,
    should_stop: Stop = lambda: False,
) -> FirstOrderPass:
    """The prediction for every unit of the replacement's basis, or for `units`, on the records' own completions.

    Cost: a forward over prompts and completions, and one backward over the span a generated token in reach and
    competitor, whatever the number of units. Memory: 4 bytes a record and unit.
    Raises `UsageError` and `AblationStopped`.
    """
    axis = unit_axis.UnitAxis.of(subject, replacement.intervention.basis, units)
    sweep = _Sweep(subject, records, replacement, axis, (Effect.STEADY,), competitors)
    shape = len(records), len(axis.units)
    excess, change = np.full(shape, -np.inf, np.float16), np.full(shape, -1, np.int16)

    def reduced(rows: list[int], row: Tensor, effects: Mapping[Effect, Iterator[AtPosition]]) -> None:
        lead = torch.from_numpy(sweep.leads.lead[rows])
        beyond, first = _reduced(row, effects[Effect.STEADY], lead, shape[1])
        excess[rows] = beyond.clamp(-_HALF, _HALF).cpu().numpy()
        change[rows] = first.cpu().numpy()

    done = 0
    for count in sweep.run(reduced, should_stop):
        done += count
        on_progress(done, len(records))
    return FirstOrderPass(units=axis.units, leads=sweep.leads, excess=excess, change=change)


def effects_of_kinds(
    subject: model.Subject,
    records: Sequence[BehaviourRecord],
    replacement: ReplacementTable,
    units: Sequence[Neuron],
    kinds: Sequence[Effect],
    *,
    competitors: int = thresholds.COMPETITORS,
) -> dict[Effect, Effects]:
    """Leads and effects of several kinds, which share their forwards, of chosen units in full.

    Cost and errors as `prediction`. Memory: 4 bytes a record, generated token, competitor and unit.
    """
    axis = unit_axis.UnitAxis.of(subject, replacement.intervention.basis, units)
    sweep = _Sweep(subject, records, replacement, axis, kinds, competitors)
    found = {kind: np.full((*sweep.leads.lead.shape, len(axis.units)), np.nan, np.float32) for kind in kinds}

    def entered(rows: list[int], row: Tensor, effects: Mapping[Effect, Iterator[AtPosition]]) -> None:
        of_token = np.array(rows)[row.cpu().numpy()]
        for kind, into in found.items():
            for position, members, values in effects[kind]:
                into[of_token[members.cpu().numpy()], position] = values.detach().cpu().numpy()

    deque(sweep.run(entered, lambda: False), 0)
    return {kind: Effects(units=axis.units, leads=sweep.leads, effect=into) for kind, into in found.items()}


def drops(
    subject: model.Subject,
    records: Sequence[BehaviourRecord],
    replacements: Mapping[Basis, ReplacementTable],
    units: Sequence[Neuron],
    should_stop: Stop = lambda: False,
) -> Effects:
    """The steady drops of a few units of any bases, as `effects_of_kinds` gives them but in order of layer.

    They are derivatives carried forward.

    Cost: as `Forcing.at_rest`, and for each unit two forwards over the span from its layer up, whatever the number of
    tokens and competitors. Memory and errors as `effects_of_kinds`.
    """
    (phase,) = {table.intervention.phase for table in replacements.values()}
    forcing, head = forced.Forcing(subject, records, phase), LeadHead(subject, thresholds.COMPETITORS)
    leads = Leads.empty(forcing.completions, thresholds.COMPETITORS)
    found = np.full((*leads.lead.shape, len(units)), np.nan, np.float32)
    ordered = sorted(units, key=lambda unit: unit.layer)

    def one(rows: list[int]) -> None:
        fed = forcing.at_rest(rows)
        # Copies see one another's keys, masked: about as many as the prefix has, so that scores stay small.
        slots, held = fed.clean.batch.prefix.slots, fed.held
        few = min(1 + slots // held.shape[1], default_rows(subject) // held.numel()) or 1
        moved = torch.cat([forcing.moved(fed, some, replacements) for some in parts(ordered, few)])
        at = fed.predicted
        compared = head.compare(fed.final, at)
        leads.enter(rows, at, compared)
        toward = direction(subject, head, fed, compared)
        places = np.array(rows)[at.row.cpu().numpy()], at.position.cpu().numpy()
        found[places] = torch.einsum("tkc,utc->tku", toward, moved[:, at.row, at.column]).cpu().numpy()

    deque(_batch_by_batch(forcing, one, should_stop), 0)
    return Effects(units=tuple(ordered), leads=leads, effect=found)


def _batch_by_batch(
    forcing: forced.Forcing, one: Callable[[list[int]], None], should_stop: Stop, traced: bool = False
) -> Iterator[int]:
    """Records of each batch that `one` was called with. Raises `AblationStopped`."""
    work = deque(forcing.batches(forcing.traced_columns() if traced else None))
    while work:
        if should_stop():
            raise errors.AblationStopped("the estimates were stopped between two batches; nothing was kept")
        records = work.popleft()
        try:
            with products.through_onednn(forcing.subject.hf):
                one(records)
        except (MemoryError, RuntimeError) as error:
            if len(records) == 1 or not placement.is_out_of_memory(error):
                raise
            work.extendleft(reversed(parts(records, (len(records) + 1) // 2)))
            continue
        yield len(records)


def predicted_labels(
    subject: model.Subject,
    task: Task,
    records: Sequence[BehaviourRecord],
    position: Int[np.ndarray, " record"],
    token: Int[np.ndarray, " record"],
) -> Bool[np.ndarray, " record"]:
    """The label of every record after its predicted change; its own where none is predicted (position −1)."""
    labels = np.array([record.label for record in records], bool)
    for row in np.flatnonzero(position >= 0).tolist():
        record, at = records[row], int(position[row])
        begun = (*record.tokens[:at], int(token[row]))
        decided = task.decide(record.example, subject.decode(begun))
        if decided is None:
            (offer,) = subject.offers([record.example])
            whole = begun if offer.is_settled(begun) else (*begun, *record.tokens[at + 1 :])
            if offer.steps and not offer.is_settled(whole):
                continue  # Texts of both sides go on from here.
            decided = task.label(record.example, subject.decode(whole))
        labels[row] = decided
    return labels


class _Sweep:
    """Some estimates, ready to run on the same passes; their leads fill up as they do."""

    def __init__(
        self,
        subject: model.Subject,
        records: Sequence[BehaviourRecord],
        replacement: ReplacementTable,
        axis: unit_axis.UnitAxis,
        kinds: Sequence[Effect],
        competitors: int,
    ) -> None:
        self._subject, self._replacement = subject, replacement
        self._axis, self._kinds = axis, tuple(kinds)
        self._head = LeadHead(subject, competitors)
        self._forcing = forced.Forcing(subject, records, replacement.intervention.phase)
        self.leads = Leads.empty(self._forcing.completions, competitors)

    def run(self, take: Take, should_stop: Stop) -> Iterator[int]:
        """Records of each batch given to `take`, which must read all of its effects. Raises `AblationStopped`."""
        return _batch_by_batch(self._forcing, lambda records: self._one(records, take), should_stop, True)

    def _one(self, records: list[int], take: Take) -> None:
        traced = any(kind is not Effect.DIRECT for kind in self._kinds)
        read = self._forcing.feed_units(records, self._replacement, self._axis.layers, traced=traced)
        at = read.forced.predicted
        compared = self._head.compare(read.forced.final, at)
        self.leads.enter(records, at, compared)
        known = self._subject, self._replacement.intervention.basis, self._axis, self._head, read, compared
        take(records, at.row, {kind: ESTIMATORS[kind](*known) for kind in self._kinds})


def _reduced(row: Tensor, effects: Iterator[AtPosition], lead: Tensor, units: int) -> tuple[Tensor, Tensor]:
    """(largest effect − lead, code of the first predicted change) `[record, unit]` of one batch."""
    excess = torch.full((len(lead), units), -torch.inf)
    change = torch.full(excess.shape, -1, dtype=torch.int16)
    for position, members, values in effects:
        rows = row[members].cpu()
        best, which = (values.detach().cpu() - lead[rows, position][:, :, None]).max(1)
        code = (position * values.shape[1] + which).to(torch.int16)
        before = change[rows]
        change[rows] = torch.where((before < 0) & (best > 0), code, before)
        excess[rows] = torch.maximum(excess[rows], best.float())
    return excess, change
