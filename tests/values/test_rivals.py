"""Claims of a unit: when two rates and a threshold support, refute or leave open."""

from __future__ import annotations

import numpy as np
import pytest

from mecharule_ops.rules.interval import difference


def test_the_whole_interval_at_the_threshold_and_corrected_p_support_and_the_interval_refutes() -> None:
    """By hand: 30 of 40 against 10 of 60."""
    holds = np.arange(100) < 40
    flips = np.concatenate([np.arange(40) < 30, np.arange(60) < 10])
    told = difference(holds, flips, 0.05)
    assert told.value == pytest.approx(30 / 40 - 10 / 60)
    assert told.low < told.value < told.high
    assert told.state(0.3, 0.01, 0.05) == "supported"
    assert told.low < 0.5 < told.value
    assert told.state(0.5, 0.01, 0.05) == "undecided", "a point estimate at the threshold is not enough"
    assert told.state(0.3, 0.2, 0.05) == "undecided"
    assert told.state(0.9, 0.01, 0.05) == "refuted"
