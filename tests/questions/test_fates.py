"""Where attribution and prediction rank a unit: worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mecharule_ops.cha.prediction import LayerPrediction
from mecharule_ops.questions.fates import attribution_rank, promise
from mecharule_ops.types import Basis, LayerCandidates, Neuron


def test_rank_counts_larger_scores_of_the_whole_basis() -> None:
    """By hand: |−3| is the largest of six, the two of size 2 share rank 2."""
    scores = np.array([[1.0, -2.0, 0.0], [2.0, -3.0, 0.5]])

    def rank(layer: int, channel: int) -> int:
        return attribution_rank(Neuron(Basis.MLP_OUT, layer, channel), scores).rank

    assert [rank(1, 1), rank(0, 1), rank(1, 0), rank(0, 0), rank(0, 2)] == [1, 2, 2, 4, 6]
    assert attribution_rank(Neuron(Basis.MLP_OUT, 1, 1), scores).score == -3.0


def test_promise_counts_the_units_of_all_layers() -> None:
    """By hand: .4 is first of five, then .2 with the larger score, .2, and both at 0 share the fourth rank."""
    layers = [
        LayerCandidates(layer=number, channels=channels, scores=np.zeros(len(channels)))
        for number, channels in ((1, np.array([3, 5])), (4, np.array([0, 2, 9])))
    ]
    told = [([0.2, 0.0], [1.0, 0.0]), ([0.1, 0.4, 0.0], [2.0, 0.0, 0.0])]
    predictions = [
        LayerPrediction(associated=np.array(rates), unrelated=np.array(rates), scores=np.array(scores))
        for rates, scores in told
    ]
    predictions[1] = replace(predictions[1], unrelated=np.array([0.2, 0.0, 0.0]))
    ranks = [promise(c, n, layers, predictions).rank for n, c in ((4, 2), (4, 0), (1, 3), (1, 5), (4, 9))]
    assert ranks == [1, 2, 3, 4, 4]
    own = promise(0, 4, layers, predictions)
    assert (own.units, own.associated, own.unrelated) == (5, 0.1, 0.2)
