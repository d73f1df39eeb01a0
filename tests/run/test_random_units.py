"""Random units beside a unit: who can be drawn, and how often."""

from __future__ import annotations

import numpy as np
from scipy import stats

from mecharule_ops.run.controlling import random_units
from mecharule_ops.types import Basis, Neuron

BASIS, WIDTH = Basis.MLP_OUT, 6
FOUND = Neuron(BASIS, 1, 2)


def test_every_other_unit_of_the_layers_is_drawn_equally_often() -> None:
    """Over seeds each of the 11 others comes as often, found ones too; the unit itself never comes."""
    counts: dict[Neuron, int] = {}
    for seed in range(1100):
        for unit in random_units(BASIS, [1, 4], WIDTH, 2, but=[FOUND], seed=seed):
            counts[unit] = counts.get(unit, 0) + 1
    others = {Neuron(BASIS, layer, channel) for layer in (1, 4) for channel in range(WIDTH)} - {FOUND}
    assert set(counts) == others
    assert stats.chisquare(list(counts.values())).pvalue > 0.001
    assert (
        stats.chisquare([count + 90 * (unit.channel == 0) for unit, count in counts.items()]).pvalue < 0.001
    )


def test_a_prefix_is_a_smaller_draw_and_a_layer_ends() -> None:
    """So a larger control keeps what a smaller one ablated; at most all others are drawn, none twice."""
    every = random_units(BASIS, [3], WIDTH, seed=5)
    assert random_units(BASIS, [3], WIDTH, 4, seed=5) == every[:4]
    assert len(set(every)) == len(every) == WIDTH
    assert random_units(BASIS, [3], WIDTH, 99, but=every[:2], seed=5) == every[2:]


def test_purposes_and_seeds_draw_for_themselves() -> None:
    """And the draw is the same whenever it is made."""
    draws = [
        random_units(BASIS, range(20), 50, 30, of=of, seed=seed) for of in ("one", "two") for seed in (0, 1)
    ]
    assert len(set(draws)) == 4
    assert draws[0] == random_units(BASIS, range(20), 50, 30, of="one", seed=0)
    assert np.ptp([unit.layer for unit in draws[0]]) > 5


def test_each_layer_draws_for_itself() -> None:
    """Of two layers the same channels would come first if the layer were not in the key."""
    drawn = [[unit.channel for unit in random_units(BASIS, [layer], 200, seed=1)] for layer in range(12)]
    shared = [len(set(one[:40]) & set(two[:40])) for place, one in enumerate(drawn) for two in drawn[:place]]
    assert 6 < np.mean(shared) < 10
    assert max(shared) < 20
