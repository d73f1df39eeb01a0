"""How many outcomes of a run were decided in the type of its weights, and how many again in float32."""

from __future__ import annotations

from collections.abc import Sequence

from mecharule_ops.findings.counts import Numbers
from mecharule_ops.store import keys
from mecharule_ops.store.run_store import RunStore
from mecharule_ops.types import Intervention, Share


def numbers_of(store: RunStore, interventions: Sequence[Intervention]) -> Numbers | None:
    """What the run computed with; None for float32 on the processor."""
    placed = store.get(keys.PLACED) if store.has(keys.PLACED) else None
    if placed is None or (placed["dtype"], placed["device"]) == ("float32", "cpu"):
        return None
    names = [name for name in map(keys.decided, interventions) if store.has(name)]
    counts = [store.get(name) for name in names]
    again = Share(count=sum(count["again"] for count in counts), n=sum(count["outcomes"] for count in counts))
    return Numbers(dtype=placed["dtype"], device=placed["device"], again=again if counts else None)
