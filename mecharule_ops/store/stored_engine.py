"""Ablation outcomes that are never computed twice: an engine in front of which stands the run store.

An outcome is keyed by content: a context (model, task, intervention, replacement table), a group of units, an
example. The same key means the same greedy decoding, so searches, controls, questions and resumed runs share it. What
a judge said of a completion is kept likewise.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from mecharule_ops.codec import canonical_json
from mecharule_ops.engine.group_questions import Answer, Answering, Group, GroupQuestion
from mecharule_ops.store.keys import JUDGEMENTS
from mecharule_ops.store.outcome_blocks import StoredAnswers as StoredOutcomes
from mecharule_ops.store.run_store import RunStore
from mecharule_ops.tasks.graders import Judge
from mecharule_ops.types import BehaviourRecord


@dataclass(slots=True)
class Cost:
    """What a process has paid so far, in returned counts."""

    group_evaluations: int = 0
    """Groups for which at least one example was run; several looks at one group count once."""
    example_forwards: int = 0
    """Group × example verifying forwards."""
    reused: int = 0
    """Groups answered from the store alone."""


def context_key(**content: Mapping[str, object] | str) -> str:
    """Sixteen hex digits that change whenever anything that fixes an outcome changes."""
    return hashlib.sha256(canonical_json(content).encode("ascii")).hexdigest()[:16]


def group_key(group: Group) -> str:
    """A name of the set of units, whatever their order."""
    return ",".join(sorted(map(str, group)))


@dataclass(slots=True, kw_only=True, eq=False)
class _Open:
    """A question of a wave while its answers come in."""

    labels: Bool[np.ndarray, "group record"]
    """A row a distinct group."""
    order: list[int]
    """Of each group asked its row."""
    missing: int = 0
    """Pairs that are not answered yet."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Part:
    """What the engine is asked of one question: groups of which the same examples are missing."""

    place: int
    """The question."""
    rows: Int[np.ndarray, " group"]
    columns: Int[np.ndarray, " record"]


