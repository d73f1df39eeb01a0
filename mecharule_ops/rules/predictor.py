"""The free-form predictor of one unit's flips, and what it goes by: exact Shapley values of its trees.

It explains the predictor, never the network: a predicate that pushes towards flipping is one that the trees read,
whatever the unit computes. Source: TreeSHAP, Lundberg et al. (2020), path-dependent, in log-odds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float32

SHOWN = 8
"""Predicates of a picture, those that push most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """What one predicate does to the predictor on some records."""

    predicate: str
    holds: tuple[bool, ...]
    """On each record."""
    towards: tuple[float, ...]
    """Its Shapley value there: log-odds towards flipping."""

    def mean(self, holds: bool) -> float | None:
        """Mean push where it holds, or where it does not; None where there is no such record."""
        some = [push for push, held in zip(self.towards, self.holds, strict=True) if held is holds]
        return float(np.mean(some)) if some else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushes:
    """What a predictor goes by, the strongest predicates first."""

    base: float
    """Log-odds of a flip before anything is known of a record."""
    predicates: tuple[Push, ...]


@dataclass(frozen=True, kw_only=True)
class FreeFormPredictor:
    """Boosted trees over predicates, as they are stored; XGBoost is loaded when they are asked."""

    predicates: tuple[str, ...]
    threshold: float
    """Least probability that counts as a predicted flip."""
    model: str
    """XGBoost's JSON."""

    @cached_property
    def booster(self) -> Any:
        """The trees. They are read from JSON, which runs nothing."""
        import xgboost as xgb

        return xgb.Booster(model_file=bytearray(self.model.encode("ascii")))

    def probabilities(self, matrix: Bool[np.ndarray, "record predicate"]) -> Float32[np.ndarray, " record"]:
        """How likely each record flips, says the predictor."""
        import xgboost as xgb

        return self.booster.predict(xgb.DMatrix(matrix.astype(np.float32), nthread=1))

    def shapley(
        self, matrix: Bool[np.ndarray, "record predicate"]
    ) -> tuple[float, Float[np.ndarray, "record predicate"]]:
        """(base, Shapley values in log-odds); a record's values and the base add up to its log-odds."""
        import shap

        explainer = shap.TreeExplainer(self.booster)
        values = np.asarray(explainer.shap_values(matrix.astype(np.float32)), float)
        return float(np.asarray(explainer.expected_value).reshape(-1)[0]), values

    def pushes(self, matrix: Bool[np.ndarray, "record predicate"], shown: int = SHOWN) -> Pushes:
        """The `shown` predicates with the largest mean push on the records; those that never push are left out."""
        if not len(matrix):
            return Pushes(base=0.0, predicates=())
        base, values = self.shapley(matrix)
        sizes = np.abs(values).mean(0)
        order = [place for place in np.argsort(-sizes, kind="stable")[:shown].tolist() if sizes[place] > 0]
        return Pushes(
            base=round(base, _DIGITS),
            predicates=tuple(
                Push(
                    predicate=self.predicates[place],
                    holds=tuple(matrix[:, place].tolist()),
                    towards=tuple(round(value, _DIGITS) for value in values[:, place].tolist()),
                )
                for place in order
            ),
        )


_DIGITS = 3
