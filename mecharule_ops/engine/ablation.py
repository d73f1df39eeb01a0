"""Answers group queries on the model, exactly and fast; counts their cost (paper, §3 and algorithm 1's oracle).

The engine plans: which records share a chunk of clean tensors, how many groups fit into one forward, what to do
when memory runs out. How a chunk is verified is told in `speculation`.

Axes: group record token. `examples` are positions among the records given at construction.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float

from mecharule_ops import errors, types
from mecharule_ops.engine import chunks, settling
from mecharule_ops.engine.outcomes import Completions, Outcomes
from mecharule_ops.engine.speculation import GroupLeads, Speculation, Verified
from mecharule_ops.loading import model, placement, products
from mecharule_ops.passes.batches import chunks_by_length, default_rows, parts
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.tasks.base import Task

Group = Collection[types.Neuron]
"""Distinct units ablated together, usually of one layer."""


class AblationEngine:
    """Evaluates `do(A)` on a subject for one task, intervention and set of records.

    `rows` bounds how many positions are fed in one forward, but for clean ones of records kept together; by default it
    is chosen from free memory. Running out of memory halves it and goes on. `should_stop` is asked before every
    forward. With a `slope` (see `precision`) products are those of the change in bfloat16; every outcome is the float32
    one all the same.
    Engines over the same records, or more of them, share what is `clean`.
    """

    def __init__(
        self,
        subject: model.Subject,
        task: Task,
        records: Sequence[types.BehaviourRecord],
        intervention: types.Intervention,
        replacement: ReplacementTable,
        *,
        rows: int | None = None,
        should_stop: Callable[[], bool] = lambda: False,
        slope: float | None = None,
        clean: dict[tuple[types.Phase, bool], chunks.Chunks] | None = None,
    ) -> None:
        if rows is not None and rows < 1:
            raise errors.UsageError(f"expected rows of 1 or more, got {rows}")
        assert replacement.intervention == intervention, (replacement.intervention, intervention)
        self._subject = subject
        self._records = records
        self._intervention = intervention
        self._should_stop = should_stop
        reader = settling.Reader(subject, task, records)
        prompts = subject.encode([record.example.prompt for record in records])
        pool, phase, basis = {} if clean is None else clean, intervention.phase, intervention.basis
        of = phase, basis.row.last_write
        if (before := pool.get(of)) is None or before.prompts != prompts:
            pool[of] = chunks.Chunks(subject, reader, prompts, phase, basis)
            pool[of].take(before)
        self._chunks = pool[of]
        self.clean, self.keep_together = self._chunks.clean, self._chunks.keep_together
        labels = np.array([record.label for record in records], dtype=bool)
        self._speculation = Speculation(subject, reader, self._chunks, labels, replacement, slope)
        self._rows = default_rows(subject) if rows is None else rows

    @property
    def rows(self) -> int:
        """Positions that are fed at once, at most; halved whenever memory ran out."""
        return self._rows

    def evaluate(self, groups: Sequence[Group], examples: Sequence[int]) -> Outcomes:
        """Labels after each group's ablation, each row followed only until its label is decided.

        Cost: the clean pass over examples not seen lately, then one evaluation a group and example from the
        group's lowest layer up. Raises `UsageError` for a unit that the model does not have, `ModelUnavailable`
        where a logit is no number, and `AblationStopped`.
        """
        return self._filled(groups, examples, self._verified(groups, examples, early=True))

    def completions(
        self, groups: Sequence[Group], examples: Sequence[int], held: Sequence[Group] = ()
    ) -> Completions:
        """Every row's whole completion, token for token what decoding under the ablation gives.

        `held` is empty or names for each group further units, of any basis, that are held at their clean values at
        every position whose text so far is the clean completion's; from the first changed token on no clean value
        exists, and they are released. Costs and errors as `evaluate`, without its early end.
        """
        assert not held or len(held) == len(groups), (len(held), len(groups))
        tokens = [[self._records[example].tokens for example in examples] for _ in groups]
        batches = list(self._verified(groups, examples, early=False, held=held))
        for chosen, columns, verified in batches:
            for (row, group), completion in verified.changed.items():
                tokens[chosen[group]][columns[row]] = completion
        found = self._filled(groups, examples, batches)
        return Completions(
            tokens=tuple(map(tuple, tokens)),
            labels=found.labels,
            margins=found.margins,
            example_forwards=found.example_forwards,
        )

    def leads(self, groups: Sequence[Group], examples: Sequence[int], *, of_change: bool) -> GroupLeads:
        """What each group makes of every predicted token of the examples' completions, groups by lowest layer.

        All groups go through the model at once. With `of_change` products are those of the change.
        """
        self._check(groups, ())
        lengths = [self._chunks.length(example, False) for example in examples]
        found = []
        with torch.inference_mode(), products.through_onednn(self._subject.hf):
            for columns in chunks_by_length(lengths, examples):
                chunk = self._chunks.of(tuple(examples[column] for column in columns), False)
                found.append(self._speculation.leads(chunk, groups, of_change=of_change))
        return GroupLeads.joined(found, 0)

    def _filled(
        self,
        groups: Sequence[Group],
        examples: Sequence[int],
        batches: Iterable[tuple[list[int], list[int], Verified]],
    ) -> Outcomes:
        """What batches gave, over what holds where no token is in reach of the intervention."""
        baseline = np.array([self._records[example].label for example in examples], dtype=bool)
        labels = np.repeat(baseline[None], len(groups), 0)
        margins = np.full(labels.shape, np.inf, np.float32)
        forwards = again = 0
        for chosen, columns, verified in batches:
            labels[np.ix_(chosen, columns)] = verified.labels.T
            margins[np.ix_(chosen, columns)] = verified.margins.T
            forwards += verified.forwards
            again += verified.decided_again
        return Outcomes(labels=labels, margins=margins, example_forwards=forwards, decided_again=again)

    def _verified(
        self, groups: Sequence[Group], examples: Sequence[int], early: bool, held: Sequence[Group] = ()
    ) -> Iterator[tuple[list[int], list[int], Verified]]:
        """(groups, columns of `examples`, results), batch by batch until every pair was verified."""
        self._check(groups, held)
        order = sorted(range(len(groups)), key=lambda index: min(neuron.layer for neuron in groups[index]))
        lengths = [self._chunks.length(example, early) for example in examples]
        work = deque((columns, order) for columns in chunks_by_length(lengths, examples) if order)
        while work:
            columns, chosen = work.popleft()
            positions = len(columns) * max(lengths[column] for column in columns)
            if positions > self._rows and len(columns) > 1:
                work.extendleft((part, chosen) for part in reversed(parts(columns, (len(columns) + 1) // 2)))
                continue
            if positions * len(chosen) > self._rows and len(chosen) > 1:
                at_once = max(1, self._rows // positions)
                work.extendleft((columns, part) for part in reversed(parts(chosen, at_once)))
                continue
            if self._should_stop():
                raise errors.AblationStopped(
                    "the ablations were stopped between two batches; finished ones are kept"
                )
            asked, kept = [groups[index] for index in chosen], [held[index] for index in chosen if held]
            some = tuple(examples[column] for column in columns)
            try:
                with torch.inference_mode(), products.through_onednn(self._subject.hf):
                    verified = self._speculation.verify(self._chunks.of(some, early), asked, self._rows, kept)
            except (MemoryError, RuntimeError) as error:
                if len(chosen) == len(columns) == 1 or not placement.is_out_of_memory(error):
                    raise
                self._chunks.forget()
                self._rows = max(1, min(self._rows, positions * len(chosen)) // 2)
                work.appendleft((columns, chosen))
                continue
            check_numbers(verified.margins.T, self._subject, asked, [self._records[place] for place in some])
            yield chosen, columns, verified

    def _check(self, groups: Sequence[Group], held: Sequence[Group]) -> None:
        for group in groups:
            if not group:
                raise errors.UsageError("expected groups of at least one unit, got an empty one")
            self._subject.check_units(group, self._intervention.basis)
        for group, kept in zip(groups, held, strict=False):
            for neuron in kept:
                self._subject.check_units([neuron], neuron.basis)
            if both := set(group) & set(kept):
                raise errors.UsageError(
                    f"expected units that are not ablated themselves to be held, got {min(both)}"
                )


def check_numbers(
    margins: Float[np.ndarray, "group record"],
    subject: model.Subject,
    groups: Sequence[Group],
    records: Sequence[types.BehaviourRecord],
) -> None:
    """Raises `ModelUnavailable` where a lead is NaN, since the token that led there is none of the model's."""
    for group, record in np.argwhere(np.isnan(margins))[:1].tolist():
        first, *others = sorted(groups[group])
        more = f" and {len(others)} more" if others else ""
        raise errors.ModelUnavailable(
            f"expected logits of {subject.name} that are numbers with {first}{more} ablated, from layer {first.layer} "
            f"on, got others on example {records[record].example.id}; choose another --baseline or --dtype"
        )
