"""What is predicted of each unit of a layer before any is ablated, and whether its ablations bear that out.

A prediction decides what is asked, never what is claimed. First order fails on a layer if one of two tests says so;
both look only at what the search measured anyway:

- **empty promises**: of the units that were predicted to reach τ and were tested alone, the share that is not
  dropped lies below 1/50 by its upper 95 % bound (Clopper–Pearson). So it takes 149 of which none is left; fewer
  false promises cost their tests and hide nothing.
- **order**: five or more τ-agonists are known, and their mean rank in the order of promise is not better than
  that of units drawn at random (Wilcoxon's rank sum, normal approximation, one-sided at 5 %).

A prediction that is right about the order but too low, or that promises too much of a few units, does not fail: the
search uses the order, and claims nothing that it has not measured. τ-agonists of one layer flip the same
examples, so these are rules of decision and no statement about the model.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float, Int

from mecharule_ops.confidence import upper_bound

KEPT_PROMISES = 1 / 50
"""Share of the units predicted to reach τ of which a prediction has to be right."""
AGONISTS = 5
"""Known τ-agonists from which their order is tested."""
LEVEL = 0.05
"""Of both tests."""
BETTER = 1.645
"""Standard deviations by which a mean rank has to be better than at random: 5 %, one-sided."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayerPrediction:
    """Predicted flips of one layer's units, aligned with the channels of its candidates."""

    associated: Float[np.ndarray, " channel"]
    """Share of D̃⁺ that each unit alone is predicted to flip, in [0, 1]."""
    unrelated: Float[np.ndarray, " channel"]
    """Share of D̃⁻, likewise."""
    scores: Float[np.ndarray, " channel"]
    """Larger is likelier to flip, among units of equal predicted strength; for example the mean excess of the
    drop over the lead."""

    flips: tuple[Bool[np.ndarray, "associated channel"], Bool[np.ndarray, "unrelated channel"]] | None = None
    """Which examples of D̃⁺ and of D̃⁻ each unit alone is predicted to flip; None where only the rates are known."""

    def together(self, units: Int[np.ndarray, " unit"]) -> Float[np.ndarray, "slice unit"]:
        """Share of each slice that the first unit, the first two, … all of `units` flip together, as predicted.

        An example counts once, however many of them flip it alone. Where only rates are known they are added up, as
        if no two units flipped the same example.
        """
        if self.flips is None:
            return np.cumsum([self.associated[units], self.unrelated[units]], axis=1)
        unions = (np.logical_or.accumulate(side[:, units], axis=1) for side in self.flips)
        return np.stack([union.sum(axis=0) / max(len(union), 1) for union in unions])

    @property
    def strength(self) -> Float[np.ndarray, " channel"]:
        """The larger of the two predicted rates."""
        return np.maximum(self.associated, self.unrelated)

    @property
    def order(self) -> Int[np.ndarray, " channel"]:
        """Places of the units, most promising first; ties keep the order of channels."""
        return ranked([self])


def ranked(predictions: Sequence[LayerPrediction]) -> Int[np.ndarray, " unit"]:
    """Places of the units of all layers one after the other, most promising first; ties go to earlier layers."""
    strength = np.concatenate([prediction.strength for prediction in predictions])
    return np.lexsort((-np.concatenate([prediction.scores for prediction in predictions]), -strength))


def order_over_layers(predictions: Sequence[LayerPrediction]) -> Int[np.ndarray, " unit"]:
    """For every unit of all layers, most promising first, the place of its layer."""
    layer = np.repeat(np.arange(len(predictions)), [len(each.scores) for each in predictions])
    return np.asarray(layer[ranked(predictions)])


@dataclass(slots=True, kw_only=True)
class PredictionRecord:
    """What one layer's ablations say about its predictions."""

    units: int
    """Units of the layer."""
    promised: int = 0
    """Units tested alone that were predicted to reach τ."""
    delivered: int = 0
    """Those of them that were not dropped."""
    ranks: list[int] = field(default_factory=list)
    """Places in the order of promise, from 0, of all τ-agonists that were met."""

    def failure(self) -> str | None:
        """Why first order fails on the layer, in words; None while it does not."""
        if upper_bound(self.delivered, self.promised, LEVEL) < KEPT_PROMISES:
            return (
                f"of {self.promised:,} units predicted to reach τ {self.delivered:,} could not be ruled out"
            )
        if self._order_is_random():
            mean = sum(self.ranks) / len(self.ranks) + 1
            return (
                f"the {len(self.ranks):,} τ-agonists found have mean rank {mean:,.0f} of {self.units:,} in what was "
                "predicted, no better than at random"
            )
        return None

    def _order_is_random(self) -> bool:
        known, units = len(self.ranks), self.units
        if known < AGONISTS or known == units:
            return False
        spread = math.sqrt((units + 1) * (units - known) / (12 * known))
        return sum(self.ranks) / known > (units - 1) / 2 - BETTER * spread
