"""Where attribution and prediction rank a unit, worked out by hand, and what settled it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bundled_run import opened

from mecharule_ops.cha.prediction import LayerPrediction
from mecharule_ops.errors import StoreError
from mecharule_ops.questions.fates import attribution_rank, promise, settled_by
from mecharule_ops.types import Basis, LayerCandidates, Neuron, Regime

PRUNED = Neuron(Basis.MLP_OUT, 0, 0)


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


def test_a_damaged_outcome_is_refused_and_not_told_as_a_search_without_an_end(copied_run: Path) -> None:
    """Only outcomes that a run lacks end the look; by a changed byte in every block nothing is said of the search."""
    with opened(copied_run, read_only=True) as run:
        assert settled_by(run, PRUNED, Regime.BASELINE_POSITIVE)
    with closing(sqlite3.connect(copied_run)) as file, file:
        file.execute("UPDATE outcome SET margins = substr(margins, 1, length(margins) - 1) || x'ff'")
    with opened(copied_run, read_only=True) as run, pytest.raises(StoreError, match="damaged"):
        settled_by(run, PRUNED, Regime.BASELINE_POSITIVE)
