"""How well the columns of a family can predict at all: boosted trees of any form, chosen inside train, scored once.

Depth, rounds and the threshold on the probability come from cross-validation on the train records: the threshold
maximises the MCC of the pooled out-of-fold predictions (nested choice; Cawley and Talbot 2010). A yardstick, no upper
bound: another learner may do better, and a short rule of the same columns sometimes does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import xgboost as xgb
from jaxtyping import Bool, Float, Float32, Int

from mecharule_ops.errors import UsageError
from mecharule_ops.rules.interval import MccInterval, mcc_interval
from mecharule_ops.rules.matthews import MARGIN, mcc_of_counts
from mecharule_ops.rules.short_rules import folds_of
from mecharule_ops.rules.trees import Trees


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeSettings:
    """What cross-validation may choose from. Raises `UsageError` when a value is out of range."""

    depths: tuple[int, ...] = (2, 5)
    rounds: tuple[int, ...] = (30, 60, 100)
    """Ascending."""
    folds: int = 4
    learning_rate: float = 0.1
    column_share: float = 0.5
    """Share of the columns that each split may choose from."""
    row_share: float = 0.8
    """Share of the records that each tree is grown on."""
    threads: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        shares = (self.learning_rate, self.column_share, self.row_share)
        fine = (
            self.depths
            and self.rounds
            and self.folds > 1
            and self.threads > 0
            and all(0 < s <= 1 for s in shares)
        )
        if not fine or min((*self.depths, *self.rounds)) < 1 or list(self.rounds) != sorted(self.rounds):
            raise UsageError(f"expected depths, ascending rounds, folds ≥ 2 and shares in (0, 1], got {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredTrees:
    """What the trees reached, and what was chosen for them."""

    held_out: MccInterval | None
    """None where there are too few held-out records for an interval."""
    trees: Trees


def free_form_trees(
    features: Float32[np.ndarray, "record column"],
    target: Bool[np.ndarray, " record"],
    train: Int[np.ndarray, " train"],
    test: Int[np.ndarray, " test"],
    generator: np.random.Generator,
    settings: TreeSettings | None = None,
) -> ScoredTrees:
    """Trees fitted and chosen on train, scored once on test; NaN is a missing value. Needs both sides in train.

    Cost: no model calls.
    """
    settings = settings or TreeSettings()
    known, wanted = features[train], target[train]
    folds = folds_of(wanted, settings.folds, generator)
    candidates = []
    for (depth, rounds), guessed in _out_of_fold(known, wanted, folds, settings):
        threshold, value = best_threshold(guessed, wanted)
        candidates.append((value, depth, rounds, threshold))
    best = max(value for value, *_ in candidates)
    validated, depth, rounds, threshold = next(each for each in candidates if each[0] > best - MARGIN)
    trees = Trees(depth=depth, rounds=rounds, threshold=threshold, validated=validated)
    fires = grown(known, wanted, trees, settings).predict(_data(features[test], settings)) >= threshold
    return ScoredTrees(held_out=mcc_interval(fires, target[test]), trees=trees)


def grown(
    features: Float32[np.ndarray, "train column"],
    target: Bool[np.ndarray, " train"],
    trees: Trees,
    settings: TreeSettings,
) -> xgb.Booster:
    """The trees themselves, the same ones whenever they are grown from the same records."""
    return xgb.train(_parameters(trees.depth, settings), _data(features, settings, target), trees.rounds)


def best_threshold(
    guessed: Float[np.ndarray, " record"], target: Bool[np.ndarray, " record"]
) -> tuple[float, float]:
    """(threshold, MCC): the guess from which on to predict the target for the largest MCC; ties: the highest."""
    order = np.argsort(-guessed, kind="stable")
    ranked = guessed[order]
    last = np.flatnonzero(np.append(ranked[1:] < ranked[:-1], True))
    hits = np.cumsum(target[order])[last]
    scores = mcc_of_counts(hits, last + 1, int(target.sum()), len(target))
    place = int(np.argmax(scores))
    return float(ranked[last[place]]), float(scores[place])


def _out_of_fold(
    features: Float32[np.ndarray, "record column"],
    target: Bool[np.ndarray, " record"],
    folds: Int[np.ndarray, " record"],
    settings: TreeSettings,
) -> Iterator[tuple[tuple[int, int], Float32[np.ndarray, " record"]]]:
    """((depth, rounds), guesses): each record's by trees that have not seen it; fewer rounds are a prefix of more."""
    guesses = {
        choice: np.zeros(len(target), np.float32) for choice in product(settings.depths, settings.rounds)
    }
    for fold in range(settings.folds):
        out = folds == fold
        data, rest = _data(features[~out], settings, target[~out]), _data(features[out], settings)
        for depth in settings.depths:
            booster = xgb.train(_parameters(depth, settings), data, settings.rounds[-1])
            for rounds in settings.rounds:
                guesses[depth, rounds][out] = booster.predict(rest, iteration_range=(0, rounds))
    yield from guesses.items()


def _data(
    features: Float32[np.ndarray, "record column"],
    settings: TreeSettings,
    target: Bool[np.ndarray, " record"] | None = None,
) -> xgb.DMatrix:
    label = None if target is None else target.astype(np.float32)
    return xgb.DMatrix(features, label=label, nthread=settings.threads)


def _parameters(depth: int, settings: TreeSettings) -> dict[str, object]:
    return {
        "objective": "binary:logistic",
        "max_depth": depth,
        "eta": settings.learning_rate,
        "colsample_bynode": settings.column_share,
        "subsample": settings.row_share,
        "tree_method": "hist",
        "nthread": settings.threads,
        "seed": settings.seed,
        "verbosity": 0,
    }
