"""How the units of a layer are ordered and cut into groups for a search (paper, algorithm 1, lines 10–11), and parted.

Units that were pruned together are parted, so that two that cancel are asked without each other: of any two of one
pruned group, one round holds exactly one (`separated`). Halves of quiet groups are asked together. A τ-agonist that
turns up refutes its group, whose other units are asked alone.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise, zip_longest

import numpy as np
from jaxtyping import Shaped

from mecharule_ops.types import LayerCandidates

Channels = tuple[int, ...]
"""A group of one layer's units. Slices of one tuple share their integers, so a million units stay light."""


class Order(StrEnum):
    """How units are ordered before bisection; neighbours share small groups."""

    CHANNEL = "channel"
    """By coordinate."""
    ATTRIBUTION = "attribution"
    """By |score|, strongest first: likely agonists meet in the same groups, so fewer groups open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """A group that a search starts from."""

    channels: Channels
    cut: int
    """Units on its first side when it splits; 0 for the middle."""


def roots(layer: LayerCandidates, order: Order, largest: int | None) -> tuple[Root, ...]:
    """The layer as one root, or cut into roots of at most `largest` units; scores ≥ 0 stand apart from the others."""
    count = len(layer.channels)
    negative = np.zeros(count, dtype=bool) if layer.scores is None else layer.scores < 0
    channels = tuple(layer.channels[np.lexsort((_rank(layer, order), negative))].tolist())
    cut = count - int(negative.sum())
    if largest is None:
        return (Root(channels=channels, cut=cut % count),) if count else ()
    sides = channels[:cut], channels[cut:]
    return tuple(Root(channels=part, cut=0) for side in sides for part in _chunks(side, largest))


def bisect(channels: Channels, cut: int = 0) -> tuple[Channels, Channels]:
    """Two parts: at `cut` if given, else in the middle, the first one smaller when the size is odd."""
    assert len(channels) > 1, "a single unit has no parts"
    middle = cut or len(channels) // 2
    return channels[:middle], channels[middle:]


def separated(channels: Channels) -> tuple[Channels, ...]:
    """⌈log₂ (n + 1)⌉ groups, one of which holds exactly one of any two units; each unit is in one at least.

    Those whose place, from 1, has a bit; fewer cannot do (a separating system: Rényi 1961).
    """
    places = dict(enumerate(channels, 1))
    bits = range(len(channels).bit_length())
    return tuple(tuple(unit for place, unit in places.items() if place >> bit & 1) for bit in bits)


def _rank(layer: LayerCandidates, order: Order) -> Shaped[np.ndarray, " channel"]:
    """What units are sorted by; ties, and units that attribution was not asked about, keep the order of channels."""
    if order is Order.ATTRIBUTION and layer.scores is not None:
        return -np.abs(layer.scores)
    return layer.channels


def _chunks(channels: Channels, largest: int) -> tuple[Channels, ...]:
    """Consecutive groups of at most `largest`, their sizes as equal as can be."""
    count = -(-len(channels) // largest)
    edges = [len(channels) * i // count for i in range(count)]
    return tuple(channels[begin:end] for begin, end in pairwise([*edges, len(channels)]))


class Parting:
    """The rounds of one layer; each waits for the answers to the one before."""

    def __init__(
        self, pruned: Mapping[Channels, float], *, of: Callable[[int], bool], quiet: float, largest: int
    ) -> None:
        """`pruned` says of each group what share of a slice it flips; only units `of` which it holds are parted.

        Halves of groups whose shares sum to `quiet`, at most `largest` units, are one question.
        """
        self._pruned, self._refuted = tuple(pruned), dict[int, None]()
        halves = [
            [(half, share) for half in separated(tuple(filter(of, group)))] for group, share in pruned.items()
        ]
        self._rounds = [list(_joined(filter(None, turn), quiet, largest)) for turn in zip_longest(*halves)]

    def refute(self, unit: int) -> None:
        """A unit is a τ-agonist: whatever was pruned together with it was pruned wrongly."""
        for group in self._pruned:
            if unit in group:
                self._refuted |= dict.fromkeys(group)

    def following(self, settled: Set[int], alone: int) -> list[Channels]:
        """The next groups, without units that are `settled`; none when there is nothing left to part.

        At most so many units of refuted groups are asked `alone` at a time.
        """
        while self._rounds or self._refuted:
            if open_ := [unit for unit in self._refuted if unit not in settled]:
                return [(unit,) for unit in open_[:alone]]
            self._refuted.clear()
            groups = self._rounds.pop(0) if self._rounds else []
            left = [tuple(unit for unit in group if unit not in settled) for group in groups]
            if left := [group for group in left if group]:
                return left
        return []


def _joined(halves: Iterable[tuple[Channels, float]], quiet: float, largest: int) -> Iterator[Channels]:
    group: Channels = ()
    flipped = 0.0
    for half, share in halves:
        if group and (flipped + share > quiet or len(group + half) > largest):
            yield group
            group, flipped = (), 0.0
        group, flipped = group + half, flipped + share
    if group:
        yield group
