"""What a task must offer: examples, how to read and label a completion, first predicates, and its own words.

Nothing here assumes numbers or an exact answer: a task over texts implements the same protocol, and most of it
is ready in `text`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from mecharule_ops.errors import UsageError
from mecharule_ops.tasks.text_pieces import SourceSpan
from mecharule_ops.types import BehaviourRecord, Columns, Example, OutcomeWords, Phase, Value


@runtime_checkable
class Task(Protocol):
    """A behaviour to explain. Implementations are frozen and hold settings only."""

    @property
    def name(self) -> str:
        """The word on the command line."""

    @property
    def max_new_tokens(self) -> int:
        """Greedy generation stops here."""

    @property
    def stop(self) -> tuple[str, ...]:
        """Generation stops at the first token whose text contains one of these."""

    @property
    def phase(self) -> Phase:
        """The intervention phase that suits the task."""

    @property
    def prompt_columns(self) -> frozenset[str]:
        """Columns known before generation; every other column reads the output."""

    @property
    def solution_columns(self) -> frozenset[str]:
        """Of these the ones that tell the right answer, which a gate does not read unless it is told to."""

    @property
    def cluster_column(self) -> str:
        """The column whose values name items that are not independent (of one template); empty for none."""

    @property
    def words(self) -> OutcomeWords:
        """What a person calls the two outcomes, and whether the first one is harm."""

    @property
    def concealed(self) -> bool:
        """Whether prompts and completions are shown only to who asks for them (`--show-text`)."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that every report of the task must say: where its items and its labels come from."""

    def examples(self, count: int, generator: np.random.Generator) -> tuple[Example, ...]:
        """`count` distinct examples, or all there are; the same generator state gives the same ones."""

    def parse(self, example: Example, completion: str) -> Mapping[str, Value]:
        """Fields read off a completion; always the same keys with the same types."""

    def label(self, example: Example, completion: str) -> bool:
        """B(x) of a finished completion."""

    def decide(self, example: Example, partial: str) -> bool | None:
        """The label every continuation of `partial` must get, or None while it can still go either way.

        A task that cannot know returns None always: then every completion is generated to its end.
        """

    def read(self, text: str) -> Example:
        """The example of a typed prompt; the few-shot prefix may be left out.

        Raises `UsageError` when the text is none of the task's prompts.
        """

    def edits(self, example: Example) -> tuple[Example, ...]:
        """Examples of the task that differ from this one by one small edit, the smallest first; may be empty."""

    def sources(self, example: Example, completion: str) -> tuple[SourceSpan, ...]:
        """Named pieces of the prompt followed by a completion, end to end: what an attention head can read."""

    def columns(self, records: Sequence[BehaviourRecord]) -> Columns:
        """Typed columns over records: the prompt's fields, the output's fields, and their texts."""

    def seed_predicates(self) -> tuple[str, ...]:
        """The task's hand-written predicates in the predicate language (paper, §4.2)."""

    def account_predicates(self) -> tuple[str, ...]:
        """A larger vocabulary over the prompt, from which one unit's flips are told apart."""

    def describe(self) -> Mapping[str, Value]:
        """Every setting that changes an example or a label; hashed into run and certificate."""


def drawn(total: int, count: int, generator: np.random.Generator) -> Sequence[int]:
    """`count` distinct places of `total`, drawn uniformly, or all in order. Raises `UsageError` for less than none."""
    if count < 0:
        raise UsageError(f"expected a count of 0 or more, got {count}")
    return range(total) if count >= total else generator.choice(total, size=count, replace=False).tolist()