class StoredEngine:
    """Answers from the store where it can, from an engine where it must; the engine is made when first needed."""

    def __init__(
        self,
        engine: Callable[[], Answering],
        store: RunStore,
        context: str,
        records: Sequence[BehaviourRecord],
        cost: Cost,
    ) -> None:
        self._make_engine = engine
        self._engine: Answering | None = None
        self._evaluated: set[str] = set()
        self._store = store
        self._context = context
        self._ids = np.array([record.example.id for record in records], np.int64)
        self.cost = cost

    def labels(
        self, groups: Sequence[Group], examples: Sequence[int] | Int[np.ndarray, " record"]
    ) -> Bool[np.ndarray, "group record"]:
        """Post-intervention labels, one row a group, one column an example position.

        Cost: groups × examples example-forwards, less those stored; new ones are stored before this returns.
        """
        positions = np.asarray(examples, np.int64).tolist()
        question = GroupQuestion(groups=tuple(groups), examples=tuple(positions))
        ((_, labels),) = self.answered([question])
        return labels

    def answered(
        self, wave: Sequence[GroupQuestion]
    ) -> Iterator[tuple[int, Bool[np.ndarray, "group record"]]]:
        """(place in the wave, labels) of each question as soon as it is wholly answered, in any order.

        Cost: as `labels`, over all questions; what a question is answered is stored before it is given back.
        """
        open_: dict[int, _Open] = {}
        asked: list[GroupQuestion] = []
        parts: list[_Part] = []
        for place, question in enumerate(wave):
            open_[place], missing = self._stored(place, question)
            parts += missing
            asked += [_asked(question, part) for part in missing]
        for place, found in open_.items():
            if not found.missing:
                yield place, found.labels[found.order]
        for answer in self._answers(asked):
            part = parts[answer.question]
            found = open_[part.place]
            self._keep(asked[answer.question], answer)
            rows, columns = part.rows[list(answer.rows)], part.columns[list(answer.columns)]
            found.labels[np.ix_(rows, columns)] = answer.labels
            found.missing -= answer.labels.size
            if not found.missing:
                yield part.place, found.labels[found.order]

    def missing(
        self, group: Group, examples: Sequence[int] | Int[np.ndarray, " record"]
    ) -> Bool[np.ndarray, " record"]:
        """Of which of these examples the group's outcome is not stored: what asking about it costs."""
        ids = self._ids[np.asarray(examples, np.int64)]
        return np.asarray(~self._store.known_outcomes(self._context, group_key(group), ids).known)

    def keep(
        self,
        group: Group,
        examples: Sequence[int],
        labels: Bool[np.ndarray, " record"],
        margins: Float[np.ndarray, " record"],
    ) -> None:
        """Stores what an engine of the same intervention answered elsewhere, such as whole completions."""
        ids, key = self._ids[np.asarray(examples, np.int64)], group_key(group)
        fresh = ~self._store.known_outcomes(self._context, key, ids).known
        if fresh.any():
            outcomes = StoredOutcomes(
                group=key, example_ids=ids[fresh], labels=labels[fresh], margins=margins[fresh]
            )
            self._store.put_outcomes(self._context, [outcomes])

    def _stored(self, place: int, question: GroupQuestion) -> tuple[_Open, list[_Part]]:
        """What the store knows of a question, and what it does not."""
        ids = self._ids[np.array(question.examples, np.int64)]
        keys = [group_key(group) for group in question.groups]
        first = {key: keys.index(key) for key in keys}
        found = _Open(labels=np.zeros((len(keys), len(ids)), bool), order=[first[key] for key in keys])
        by_known: dict[bytes, list[int]] = defaultdict(list)
        for key, row in first.items():
            stored = self._store.known_outcomes(self._context, key, ids)
            found.labels[row] = stored.labels
            if not stored.known.all():
                by_known[stored.known.tobytes()].append(row)
        missing = [
            _Part(place=place, rows=np.array(rows), columns=np.flatnonzero(~np.frombuffer(mask, bool)))
            for mask, rows in by_known.items()
        ]
        found.missing = sum(len(part.rows) * len(part.columns) for part in missing)
        self.cost.reused += len(keys) - sum(map(len, by_known.values()))
        return found, missing

    def _answers(self, asked: Sequence[GroupQuestion]) -> Iterator[Answer]:
        """The engine's answers; without a question it is not even made."""
        if not asked:
            return
        if self._engine is None:
            self._engine = self._make_engine()
        yield from self._engine.answers(asked)

    def _keep(self, question: GroupQuestion, answer: Answer) -> None:
        """Stores a part of an answer and counts what it cost."""
        ids = self._ids[np.array(question.examples, np.int64)[list(answer.columns)]]
        keys = [group_key(question.groups[row]) for row in answer.rows]
        self._store.put_outcomes(
            self._context,
            [
                StoredOutcomes(group=key, example_ids=ids, labels=labels, margins=margins)
                for key, labels, margins in zip(keys, answer.labels, answer.margins, strict=True)
            ],
        )
        new = set(keys) - self._evaluated
        self._evaluated |= new
        self.cost.group_evaluations += len(new)
        self.cost.example_forwards += answer.example_forwards


def _asked(question: GroupQuestion, part: _Part) -> GroupQuestion:
    """The part of a question that the store does not know."""
    return GroupQuestion(
        groups=tuple(question.groups[row] for row in part.rows.tolist()),
        examples=tuple(question.examples[column] for column in part.columns.tolist()),
    )


class StoredJudgements:
    """Asks a judge only about what the file does not hold; hashes stand for the texts."""

    def __init__(self, store: RunStore, judge: Judge) -> None:
        self._store = store
        self._judge = judge
        self._known = {**(store.find(JUDGEMENTS) or {})}

    def harmful(self, request: str, completion: str) -> bool:
        """The kept judgement, else the judge's. Raises what the judge raises."""
        key = hashlib.sha256(f"{request}\0{completion}".encode("utf-8", "replace")).hexdigest()[:32]
        if key not in self._known:
            self._known[key] = self._judge.harmful(request, completion)
            if self._store.writable:
                self._store.put(JUDGEMENTS, self._known)
        return self._known[key]
