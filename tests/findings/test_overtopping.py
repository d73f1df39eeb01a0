"""Dominance inside opened groups, against hand counts and a slow definition."""

from __future__ import annotations

import pytest

from mecharule_ops.cha.tree import ChaTree
from mecharule_ops.findings.measures import dominance
from mecharule_ops.types import ChaNode, FlipCount, FlipEstimate, Regime, SearchStatus, Verdict


def node(number: int, parent: int | None, channels: tuple[int, ...], flips: int, verdict: Verdict) -> ChaNode:
    counts = FlipEstimate(associated=FlipCount(flips=flips, n=10), unrelated=FlipCount(flips=0, n=10))
    return ChaNode(
        node=number,
        parent=parent,
        layer=3,
        depth=0,
        channels=channels,
        estimate=counts,
        ucb=1.0,
        verdict=verdict,
    )


def tree(*nodes: ChaNode) -> ChaTree:
    return ChaTree(
        layer=3,
        regime=Regime.BASELINE_POSITIVE,
        tau=0.2,
        epsilon=0.2,
        units=8,
        nodes=nodes,
        queries=len(nodes),
        example_forwards=0,
        status=SearchStatus.COMPLETE,
    )


EIGHT = tuple(range(8))
SEARCHED = tree(
    node(0, None, EIGHT, 5, Verdict.SPLIT),
    node(1, 0, EIGHT[:4], 6, Verdict.SPLIT),
    node(2, 0, EIGHT[4:], 1, Verdict.PRUNED),
    node(3, 1, (0, 1), 1, Verdict.PRUNED),
    node(4, 1, (2,), 4, Verdict.KEPT),
    node(5, 1, (3,), 3, Verdict.KEPT),
)


def test_dominance_by_hand() -> None:
    """Inside 8 units the best unit has 4 of 5 flips, the best four 6; inside the four 4 of 6, and no other group."""
    first, second = dominance([SEARCHED])
    assert (first.size, first.ratio, first.small_ratio) == (8, pytest.approx(0.8), pytest.approx(1.2))
    assert (second.size, second.ratio, second.small_ratio) == (4, pytest.approx(4 / 6), pytest.approx(4 / 6))


def test_groups_without_a_unit_tested_inside_have_no_dominance() -> None:
    """An opened group whose parts were all pruned says nothing about its units."""
    pruned = tree(SEARCHED.nodes[0], SEARCHED.nodes[2])
    assert dominance([pruned]) == ()
