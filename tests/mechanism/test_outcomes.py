"""What predictions are worth, what a predicted change makes of the answer."""

from __future__ import annotations

import numpy as np
import pytest
from toy_behaviour import toy

from mecharule_ops.mechanism.outcomes import (
    ScoreStatus,
    best_threshold,
    bootstrap_mcc,
    predicted_labels,
    score,
)
from mecharule_ops.rules.matthews import mcc


def test_a_predicted_change_is_labelled_by_the_task() -> None:
    """Where the completion up to the change decides, that is the label; else the rest is kept."""
    bench = toy("llama", 40)
    task, subject = bench.task, bench.subject
    long = [record for record in bench.records if len(record.tokens) >= 4]
    position = np.array([index % 4 - 1 for index in range(len(long))])
    token = np.where(position >= 0, 20, -1)
    found = predicted_labels(subject, task, long, position, token)
    for row, record in enumerate(long):
        at = int(position[row])
        spliced = list(record.tokens)
        if at >= 0:
            spliced[at] = 20
        assert found[row] == task.label(record.example, subject.decode(spliced))
    assert (found != [record.label for record in long]).any()


@pytest.mark.parametrize(
    ("predicted", "flips", "status"),
    [
        ([1, 0, 1, 0], [1, 0, 0, 0], ScoreStatus.SCORED),
        ([1, 0, 1, 0], [0, 0, 0, 0], ScoreStatus.NO_FLIP),
        ([1, 0, 1, 0], [1, 1, 1, 1], ScoreStatus.ALL_FLIP),
        ([1, 1, 1, 1], [1, 0, 0, 0], ScoreStatus.CONSTANT),
        ([], [], ScoreStatus.EMPTY),
    ],
)
def test_a_score_says_when_there_is_none(predicted: list, flips: list, status: ScoreStatus) -> None:
    """Constant flips have no MCC; a constant prediction has one of 0."""
    found = score(np.array(predicted, bool), np.array(flips, bool))
    assert found.status is status
    assert np.isnan(found.mcc) == (status not in (ScoreStatus.SCORED, ScoreStatus.CONSTANT))
    if status is ScoreStatus.SCORED:
        assert found.mcc == pytest.approx(1 / 3**0.5)
        assert (found.flips, found.predicted, found.hits, found.n) == (1, 2, 1, 4)


def test_the_bootstrap_interval_is_that_of_drawing_records() -> None:
    """Drawing cells equals drawing records; a perfect prediction leaves no spread."""
    generator = np.random.default_rng(0)
    flips = generator.random(300) < 0.3
    predicted = flips ^ (generator.random(300) < 0.1)
    drawn = [
        mcc(predicted[chosen], flips[chosen])
        for chosen in (generator.integers(300, size=300) for _ in range(2000))
    ]
    found = bootstrap_mcc(predicted, flips, np.random.default_rng(1))
    assert found == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])), abs=0.015)
    assert bootstrap_mcc(flips, flips, np.random.default_rng(1)) == (1.0, 1.0)
    assert np.isnan(bootstrap_mcc(flips, np.ones(300, bool), np.random.default_rng(1))).all()


def test_the_fitted_threshold_separates_what_can_be_separated() -> None:
    """It moves only when that is better than the law's own 0."""
    excess = np.array([-3.0, -1.0, -0.5, 2.0, -np.inf])
    assert best_threshold(excess, excess > 0) == 0.0
    assert -1.0 < best_threshold(excess, excess > -0.7) < -0.5
