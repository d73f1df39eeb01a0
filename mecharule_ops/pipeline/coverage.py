"""Flips of chosen units on all of D_b, each ablated alone, and the union coverage of each layer while they come in.

Cov_∪ of the paper, §5: the share of one regime's records that at least one of the units flips.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from mecharule_ops.engine.asking import Group
from mecharule_ops.events import LayerCovered
from mecharule_ops.findings.measures import union_coverage
from mecharule_ops.findings.records import LayerCoverage
from mecharule_ops.pipeline.journal import Journal
from mecharule_ops.pipeline.localise import Localised
from mecharule_ops.pipeline.run import Run
from mecharule_ops.types import Neuron, Share

CHUNK = 256
"""Records a call to one engine, between two signs of progress; workers get as many each."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coverage:
    """Flips of some units, each alone, on every record of D_b."""

    neurons: tuple[Neuron, ...]
    eligible: Int[np.ndarray, " eligible"]
    """Positions of D_b among the records."""
    flips: Bool[np.ndarray, "neuron eligible"]

    def by_layer(self) -> tuple[LayerCoverage, ...]:
        """Union coverage of each layer's units."""
        layers = np.array([neuron.layer for neuron in self.neurons])
        return tuple(
            LayerCoverage(layer=int(layer), flipped=union_coverage(self.flips[layers == layer]))
            for layer in np.unique(layers)
        )


def coverage(
    run: Run,
    journal: Journal,
    found: Localised,
    neurons: Sequence[Neuron],
    stage: str,
    seen: Callable[[Coverage], None] = lambda chunk: None,
) -> Coverage:
    """Ablate each unit alone on all of D_b; `seen` is told every chunk of records.

    Cost: units × |D_b| example-forwards, less what is stored.
    """
    eligible = run.eligible(found.regime)
    groups: list[Group] = [(neuron,) for neuron in neurons]
    done, flips = 0, np.zeros((len(groups), len(eligible)), bool)
    for columns in _portions(eligible, found.examples, CHUNK * run.width) if groups else ():
        chunk = eligible[columns]
        flips[:, columns] = run.flips(groups, chunk.tolist(), found.regime)
        seen(Coverage(neurons=tuple(neurons), eligible=chunk, flips=flips[:, columns]))
        done += len(columns)
        journal.progress(stage)(done, len(eligible))
    return Coverage(neurons=tuple(neurons), eligible=eligible, flips=flips)


def _portions(
    eligible: Int[np.ndarray, " eligible"], searched: Sequence[int], size: int
) -> Iterator[np.ndarray]:
    """Columns of D_b, a call's worth of them at a time; those on which the search ran last.

    Of these each unit has other outcomes stored; of the rest none has any, so all units are asked about it at once.
    """
    known = np.isin(eligible, searched)
    for part in (np.flatnonzero(~known), np.flatnonzero(known)):
        yield from np.split(part, range(size, len(part), size)) if len(part) else ()


def tell_layers(run: Run, journal: Journal, found: Localised) -> Callable[[Coverage], None]:
    """What `coverage` shall tell its chunks to: the layers' union coverage so far; the full count is kept."""
    total, records = len(run.eligible(found.regime)), 0
    flipped: dict[int, int] = {}

    def seen(chunk: Coverage) -> None:
        nonlocal records
        records += len(chunk.eligible)
        for each in chunk.by_layer():
            flipped[each.layer] = flipped.get(each.layer, 0) + each.flipped.count
            covered = LayerCovered(
                regime=found.regime.value,
                layer=f"{found.basis.letter}{each.layer}",
                flipped=flipped[each.layer],
                n=records,
            )
            (journal.emit if records == total else journal.show)(covered)

    return seen


def share_of_union(flips: Coverage, but: Sequence[int] = ()) -> Share | None:
    """Cov∪ of the units on D_b less the records `but`, on which they were chosen; None when there were no units."""
    outside = ~np.isin(flips.eligible, but)
    return union_coverage(flips.flips[:, outside]) if flips.neurons else None
