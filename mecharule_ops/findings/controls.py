"""One word on whether the controls leave a claim about a unit standing (paper, E1 and §7).

The claim is "this unit alone has strength ≥ τ, and its flips follow the split". All bounds are one-sided
Clopper–Pearson at α/2 a slice. The first line that applies decides:

1. CONTROL_FLIPS  random units of the same layer reach τ themselves (pooled point estimate): the layer is
                  fragile, so this unit is nothing special.
2. UNDERPOWERED   no random control was run; or the unit's lower bound is below τ; or the random units' upper
                  bound reaches the unit's lower bound, so that the two are not told apart.
3. NOT_SELECTIVE  |δ̂₊ − δ̂₋| < ε; or the split of a fake rule gives at least the same |δ̂₊ − δ̂₋|.
4. UNDERPOWERED   the two slices differ by ε or more, but Fisher's exact test (two-sided) gives p > α.
5. SUPPORTED      none of the above.

A unit on the D⁻ side can be supported: its sign is reported beside the word. The second baseline does not
decide the word, because the paper defines an agonist relative to one replacement; `depends_on_baseline` says
when the effect does not survive the change.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from scipy.special import gammaln

from mecharule_ops.findings.records import AgonistControls
from mecharule_ops.types import FlipEstimate


class ControlVerdict(StrEnum):
    """The word a person reads beside a unit."""

    SUPPORTED = "supported"
    NOT_SELECTIVE = "not selective"
    CONTROL_FLIPS = "control also flips"
    UNDERPOWERED = "underpowered"


def verdict(
    estimate: FlipEstimate, controls: AgonistControls, tau: float, epsilon: float, alpha: float
) -> ControlVerdict:
    """The word for one unit by the five lines of the module docstring. Rates and bounds in [0, 1]."""
    random = controls.random
    if random is not None and random.strength >= tau:
        return ControlVerdict.CONTROL_FLIPS
    lower = estimate.lcb(alpha)
    if random is None or lower < tau or random.ucb(alpha / 2) >= lower:
        return ControlVerdict.UNDERPOWERED
    if not _selective(estimate, controls.fake_split, epsilon):
        return ControlVerdict.NOT_SELECTIVE
    if fisher_exact(estimate) > alpha:
        return ControlVerdict.UNDERPOWERED
    return ControlVerdict.SUPPORTED


def depends_on_baseline(controls: AgonistControls, tau: float) -> bool:
    """True when a second replacement baseline was run and its point estimate stays below τ."""
    return controls.second is not None and controls.second.strength < tau


def fisher_exact(estimate: FlipEstimate) -> float:
    """Two-sided p of Fisher's exact test that both slices flip at one rate; 1.0 when a slice is empty.

    Sums the hypergeometric probabilities of every table at most as likely as the one seen.
    """
    plus, minus = estimate.associated, estimate.unrelated
    flips = plus.flips + minus.flips
    seen = np.arange(max(0, flips - minus.n), min(flips, plus.n) + 1)
    log_p = _log_choose(plus.n, seen) + _log_choose(minus.n, flips - seen)
    log_p = log_p - _log_choose(plus.n + minus.n, np.array([flips]))
    observed = log_p[plus.flips - seen[0]]
    return float(min(1.0, np.exp(log_p[log_p <= observed + 1e-7]).sum()))


def _selective(estimate: FlipEstimate, fake: FlipEstimate | None, epsilon: float) -> bool:
    """|Sel| ≥ ε and above what a fake rule's split gives; an empty slice (NaN) is never selective."""
    difference = abs(estimate.signed_selectivity)
    if not difference >= epsilon:
        return False
    return fake is None or not abs(fake.signed_selectivity) >= difference


def _log_choose(n: int, k: np.ndarray) -> np.ndarray:
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
