"""Answers group queries on the model, exactly and fast; counts their cost (paper, §3 and algorithm 1's oracle).

The engine plans: which records share a chunk of clean tensors, how many groups fit into one forward, what to do
when memory runs out. How a chunk is verified is told in `subject/speculation.py`.

Axes: group record token. `examples` are positions among the records given at construction.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float32

from mecharule_ops.errors import MechaRuleError, UsageError
from mecharule_ops.subject.baselines import ReplacementTable
from mecharule_ops.subject.judging import Judge
from mecharule_ops.subject.memory import free_bytes, is_out_of_memory
from mecharule_ops.subject.model import Subject
from mecharule_ops.subject.products import through_onednn
from mecharule_ops.subject.speculation import Chunk, Speculation, Verified
from mecharule_ops.tasks.base import Task
from mecharule_ops.types import BehaviourRecord, Intervention, Neuron

Group = Collection[Neuron]
"""Distinct units ablated together, usually of one layer."""
_CHUNK_POSITIONS = 128
_ROWS = {"cpu": 1024, "cuda": 16384}


class AblationStopped(MechaRuleError):
    """`should_stop` said so between two batches; what earlier calls returned stays valid."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcomes:
    """Post-intervention labels of every example under every group."""

    labels: Bool[np.ndarray, "group record"]
    margins: Float32[np.ndarray, "group record"]
    """Smallest top-1 − top-2 logit margin over the tokens that decided the row: near 0 a tie, ∞ when no token
    was in reach of the intervention."""
    example_forwards: int
    """Group × example evaluations, those of rows fed again included."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Completions:
    """Whole completions of every example under every group, the stop token included when it came."""

    tokens: tuple[tuple[tuple[int, ...], ...], ...]
    """`[group][record]` token ids."""
    labels: Bool[np.ndarray, "group record"]
    margins: Float32[np.ndarray, "group record"]
    """Smallest top-1 − top-2 logit margin over all tokens in reach of the intervention."""
    example_forwards: int


class AblationEngine:
    """Evaluates `do(A)` on a subject for one task, intervention and set of records.

    `rows` bounds how many positions are fed in one forward; by default it is chosen from free memory. Running
    out of memory halves it and goes on. `should_stop` is asked before every forward.
    """

    def __init__(
        self,
        subject: Subject,
        task: Task,
        records: Sequence[BehaviourRecord],
        intervention: Intervention,
        replacement: ReplacementTable,
        *,
        rows: int | None = None,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        if rows is not None and rows < 1:
            raise UsageError(f"expected rows of 1 or more, got {rows}")
        assert replacement.intervention == intervention, (replacement.intervention, intervention)
        self._subject = subject
        self._records = records
        self._intervention = intervention
        self._should_stop = should_stop
        self._judge = Judge(subject, task, records)
        self._speculation = Speculation(subject, self._judge, records, replacement)
        self._rows = _default_rows(subject) if rows is None else rows
        self._memory = free_bytes(subject.device) // 4
        self._chunks: OrderedDict[tuple[tuple[int, ...], bool], Chunk] = OrderedDict()

    def evaluate(self, groups: Sequence[Group], examples: Sequence[int]) -> Outcomes:
        """Labels after each group's ablation, each row followed only until its label is decided.

        Cost: the clean pass over examples not seen lately, then one evaluation a group and example from the
        group's lowest layer up. Raises `UsageError` for a unit that the model does not have, and
        `AblationStopped`.
        """
        labels, margins = self._baseline(groups, examples)
        forwards = 0
        for chosen, columns, verified in self._verified(groups, examples, early=True):
            labels[np.ix_(chosen, columns)] = verified.labels.T
            margins[np.ix_(chosen, columns)] = verified.margins.T
            forwards += verified.forwards
        return Outcomes(labels=labels, margins=margins, example_forwards=forwards)

    def completions(self, groups: Sequence[Group], examples: Sequence[int]) -> Completions:
        """Every row's whole completion, token for token what decoding under the ablation gives.

        Costs and errors as `evaluate`, without its early end.
        """
        labels, margins = self._baseline(groups, examples)
        tokens = [[self._records[example].tokens for example in examples] for _ in groups]
        forwards = 0
        for chosen, columns, verified in self._verified(groups, examples, early=False):
            labels[np.ix_(chosen, columns)] = verified.labels.T
            margins[np.ix_(chosen, columns)] = verified.margins.T
            forwards += verified.forwards
            for (row, group), completion in verified.changed.items():
                tokens[chosen[group]][columns[row]] = completion
        return Completions(
            tokens=tuple(tuple(row) for row in tokens),
            labels=labels,
            margins=margins,
            example_forwards=forwards,
        )

    def _baseline(self, groups: Sequence[Group], examples: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """What holds where no token is in reach of the intervention."""
        labels = np.array([self._records[example].label for example in examples], dtype=bool)
        shape = (len(groups), len(examples))
        return np.broadcast_to(labels, shape).copy(), np.full(shape, np.inf, np.float32)

    def _verified(
        self, groups: Sequence[Group], examples: Sequence[int], early: bool
    ) -> Iterator[tuple[list[int], list[int], Verified]]:
        """(groups, columns of `examples`, results), batch by batch until every pair was verified."""
        self._check(groups)
        order = sorted(range(len(groups)), key=lambda index: min(neuron.layer for neuron in groups[index]))
        work = deque((columns, order) for columns in self._partition(examples, early) if order)
        while work:
            columns, chosen = work.popleft()
            positions = self._positions(examples, columns, early)
            if positions > self._rows and len(columns) > 1:
                work.extendleft((part, chosen) for part in reversed(_parts(columns, (len(columns) + 1) // 2)))
                continue
            if positions * len(chosen) > self._rows and len(chosen) > 1:
                at_once = max(1, self._rows // positions)
                work.extendleft((columns, part) for part in reversed(_parts(chosen, at_once)))
                continue
            if self._should_stop():
                raise AblationStopped(
                    "the ablations were stopped between two batches; finished ones are kept"
                )
            verified = self._attempt([groups[index] for index in chosen], examples, columns, early)
            if verified is None:
                work.appendleft((columns, chosen))
            else:
                yield chosen, columns, verified

    def _attempt(
        self, groups: Sequence[Group], examples: Sequence[int], columns: Sequence[int], early: bool
    ) -> Verified | None:
        """The results of one batch, or None when memory ran out and the next batch must be half as large."""
        try:
            with torch.inference_mode(), through_onednn(self._subject.hf):
                chunk = self._chunk(tuple(examples[column] for column in columns), early)
                return self._speculation.verify(chunk, groups, self._rows)
        except (MemoryError, RuntimeError) as error:
            smallest = len(groups) == 1 and len(columns) == 1
            if smallest or not is_out_of_memory(error):
                raise
            self._chunks.clear()
            self._rows = max(1, min(self._rows, self._positions(examples, columns, early) * len(groups)) // 2)
            return None

    def _chunk(self, records: tuple[int, ...], early: bool) -> Chunk:
        """The chunk of these records, from the ones kept when it is there."""
        key = (records, early)
        if key not in self._chunks:
            self._chunks[key] = self._speculation.chunk(records, early)
            while len(self._chunks) > 1 and sum(kept.bytes for kept in self._chunks.values()) > self._memory:
                self._chunks.popitem(last=False)
        self._chunks.move_to_end(key)
        return self._chunks[key]

    def _partition(self, examples: Sequence[int], early: bool) -> list[list[int]]:
        """Columns with something to verify, in chunks of spans of (nearly) equal length."""
        lengths = [len(self._speculation.span(example, early).fed) for example in examples]
        columns = sorted(
            (column for column, length in enumerate(lengths) if length),
            key=lambda column: (lengths[column], examples[column]),
        )
        chunks: list[list[int]] = []
        for column in columns:
            shortest = lengths[chunks[-1][0]] if chunks else 0
            full = chunks and (len(chunks[-1]) + 1) * lengths[column] > max(_CHUNK_POSITIONS, lengths[column])
            if not chunks or full or 4 * (lengths[column] - shortest) > shortest:
                chunks.append([])
            chunks[-1].append(column)
        return chunks

    def _positions(self, examples: Sequence[int], columns: Sequence[int], early: bool) -> int:
        """Positions that one group feeds for these columns, padding included."""
        return len(columns) * max(len(self._speculation.span(examples[c], early).fed) for c in columns)

    def _check(self, groups: Sequence[Group]) -> None:
        basis = self._intervention.basis
        width, depth = self._subject.width(basis), self._subject.n_layers
        for group in groups:
            if not group:
                raise UsageError("expected groups of at least one unit, got an empty one")
            for neuron in group:
                inside = neuron.basis is basis and neuron.layer < depth and neuron.channel < width
                if not inside:
                    raise UsageError(
                        f"expected {basis} units of {depth} layers of {width}, got {neuron}; "
                        "choose a unit that this model has"
                    )


def _parts(items: list[int], size: int) -> list[list[int]]:
    return [items[begin : begin + size] for begin in range(0, len(items), size)]


def _default_rows(subject: Subject) -> int:
    """Positions a forward: what fits a quarter of free memory, and no more than the device gains from."""
    config = subject.hf.config
    widest = max(getattr(config, "intermediate_size", 0) or 0, 4 * subject.d_model)
    per_row = 4 * (4 * widest + 8 * subject.d_model + subject.n_heads * 1024)
    return max(1, min(_ROWS.get(subject.device.type, 1024), free_bytes(subject.device) // 4 // per_row))
