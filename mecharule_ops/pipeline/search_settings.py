"""How the layers of a run are searched, from its config and the sizes of one regime's slices."""

from __future__ import annotations

from dataclasses import replace

from mecharule_ops.cha.partition import Order
from mecharule_ops.cha.settings import ChaSettings
from mecharule_ops.confidence import AlphaPolicy
from mecharule_ops.config import RunConfig
from mecharule_ops.types import Regime

LARGEST = {Regime.BASELINE_POSITIVE: 8, Regime.BASELINE_NEGATIVE: 4}
"""Units of the largest group asked where the config names none: units that repair an answer hide one another more."""
ORDER = {Regime.BASELINE_POSITIVE: Order.ATTRIBUTION, Regime.BASELINE_NEGATIVE: Order.CHANNEL}
"""How units are grouped: attribution puts those that may repair an answer side by side, where they hide one another."""


def search_settings(config: RunConfig, regime: Regime, n_associated: int, n_unrelated: int) -> ChaSettings:
    """The settings of every layer's search; with `parity`, Algorithm 1 as printed."""
    if config.parity:
        settings = ChaSettings.algorithm_1()
    else:
        largest = config.largest or LARGEST[regime]
        settings = ChaSettings(testing=config.testing, largest=largest, order=ORDER[regime])
    return replace(
        settings,
        tau=config.tau,
        epsilon=config.epsilon,
        alpha=AlphaPolicy(alpha=config.alpha, spending=config.spending, halved=config.parity),
        n_associated=n_associated,
        n_unrelated=n_unrelated,
        seed=config.seed,
    )
