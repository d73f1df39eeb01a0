"""How well a vocabulary separates success from failure on train records that chose nothing (issue: stop rule).

The train split is cut once more, by seed: scores and filters see the first part, and a ridge-penalised logistic
model fitted there is ranked on the second. The test split is no argument of anything here.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

HELD_BACK = 0.3
"""Share of the train records that the power is measured on."""


def held_back(labels: Bool[np.ndarray, " record"], seed: int) -> Bool[np.ndarray, " record"]:
    """True for the records that the power is measured on: the same share of each outcome."""
    generator = np.random.default_rng([seed, len(labels)])
    mask = np.zeros(len(labels), dtype=bool)
    for wanted in (True, False):
        positions = np.flatnonzero(labels == wanted)
        mask[generator.permutation(positions)[: int(HELD_BACK * len(positions))]] = True
    return mask


def discriminative_power(
    matrix: Bool[np.ndarray, "record predicate"],
    labels: Bool[np.ndarray, " record"],
    back: Bool[np.ndarray, " record"],
) -> float:
    """AUC on the records held back, in [0, 1]; 0.5 without predicates or with one outcome only."""
    if len(set(labels[back].tolist())) < 2:
        return 0.5
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(labels[back], expected(matrix, labels, back)[back]))


def expected(
    matrix: Bool[np.ndarray, "record predicate"],
    labels: Bool[np.ndarray, " record"],
    back: Bool[np.ndarray, " record"],
) -> Float[np.ndarray, " record"]:
    """How much the vocabulary speaks for success of every record, fitted on those not held back; 0 without a fit."""
    if not matrix.shape[1] or len(set(labels[~back].tolist())) < 2:
        return np.zeros(len(labels))
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression(C=1.0, max_iter=200).fit(matrix[~back], labels[~back])
    return np.asarray(fitted.decision_function(matrix), dtype=np.float64)
