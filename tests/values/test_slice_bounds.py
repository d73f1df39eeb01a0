"""What a bound on 64 examples says of all of D⁺: nothing on a k-center cover, what it promises on a random draw."""

from __future__ import annotations

import numpy as np
import pytest

from mecharule_ops.confidence import lower_bound, upper_bound
from mecharule_ops.slices import E1Condition, compact_slices
from mecharule_ops.types import Regime

ALPHA = 0.025


@pytest.mark.parametrize("far_flips", [True, False])
def test_a_random_draw_keeps_its_bound_and_a_cover_breaks_it(far_flips: bool) -> None:
    """Two one-sided bounds at 97.5 % on a slice of 64 hold together for the rate on all 500 of D⁺ in at least 95 % of
    the draws; .91 allows 150 draws their noise.

    A tenth of the records lie scattered far out, where a k-center cover goes first; a unit flips there, or everywhere
    else, so the rate of a cover is not that of D⁺, above or below it.
    """
    kept = dict.fromkeys((E1Condition.RULE_RANDOM, E1Condition.RULE_SPECTRAL), 0)
    on_plus = np.arange(600) < 500
    for seed in range(150):
        generator = np.random.default_rng(seed)
        far = generator.random(600) < 0.1
        points = generator.normal(size=(600, 6)) * np.where(far, 6, 0.2)[:, None]
        flips = generator.random(600) < np.where(far == far_flips, 0.9, 0.02)
        given = np.ones(600, bool), on_plus, points, np.full(600, 5), np.arange(600)
        same = {"identifiers": range(600), "regime": Regime.BASELINE_POSITIVE, "max_pairs": 1, "seed": seed}
        for condition in kept if seed < 40 else (E1Condition.RULE_RANDOM,):
            slices = compact_slices(*given, condition=condition, **same)
            count, truth = int(flips[slices.associated].sum()), flips[on_plus].mean()
            kept[condition] += lower_bound(count, 64, ALPHA) <= truth <= upper_bound(count, 64, ALPHA)
    assert kept[E1Condition.RULE_RANDOM] >= 0.91 * 150
    assert kept[E1Condition.RULE_SPECTRAL] <= 0.1 * 40
