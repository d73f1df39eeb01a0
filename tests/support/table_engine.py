"""An engine whose answers are read off a table of planted flips, and which counts what it is asked."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mecharule_ops.engine.outcomes import Group, Outcomes
from mecharule_ops.store.run_store import RunStore
from mecharule_ops.store.stored_engine import Cost, StoredEngine
from mecharule_ops.types import BehaviourRecord, Example


@dataclass(kw_only=True, eq=False)
class TableEngine:
    """A group flips the examples that any of its units flips; every baseline label is true."""

    flips: np.ndarray
    """`unit record`; a unit's row is its channel, whatever its layer."""
    asked: Counter = field(default_factory=Counter)
    """How often each (set of units, record) was evaluated."""
    calls: list[tuple[int, int]] = field(default_factory=list)
    """(groups, examples) of each call."""

    def evaluate(self, groups: Sequence[Group], examples: Sequence[int]) -> Outcomes:
        self.calls.append((len(groups), len(examples)))
        for group in groups:
            self.asked.update((frozenset(group), example) for example in examples)
        flipped = np.array(
            [self.flips[[unit.channel for unit in group]].any(axis=0)[list(examples)] for group in groups]
        )
        margins = np.where(flipped, 1.0, 2.0).astype(np.float32)
        return Outcomes(labels=~flipped, margins=margins, example_forwards=flipped.size)


def records(count: int) -> tuple[BehaviourRecord, ...]:
    """Records whose example ids differ from their positions."""
    return tuple(
        BehaviourRecord(
            example=Example(id=1000 - 3 * position, prompt=f"{position}", fields={}),
            tokens=(1,),
            completion="1",
            parsed={},
            label=True,
        )
        for position in range(count)
    )


def new_store(path: Path) -> RunStore:
    """An empty run file."""
    return RunStore.create(path, {"run": "0001", "settings": {}})


def stored(
    store: RunStore, engine: TableEngine, context: str = "c", make: Callable[[], TableEngine] | None = None
) -> StoredEngine:
    """The engine behind a store, with a cost of its own."""
    return StoredEngine(make or (lambda: engine), store, context, records(engine.flips.shape[1]), Cost())
