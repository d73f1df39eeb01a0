"""What is kept of free-form trees: how they are grown, and what they go by. No model of them is loaded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class Trees:
    """What cross-validation inside train chose for the trees."""

    depth: int
    rounds: int
    threshold: float
    """Least probability that counts as a prediction of the target."""
    validated: float
    """MCC of the pooled out-of-fold predictions at that threshold; it was chosen by it."""


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
