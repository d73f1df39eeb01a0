"""Pairs of prompts that differ by one small edit, on one of which a condition holds: what ablating a unit does to both.

A prompt is drawn from the task; its partner is the first of its edits, the smallest first, on which the condition
switches. Neither is a record of the run, no prompt stands in two pairs, and no flip chooses a pair. The test is
McNemar's, exact and two-sided, on the pairs of which one prompt flips. Edits switch more than the condition, so a
difference is one of these pairs and no proof that the condition makes it. Cost: `matched`, no model calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from mecharule_ops.mcnemar import mcnemar_p
from mecharule_ops.questions.firing import rule_fires
from mecharule_ops.questions.typed_prompt import unobserved
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.run.live_run import Run
from mecharule_ops.tasks.base import Task
from mecharule_ops.types import Example

DRAWN = 20
"""Prompts drawn for each pair that is wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPair:
    """Two prompts one edit apart."""

    holds: Example
    """The condition holds on it."""
    fails: Example


def matched(run: Run, condition: str, most: int) -> list[PromptPair]:
    """Up to `most` pairs, in the order of a draw that the run's seed fixes. Raises `UsageError` on no predicate."""
    generator = np.random.default_rng(run.config.seed)
    known = {record.example.id for record in run.observed.records}
    pairs = list[PromptPair]()
    rule = Rule.parse(condition)
    drawn = list(run.task.examples(len(known) + DRAWN * most, generator))
    # A task of few examples gives all of them in order.
    for example in (drawn[place] for place in generator.permutation(len(drawn))):
        if len(pairs) == most:
            break
        if example.id in known:
            continue
        near = [edit for edit in run.task.edits(example) if edit.id not in known]
        pair = _pair(run.task, rule, example, near)
        if pair is not None:
            pairs.append(pair)
            known |= {pair.holds.id, pair.fails.id}
    return pairs


def _pair(task: Task, rule: Rule, example: Example, near: Sequence[Example]) -> PromptPair | None:
    holds = rule_fires(rule, task, [unobserved(one, task) for one in (example, *near)])
    switched = np.flatnonzero(holds[1:] != holds[0])
    if not len(switched):
        return None
    other = near[int(switched[0])]
    return PromptPair(holds=example, fails=other) if holds[0] else PromptPair(holds=other, fails=example)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTable:
    """Pairs by which of their two prompts flips."""

    both: int
    only_holds: int
    only_fails: int
    neither: int

    @classmethod
    def of(cls, holds: Bool[np.ndarray, " pair"], fails: Bool[np.ndarray, " pair"]) -> PairTable:
        """From the flips of either side."""
        counts = [(one & two).sum() for one, two in ((holds, fails), (holds, ~fails), (~holds, fails))]
        both, only_holds, only_fails = map(int, counts)
        rest = len(holds) - both - only_holds - only_fails
        return cls(both=both, only_holds=only_holds, only_fails=only_fails, neither=rest)

    @property
    def n(self) -> int:
        """Pairs in all."""
        return self.both + self.only_holds + self.only_fails + self.neither

    @property
    def p(self) -> float:
        """McNemar's, exact, two-sided; 1 where no pair parts."""
        return mcnemar_p(self.only_holds, self.only_fails)


def sides(pairs: Sequence[PromptPair]) -> Iterator[Example]:
    """The prompts of pairs, the side where it holds first."""
    for pair in pairs:
        yield from (pair.holds, pair.fails)
