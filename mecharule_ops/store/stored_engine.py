"""Ablation outcomes that are never computed twice: an engine in front of which stands the run store.

An outcome is keyed by content: a context (model, task, intervention, replacement table), a group of units, an
example. The same key means the same greedy decoding, so searches, controls, questions and resumed runs share it.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from mecharule_ops.codec import canonical_json
from mecharule_ops.store.outcome_blocks import Outcomes as StoredOutcomes
from mecharule_ops.store.run_store import RunStore
from mecharule_ops.types import BehaviourRecord, Neuron

Group = tuple[Neuron, ...]


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


@runtime_checkable
class Engine(Protocol):
    """What answers group ablations: the fast engine or the reference path."""

    def evaluate(self, groups: Sequence[Group], examples: Sequence[int]) -> EngineOutcomes:
        """Ablates every group on every example, given as positions among the engine's records."""


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


class StoredEngine:
    """Answers from the store where it can, from the engine where it must; the engine is made when first needed."""

    def __init__(
        self,
        engine: Callable[[], Engine],
        store: RunStore,
        context: str,
        records: Sequence[BehaviourRecord],
        cost: Cost,
    ) -> None:
        self._make_engine = engine
        self._engine: Engine | None = None
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
        positions = np.asarray(examples, np.int64)
        ids = self._ids[positions]
        keys = [group_key(group) for group in groups]
        first = {key: keys.index(key) for key in keys}
        labels = np.zeros((len(groups), len(positions)), bool)
        by_known: dict[bytes, list[int]] = defaultdict(list)
        for key, row in first.items():
            stored = self._store.known_outcomes(self._context, key, ids)
            labels[row] = stored.labels
            if not stored.known.all():
                by_known[stored.known.tobytes()].append(row)
        for mask, rows in by_known.items():
            missing = ~np.frombuffer(mask, bool)
            fresh = self._run([groups[row] for row in rows], positions[missing])
            labels[np.ix_(np.array(rows), np.flatnonzero(missing))] = fresh
        self.cost.reused += len(groups) - sum(map(len, by_known.values()))
        return labels[[first[key] for key in keys]]

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
            self._store.put_outcomes(self._context, key, ids[fresh], labels[fresh], margins[fresh])

    def _run(self, groups: Sequence[Group], positions: np.ndarray) -> Bool[np.ndarray, "group record"]:
        if self._engine is None:
            self._engine = self._make_engine()
        outcomes = self._engine.evaluate(groups, positions.tolist())
        ids = self._ids[positions]
        self._store.put_outcomes_many(
            self._context,
            [
                StoredOutcomes(group=group_key(group), example_ids=ids, labels=labels, margins=margins)
                for group, labels, margins in zip(groups, outcomes.labels, outcomes.margins, strict=True)
            ],
        )
        new = set(map(group_key, groups)) - self._evaluated
        self._evaluated |= new
        self.cost.group_evaluations += len(new)
        self.cost.example_forwards += outcomes.example_forwards
        return outcomes.labels
