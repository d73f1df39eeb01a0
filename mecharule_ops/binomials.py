"""Logarithms of binomial coefficients, from which exact probabilities of drawing without replacement are made."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy.special import gammaln


def log_choose(n: int, k: Int[np.ndarray, "*draw"]) -> Float[np.ndarray, "*draw"]:
    """Ln C(n, k) for every k of 0 to n."""
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))
