"""Attribution patching and direct logit attribution over records in batches, halved when memory runs out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from torch import Tensor

from mecharule_ops.errors import AblationStopped
from mecharule_ops.loading.memory import is_out_of_memory
from mecharule_ops.loading.model import Subject
from mecharule_ops.loading.products import through_onednn
from mecharule_ops.mechanism.effects import ESTIMATORS, AtPosition, Effect
from mecharule_ops.mechanism.forced import Forcing
from mecharule_ops.mechanism.leads import LeadHead, Leads
from mecharule_ops.mechanism.unit_axis import UnitAxis
from mecharule_ops.passes.batches import parts
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.types import BehaviourRecord

T = TypeVar("T")
Stop = Callable[[], bool]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """One batch's effects, token position by token position."""

    records: tuple[int, ...]
    row: Tensor
    """Which of the records each predicted token belongs to."""
    effects: Mapping[Effect, Iterator[AtPosition]]


class Sweep:
    """Some estimates, ready to run on the same passes; their leads fill up as they do."""

    def __init__(
        self,
        subject: Subject,
        records: Sequence[BehaviourRecord],
        replacement: ReplacementTable,
        axis: UnitAxis,
        kinds: Sequence[Effect],
        competitors: int,
    ) -> None:
        self._subject, self._replacement = subject, replacement
        self._axis, self._kinds = axis, tuple(kinds)
        self._head = LeadHead(subject, competitors)
        self._forcing = Forcing(subject, records, replacement.intervention.phase)
        self.leads = Leads.empty(self._forcing.completions, competitors)

    def run(self, take: Callable[[Batch], T], should_stop: Stop) -> Iterator[T]:
        """What `take` makes of each batch; it must read all of the batch's effects. Raises `AblationStopped`."""
        work = deque(self._forcing.batches())
        while work:
            if should_stop():
                raise AblationStopped("the estimates were stopped between two batches; nothing was kept")
            records = work.popleft()
            try:
                with through_onednn(self._subject.hf):
                    taken = self._one(records, take)
            except (MemoryError, RuntimeError) as error:
                if len(records) == 1 or not is_out_of_memory(error):
                    raise
                work.extendleft(reversed(parts(records, (len(records) + 1) // 2)))
                continue
            yield taken

    def _one(self, records: Sequence[int], take: Callable[[Batch], T]) -> T:
        traced = any(kind is not Effect.DIRECT for kind in self._kinds)
        read = self._forcing.feed_units(records, self._replacement, self._axis.layers, traced=traced)
        at = read.forced.predicted
        compared = self._head.compare(read.forced.final[at.row, at.column], at.generated)
        self.leads.enter(records, at, compared)
        known = self._subject, self._replacement.intervention.basis, self._axis, self._head, read, compared
        return take(
            Batch(
                records=tuple(records),
                row=at.row,
                effects={kind: ESTIMATORS[kind](*known) for kind in self._kinds},
            )
        )
