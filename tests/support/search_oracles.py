"""Units with known flips, which answer a search without a model, and a naive search to compare with.

Flips are boolean arrays `unit example`, one a slice.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mecharule_ops.cha.group_search import GroupSearch
from mecharule_ops.cha.tree import ChaTree
from mecharule_ops.confidence import upper_bound
from mecharule_ops.nodes import Node, Verdict
from mecharule_ops.types import FlipCount, FlipEstimate, GroupAnswer, GroupQuery, LayerCandidates


def estimate(plus: int, n: int, minus: int = 0, of: int | None = None) -> FlipEstimate:
    """`plus` of n examples of D⁺ flip, `minus` of as many or of `of` others."""
    unrelated = FlipCount(flips=minus, n=n if of is None else of)
    return FlipEstimate(associated=FlipCount(flips=plus, n=n), unrelated=unrelated)


@dataclass(frozen=True, kw_only=True, eq=False)
class UnionOfFlips:
    """A group flips an example when one of its units does: monotone, saturating (paper, hypothesis 2)."""

    associated: np.ndarray
    unrelated: np.ndarray
    stride: int = 1
    """Row i is channel (i + 1) · stride − 1."""

    def group(self, flips: np.ndarray, rows: list[int]) -> np.ndarray:
        """Which examples of a slice the group flips."""
        return np.asarray(flips[rows].any(axis=0))

    def estimate(self, channels: tuple[int, ...], associated: range, unrelated: range) -> FlipEstimate:
        rows = [channel // self.stride for channel in channels]
        plus, minus = (
            self.group(flips, rows)[list(asked)]
            for flips, asked in ((self.associated, associated), (self.unrelated, unrelated))
        )
        return estimate(int(plus.sum()), len(plus), int(minus.sum()), len(minus))

    def answer(self, query: GroupQuery) -> GroupAnswer:
        counts = self.estimate(query.channels, query.associated, query.unrelated)
        return GroupAnswer(node=query.node, estimate=counts)

    def strengths(self) -> np.ndarray:
        """Ê of every unit."""
        return np.maximum(self.associated.mean(axis=1), self.unrelated.mean(axis=1))

    def strong(self, rate: float) -> set[int]:
        """Channels of the units that alone flip that share of a slice."""
        return {(int(row) + 1) * self.stride - 1 for row in np.flatnonzero(self.strengths() >= rate)}


@dataclass(frozen=True, kw_only=True, eq=False)
class Cancelling(UnionOfFlips):
    """As above, but a suppressor in the group restores its own examples: not monotone."""

    restores: np.ndarray

    def group(self, flips: np.ndarray, rows: list[int]) -> np.ndarray:
        return super().group(flips, rows) & ~self.restores[rows].any(axis=0)


def planted_union(
    rng: np.random.Generator, *, units: int, agonists: int, n: int = 64, noise: float = 0.0, stride: int = 1
) -> UnionOfFlips:
    """Some units flip between .3 and .9 of a slice, the others a share `noise` of the examples."""
    rates = np.full((2, units), noise)
    chosen = rng.choice(units, size=agonists, replace=False)
    rates[rng.integers(0, 2, size=agonists), chosen] = rng.uniform(0.3, 0.9, size=agonists)
    flips = rng.random((2, units, n)) < rates[:, :, None]
    return UnionOfFlips(associated=flips[0], unrelated=flips[1], stride=stride)


def quiet(units: int, stride: int = 1) -> UnionOfFlips:
    """No unit flips any of 64 examples."""
    nothing = np.zeros((units, 64), bool)
    return UnionOfFlips(associated=nothing, unrelated=nothing, stride=stride)


def layer_of(
    units: int, rng: np.random.Generator | None = None, layer: int = 3, stride: int = 1
) -> LayerCandidates:
    """A layer of so many units, with random scores, or zeros without a generator."""
    scores = np.zeros(units) if rng is None else rng.normal(size=units)
    return LayerCandidates(layer=layer, channels=np.arange(1, units + 1) * stride - 1, scores=scores)


def drive(search: GroupSearch, oracle: UnionOfFlips, rng: np.random.Generator | None = None) -> ChaTree:
    """Answer until the search is done; in random order, and some questions only later, with a generator."""
    return drive_together([search], [oracle], rng)[0]


def drive_together(
    searches: Sequence[GroupSearch], oracles: Sequence[UnionOfFlips], rng: np.random.Generator | None = None
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


def fate(tree: ChaTree, channel: int) -> Node | None:
    """The node that settled a unit: its own test if it had one, else the smallest decided group with it, or None."""
    settled = [node for node in tree.nodes if node.verdict is not Verdict.SPLIT and channel in node.channels]
    return min(settled, key=lambda node: len(node.channels), default=None)


def naive_algorithm_1(
    oracle: UnionOfFlips, channels: tuple[int, ...], scores: np.ndarray, *, n: int, tau: float, alpha: float
) -> dict[tuple[int, ...], tuple[FlipEstimate, float, str]]:
    """Algorithm 1 as printed, by recursion: every queried group with its counts, Û_E and verdict."""
    visited: dict[tuple[int, ...], tuple[FlipEstimate, float, str]] = {}

    def search(group: tuple[int, ...], root: bool) -> None:
        counts = oracle.estimate(group, range(n), range(n))
        ucb = max(upper_bound(one.flips, one.n, alpha / 2) for one in (counts.associated, counts.unrelated))
        if ucb < tau or len(group) == 1:
            verdict = "kept" if ucb >= tau else "pruned" if len(group) > 1 else "dropped"
            visited[group] = (counts, ucb, verdict)
            return
        visited[group] = (counts, ucb, "split")
        first = tuple(c for c in group if scores[c] >= 0)
        second = tuple(c for c in group if scores[c] < 0)
        if not root or not first or not second:
            first, second = group[: len(group) // 2], group[len(group) // 2 :]
        search(first, False)
        search(second, False)

    search(tuple(sorted(channels, key=lambda c: (scores[c] < 0, c))), True)
    return visited
