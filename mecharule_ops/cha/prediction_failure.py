"""Whether a layer's ablations bear out what was predicted of its units, and so whether predictions may guide on.

First order fails on a layer if one of two tests says so; both look only at what the search measured anyway:

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
from dataclasses import dataclass, field

from mecharule_ops.confidence import upper_bound

KEPT_PROMISES = 1 / 50
"""Share of the units predicted to reach τ of which a prediction has to be right."""
AGONISTS = 5
"""Known τ-agonists from which their order is tested."""
LEVEL = 0.05
"""Of both tests."""
BETTER = 1.645
"""Standard deviations by which a mean rank has to be better than at random: 5 %, one-sided."""


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
