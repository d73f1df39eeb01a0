"""Bounds on a flip rate from counts: Clopper and Pearson (1934), one-sided, exact."""

from __future__ import annotations

from scipy.special import betaincinv


def upper_bound(flips: int, n: int, alpha: float) -> float:
    """One-sided upper bound at level 1 − α for a binomial rate; 1.0 when n is 0 or every example flipped."""
    return 1.0 if flips == n else float(betaincinv(flips + 1, n - flips, 1 - alpha))


def lower_bound(flips: int, n: int, alpha: float) -> float:
    """One-sided lower bound at level 1 − α for a binomial rate; 0.0 when nothing flipped."""
    return 0.0 if flips == 0 else float(betaincinv(flips, n - flips + 1, alpha))
