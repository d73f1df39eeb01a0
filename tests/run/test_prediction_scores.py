"""What is said where nearly all answers change, or where another token than the runner-up wins."""

from __future__ import annotations

import numpy as np
import pytest

from mecharule_ops.findings.accounts import PredictionKind, PredictionScore
from mecharule_ops.mechanism.first_order import Effects
from mecharule_ops.mechanism.leads import Leads
from mecharule_ops.mechanism.measured import Measured
from mecharule_ops.run.accounting import _prediction_outcome, prediction_hypothesis
from mecharule_ops.run.prediction_scores import _drop_error
from mecharule_ops.types import Basis, Neuron, Regime

UNIT = Neuron(Basis.MLP_OUT, 0, 0)


def test_an_outcome_without_an_interval_keeps_its_true_counts() -> None:
    """336 of 336 flip: there is no interval, so no value; "0 of them flips" is false."""
    score = PredictionScore(
        kind=PredictionKind.STEADY, predicted=336, held_out=None, records=336, happened=336
    )
    outcome = _prediction_outcome(score, prediction_hypothesis(UNIT, Regime.BASELINE_POSITIVE))
    assert (outcome.value, outcome.n, outcome.positives) == (None, 336, 336)


def test_the_drop_is_taken_over_the_token_that_wins() -> None:
    """The runner-up (5) stays where it is; token 6, 2 behind in the clean run, is 1 ahead under the ablation."""
    leads = Leads(
        lead=np.array([[[1.0, 2.0]]], np.float32), token=np.array([[[5, 6]]]), generated=np.array([[4]])
    )
    effect = np.array([[[[0.0], [2.5]]]], np.float32)
    measured = Measured(
        left=np.array([[[-1.0]]], np.float32),
        best=np.array([[[6]]]),
        fall=np.array([[[3.0]]], np.float32),
    )
    found = _drop_error(Effects(units=(UNIT,), leads=leads, effect=effect), np.array([0]), measured, 0)
    assert found is not None
    assert (found.measured, found.first_order, found.error) == pytest.approx((3.0, 2.5, 0.5))
