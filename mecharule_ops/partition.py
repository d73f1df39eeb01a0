"""How the units of a layer are ordered and cut into groups for a search (paper, algorithm 1, lines 10–11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

import numpy as np

from mecharule_ops.types import LayerCandidates

Channels = tuple[int, ...]
"""A group of one layer's units. Slices of one tuple share their integers, so a million units stay light."""


class Order(StrEnum):
    """How units are ordered before bisection; neighbours share small groups."""

    CHANNEL = "channel"
    """By coordinate."""
    ATTRIBUTION = "attribution"
    """By |score|, strongest first: likely agonists meet in the same groups, so fewer groups open."""
    RANDOM = "random"


class RootSplit(StrEnum):
    """How the whole layer is first cut."""

    SIGN = "sign"
    """Units with a score ≥ 0 against the others."""
    NONE = "none"
    """Bisection like every other node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangement:
    """Units in search order, and where the root is cut."""

    channels: Channels
    cut: int
    """Units on the root's first side; 0 when the root is bisected like any other."""


def strongest(layer: LayerCandidates, count: int) -> Channels:
    """The `count` units with the largest |score|, strongest first; ties by coordinate."""
    order = np.argsort(-np.abs(layer.scores), kind="stable")[:count]
    return tuple(layer.channels[order].tolist())


def arrange(
    layer: LayerCandidates,
    *,
    without: Channels,
    order: Order,
    root_split: RootSplit,
    rng: np.random.Generator,
) -> Arrangement:
    """The layer's units except `without`, ordered for bisection."""
    rest = ~np.isin(layer.channels, np.array(without, dtype=np.int64))
    channels, scores = layer.channels[rest], layer.scores[rest]
    keys = {
        Order.CHANNEL: np.arange(len(channels)),
        Order.ATTRIBUTION: np.argsort(np.argsort(-np.abs(scores), kind="stable")),
        Order.RANDOM: rng.permutation(len(channels)),
    }
    negative = scores < 0 if root_split is RootSplit.SIGN else np.zeros(len(scores), dtype=bool)
    placed = np.lexsort((keys[order], negative))
    cut = int(len(channels) - negative.sum()) % max(len(channels), 1)
    return Arrangement(channels=tuple(channels[placed].tolist()), cut=cut)


def bisect(channels: Channels, cut: int = 0) -> tuple[Channels, Channels]:
    """Two parts: at `cut` if given, else in the middle, the first one smaller when the size is odd."""
    assert len(channels) > 1, "a single unit has no parts"
    middle = cut or len(channels) // 2
    return channels[:middle], channels[middle:]


def chunks(channels: Sequence[int], size: int) -> tuple[Channels, ...]:
    """Consecutive groups of at most `size`, their sizes as equal as can be."""
    count = -(-len(channels) // size)
    edges = np.linspace(0, len(channels), count + 1).round().astype(int).tolist() if count else []
    return tuple(tuple(channels[begin:end]) for begin, end in pairwise(edges))
