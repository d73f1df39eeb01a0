"""A solver: trees that say what the right answer is, from columns alone; no unit of the model has a part in it.

It is learned from answers known to be right. Of few distinct answers each is a class; else each character is, counted
from the last, so that digits of one place stand together. How sure it is of an answer is the product over characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xgboost as xgb
from jaxtyping import Bool, Float, Float32

from mecharule_ops.repair.choosing import gained

FEW, LONGEST = 12, 12
"""Distinct answers that are classes as they are; characters of a longer answer are not learned."""
SURE = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1.0)
"""How sure it must be to answer; of 1.0 it never is."""
_PARAMETERS = {
    "objective": "multi:softprob",
    "max_depth": 6,
    "eta": 0.3,
    "subsample": 0.8,
    "colsample_bynode": 0.3,
    "max_bin": 64,
    "tree_method": "hist",
    "verbosity": 0,
}
_ROUNDS = 60


@dataclass(frozen=True, slots=True, eq=False)
class Solver:
    """Trees of each place of an answer, the last place first."""

    places: tuple[tuple[xgb.Booster | None, tuple[str, ...]], ...]
    """With what can stand there, empty before the answer's first character; no trees where that is one text."""

    def answers(
        self, features: Float32[np.ndarray, "record column"]
    ) -> tuple[list[str], Float[np.ndarray, " record"]]:
        """(the answer to each record, how sure it is)."""
        data = xgb.DMatrix(features, nthread=1)
        said, sure = np.full(len(features), "", object), np.ones(len(features))
        for booster, texts in self.places:
            likely = np.ones((len(features), 1)) if booster is None else booster.predict(data)
            said = np.array(texts, object)[likely.argmax(1)] + said
            sure = sure * likely.max(1)
        return said.tolist(), sure


def learned(
    features: Float32[np.ndarray, "record column"], answers: Sequence[str], seed: int
) -> Solver | None:
    """Trees of what the answers are; None of free texts, many and long.

    Cost: no model call.
    """
    few = len(set(answers)) <= FEW
    longest = 1 if few else max(map(len, answers))
    if longest > LONGEST:
        return None
    places = []
    for place in range(longest):
        here = [one if few else one[::-1][place : place + 1] for one in answers]
        texts, labels = np.unique(here, return_inverse=True)
        settings = {**_PARAMETERS, "num_class": len(texts), "seed": seed, "nthread": 1}
        data = xgb.DMatrix(features, label=labels, nthread=1)
        booster = xgb.train(settings, data, _ROUNDS) if len(texts) > 1 else None
        places.append((booster, tuple(texts.tolist())))
    return Solver(tuple(places))


def sure_enough(
    sure: Float[np.ndarray, " record"],
    right: Bool[np.ndarray, " record"],
    before: Bool[np.ndarray, " record"],
    harm: float,
) -> float:
    """Of `SURE` the least with which its answers fix most for what they break; the highest on a tie."""

    def gain(least: float) -> float:
        return gained(np.where(sure >= least, right, before), before, harm)

    return max(SURE, key=lambda least: (gain(least), least))
