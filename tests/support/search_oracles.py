"""Units with known flips, which answer a search without a model, and a naive search to compare with.

Flips are boolean arrays `unit example`, one a slice, and the channel of a unit is its row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mecharule_ops.cha.group_search import Search
from mecharule_ops.cha.tree import ChaTree
from mecharule_ops.confidence import upper_bound
from mecharule_ops.types import (
    FlipCount,
    FlipEstimate,
    GroupAnswer,
    GroupQuery,
    LayerCandidates,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class UnionOfFlips:
    """A group flips an example when one of its units does: monotone, saturating (paper, hypothesis 2)."""

    associated: np.ndarray
    unrelated: np.ndarray

    def group(self, flips: np.ndarray, channels: tuple[int, ...]) -> np.ndarray:
        """Which examples of a slice the group flips."""
        return np.asarray(flips[list(channels)].any(axis=0))

    def estimate(self, channels: tuple[int, ...], associated: range, unrelated: range) -> FlipEstimate:
        counts = []
        for flips, asked in ((self.associated, associated), (self.unrelated, unrelated)):
            seen = self.group(flips, channels)[list(asked)]
            counts.append(FlipCount(flips=int(seen.sum()), n=len(seen)))
        return FlipEstimate(associated=counts[0], unrelated=counts[1])

    def answer(self, query: GroupQuery) -> GroupAnswer:
        estimate = self.estimate(query.channels, query.associated, query.unrelated)
        return GroupAnswer(node=query.node, estimate=estimate)

    def strengths(self) -> np.ndarray:
        """Ê of every unit."""
        return np.maximum(self.associated.mean(axis=1), self.unrelated.mean(axis=1))


@dataclass(frozen=True, kw_only=True, eq=False)
class Cancelling(UnionOfFlips):
    """As above, but a suppressor in the group restores its own examples: not monotone."""

    restores_associated: np.ndarray
    restores_unrelated: np.ndarray

    def group(self, flips: np.ndarray, channels: tuple[int, ...]) -> np.ndarray:
        restores = self.restores_associated if flips is self.associated else self.restores_unrelated
        return super().group(flips, channels) & ~restores[list(channels)].any(axis=0)


def planted_union(
    rng: np.random.Generator, *, units: int, agonists: int, n: int = 64, noise: float = 0.0
) -> UnionOfFlips:
    """Some units flip between .3 and .9 of a slice, the others a share `noise` of the examples."""
    rates = np.full((2, units), noise)
    chosen = rng.choice(units, size=agonists, replace=False)
    rates[rng.integers(0, 2, size=agonists), chosen] = rng.uniform(0.3, 0.9, size=agonists)
    flips = rng.random((2, units, n)) < rates[:, :, None]
    return UnionOfFlips(associated=flips[0], unrelated=flips[1])


def layer_of(units: int, rng: np.random.Generator | None = None) -> LayerCandidates:
    """A layer of so many units, with random scores, or zeros without a generator."""
    scores = np.zeros(units) if rng is None else rng.normal(size=units)
    return LayerCandidates(layer=3, channels=np.arange(units), scores=scores)


def drive(search: Search, oracle: UnionOfFlips, rng: np.random.Generator | None = None) -> ChaTree:
    """Answer until the search is done; in random order, and some questions only later, with a generator."""
    while not search.done:
        queries = list(search.ask())
        if rng is not None:
            rng.shuffle(queries)
            queries = queries[: int(rng.integers(1, len(queries) + 1))]
        for query in queries:
            search.tell(oracle.answer(query))
    return search.tree


def drive_together(
    searches: Sequence[Search], oracles: Sequence[UnionOfFlips], rng: np.random.Generator | None = None
) -> list[ChaTree]:
    """The same for the layers of one search, whose questions are mixed; each layer has its own flips."""
    while pending := [
        (search, oracle, query)
        for search, oracle in zip(searches, oracles, strict=True)
        for query in search.ask()
    ]:
        if rng is not None:
            rng.shuffle(pending)
            pending = pending[: int(rng.integers(1, len(pending) + 1))]
        for search, oracle, query in pending:
            search.tell(oracle.answer(query))
    return [search.tree for search in searches]


def naive_algorithm_1(
    oracle: UnionOfFlips, channels: tuple[int, ...], scores: np.ndarray, *, n: int, tau: float, alpha: float
) -> dict[tuple[int, ...], tuple[FlipEstimate, float, str]]:
    """Algorithm 1 as printed, by recursion: every queried group with its counts, Û_E and verdict."""
    visited: dict[tuple[int, ...], tuple[FlipEstimate, float, str]] = {}

    def search(group: tuple[int, ...], root: bool) -> None:
        estimate = oracle.estimate(group, range(n), range(n))
        parts = estimate.associated, estimate.unrelated
        ucb = max(upper_bound(part.flips, part.n, alpha / 2) for part in parts)
        if ucb < tau:
            visited[group] = (estimate, ucb, "pruned" if len(group) > 1 else "dropped")
            return
        if len(group) == 1:
            visited[group] = (estimate, ucb, "kept")
            return
        visited[group] = (estimate, ucb, "split")
        first = tuple(c for c in group if scores[c] >= 0)
        second = tuple(c for c in group if scores[c] < 0)
        if not root or not first or not second:
            first, second = group[: len(group) // 2], group[len(group) // 2 :]
        search(first, False)
        search(second, False)

    by_sign = tuple(sorted(channels, key=lambda c: (scores[c] < 0, c)))
    search(by_sign, True)
    return visited
