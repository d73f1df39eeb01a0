"""What a bound on 64 examples says of all of D⁺: nothing on a k-center cover, what it promises on a random draw."""

from __future__ import annotations

import numpy as np
import pytest

from mecharule_ops.confidence import lower_bound, upper_bound
from mecharule_ops.slices import E1Condition, compact_slices
from mecharule_ops.types import Regime

ALPHA, DRAWS = 0.025, 150


def held(condition: E1Condition, *, far_flips: bool) -> float:
    """Share of simulated models on which both 97.5 % bounds of a slice of 64 hold for the rate on all 500 of D⁺.

    A tenth of the records lie scattered far out, where a cover goes first; a unit flips there, or everywhere else.
    """
    kept = 0
    for seed in range(DRAWS):
        generator = np.random.default_rng(seed)
        far = generator.random(600) < 0.1
        points = generator.normal(size=(600, 6)) * np.where(far, 6, 0.2)[:, None]
        flips = generator.random(600) < np.where(far == far_flips, 0.9, 0.02)
        on_plus = np.arange(600) < 500
        slices = compact_slices(
            np.ones(600, bool),
            on_plus,
            points,
            np.full(600, 5),
            np.arange(600),
            identifiers=range(600),
            regime=Regime.BASELINE_POSITIVE,
            condition=condition,
            max_pairs=1,
            seed=seed,
        )
        count, truth = int(flips[slices.associated].sum()), flips[on_plus].mean()
        kept += lower_bound(count, 64, ALPHA) <= truth <= upper_bound(count, 64, ALPHA)
    return kept / DRAWS


@pytest.mark.parametrize("far_flips", [True, False])
def test_a_random_draw_keeps_its_bound(far_flips: bool) -> None:
    """Two one-sided bounds at 97.5 % hold together in at least 95 % of the draws; .91 allows 150 draws their noise."""
    assert held(E1Condition.RULE_RANDOM, far_flips=far_flips) >= 0.91


@pytest.mark.parametrize("far_flips", [True, False])
def test_a_cover_breaks_it(far_flips: bool) -> None:
    """A k-center cover prefers what lies far out, so its rate is not that of D⁺, above or below it."""
    assert held(E1Condition.RULE_SPECTRAL, far_flips=far_flips) <= 0.1
