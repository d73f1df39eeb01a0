"""Ablation outcomes that are never computed twice: an engine in front of which stands the run store.

An outcome is keyed by content: a context (model, task, intervention, replacement table), a group of units, an
example. The same key means the same greedy decoding, so searches, controls, questions and resumed runs share it.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from mecharule_ops import codec, types
from mecharule_ops.engine.outcomes import Engine, Group, Outcomes
from mecharule_ops.store.outcome_blocks import StoredAnswers
from mecharule_ops.store.run_store import RunStore

_BETWEEN_WRITES = 64
"""Groups asked between two writes, which is what a kill loses at most; as many more as a device feeds more than 1,024
positions at once."""


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
    return hashlib.sha256(codec.canonical_json(content).encode("ascii")).hexdigest()[:16]


def group_key(group: Group) -> str:
    """A name of the set of units, whatever their order."""
    return ",".join(sorted(map(str, group)))


class StoredEngine:
    """Answers from the store where it can, from an engine where it must; the engine is made when first needed."""

    def __init__(
        self,
        engine: Callable[[], Engine],
        store: RunStore,
        context: str,
        records: Sequence[types.BehaviourRecord],
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

        Cost: groups × examples example-forwards, less those stored; new ones are stored as they are made.
        """
        positions = np.asarray(examples, np.int64)
        ids, keys = self._ids[positions], [group_key(group) for group in groups]
        distinct = dict(zip(keys, groups, strict=True))
        labels = dict[str, np.ndarray]()
        by_known: dict[bytes, list[str]] = defaultdict(list)
        for key in distinct:
            stored = self._store.known_outcomes(self._context, key, ids)
            labels[key] = stored.labels
            if not stored.known.all():
                by_known[stored.known.tobytes()].append(key)
        self.cost.reused += len(keys) - sum(map(len, by_known.values()))
        for mask, some in by_known.items():
            columns = np.flatnonzero(~np.frombuffer(mask, bool))
            if self._engine is None:
                self._engine = self._make_engine()
            size = _BETWEEN_WRITES * max(1, getattr(self._engine, "rows", 0) // 1024)
            for begin in range(0, len(some), size):
                part = some[begin : begin + size]
                found = self._engine.evaluate([distinct[key] for key in part], positions[columns].tolist())
                self._keep(part, ids[columns], found)
                for key, row in zip(part, found.labels, strict=True):
                    labels[key][columns] = row
        return np.array([labels[key] for key in keys], bool).reshape(len(keys), len(ids))

    def _keep(self, keys: Sequence[str], ids: Int[np.ndarray, " record"], found: Outcomes) -> None:
        """Stores what the engine gave and counts what it cost."""
        answers = zip(keys, found.labels, found.margins, strict=True)
        blocks = (StoredAnswers(group=key, example_ids=ids, labels=ls, margins=ms) for key, ls, ms in answers)
        self._store.put_outcomes(self._context, blocks)
        self.cost.group_evaluations += len(set(keys) - self._evaluated)
        self._evaluated |= set(keys)
        self.cost.example_forwards += found.example_forwards

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
        fresh = self.missing(group, examples)
        if fresh.any():
            ids, key = self._ids[np.asarray(examples, np.int64)[fresh]], group_key(group)
            outcomes = StoredAnswers(group=key, example_ids=ids, labels=labels[fresh], margins=margins[fresh])
            self._store.put_outcomes(self._context, [outcomes])
