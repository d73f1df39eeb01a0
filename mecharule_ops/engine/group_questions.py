"""The one waist between what asks and what ablates: a wave of questions in, answers in any order out.

Theory of operation. Searches, audits, controls and coverage ask which labels a wave of groups leaves on some examples.
Whoever answers may cut the questions, mix them and give parts back as they come; each part says what it answers. An
answer is fixed by model, units, intervention, example and type of the weights, and by nothing else: not by the wave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float

from mecharule_ops.types import Neuron

Group = tuple[Neuron, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupQuestion:
    """Every group on every example."""

    groups: tuple[Group, ...]
    examples: tuple[int, ...]
    """Positions among the records of whoever answers."""

    @property
    def pairs(self) -> int:
        """Example-forwards that it takes at least."""
        return len(self.groups) * len(self.examples)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answer:
    """Some groups of one question on some of its examples."""

    question: int
    """Place in the wave."""
    rows: tuple[int, ...]
    """Places of the groups in the question."""
    columns: tuple[int, ...]
    """Places of the examples in the question."""
    labels: Bool[np.ndarray, "group record"]
    """B(x) under do(group)."""
    margins: Float[np.ndarray, "group record"]
    """Smallest lead of a generated token over the next best one, in logits."""
    example_forwards: int
    """Group × example pairs that were really run."""
    decided_again: int = 0
    """Outcomes that were too close for products of the change, and were decided in float32."""

    @classmethod
    def of(
        cls, question: int, rows: tuple[int, ...], columns: tuple[int, ...], outcomes: EngineOutcomes
    ) -> Answer:
        """What an engine made of them."""
        return cls(
            question=question,
            rows=rows,
            columns=columns,
            labels=outcomes.labels,
            margins=outcomes.margins,
            example_forwards=outcomes.example_forwards,
            decided_again=outcomes.decided_again,
        )


@runtime_checkable
class EngineOutcomes(Protocol):
    """Labels and margins of groups by examples, and what they cost."""

    @property
    def labels(self) -> Bool[np.ndarray, "group record"]:
        """B(x) under do(group), a row a group."""

    @property
    def margins(self) -> Float[np.ndarray, "group record"]:
        """Smallest lead of a generated token over the next best one, in logits."""

    @property
    def example_forwards(self) -> int:
        """Group × example pairs that were really run."""

    @property
    def decided_again(self) -> int:
        """Outcomes that were decided in float32 after a lower type was in doubt."""


@runtime_checkable
class Engine(Protocol):
    """What ablates one rectangle at a time: the fast engine or the reference path."""

    def evaluate(self, groups: Sequence[Group], examples: Sequence[int]) -> EngineOutcomes:
        """Ablates every group on every example, given as positions among the engine's records."""


@runtime_checkable
class Answering(Protocol):
    """What answers waves."""

    def answers(self, wave: Sequence[GroupQuestion]) -> Iterator[Answer]:
        """Parts of answers in any order, until every pair of every question was answered once."""


@dataclass(frozen=True, slots=True)
class InTurn:
    """An engine of this process, which answers one question after the other, each as a whole."""

    engine: Engine

    def answers(self, wave: Sequence[GroupQuestion]) -> Iterator[Answer]:
        """Raises what the engine raises."""
        for place, question in enumerate(wave):
            rows, columns = tuple(range(len(question.groups))), tuple(range(len(question.examples)))
            yield Answer.of(place, rows, columns, self.engine.evaluate(question.groups, question.examples))


@dataclass(frozen=True, slots=True)
class Counted:
    """Answers that are counted as they pass."""

    inner: Answering
    count: Callable[[int, int], None]
    """Is told outcomes, and those of them that were decided again."""

    def answers(self, wave: Sequence[GroupQuestion]) -> Iterator[Answer]:
        """As the inner ones."""
        for answer in self.inner.answers(wave):
            self.count(answer.labels.size, answer.decided_again)
            yield answer
