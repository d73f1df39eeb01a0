"""How a layer is searched: the paper's algorithm 1, and the options beyond it.

What each option is for, measured on planted additive margins where other units hide an agonist by acting
against it (N = 576, k = 8; recall of τ-agonists, cost against exhaustive singletons in example-forwards):

- `testing`: sequential tests cost a third of fixed ones at the same recall, on every layer.
- `order` by attribution halves that when scores mean something, and costs nothing when they do not.
- `largest`: a whole layer can hide its agonists, a group of 16 rarely does. Under strong cancellation recall
  rises from 0 to .90 (.82 at 32, .94 at 8); a quiet layer then costs 2 % of exhaustive instead of 0.1 %.
- `root_split` by sign keeps units apart that cancel each other; without it recall falls from .90 to .66.
- `small`: in a positive group of 4, bisection never asks fewer groups than asking the units. Pays in dense
  layers (−.04 of exhaustive, recall + .01), free elsewhere.
- `overhead` matters in dense layers only.

Direct tests of the units with the strongest attribution, and testing pruned units again in a second random
partition, both reached less recall at equal cost than a smaller `largest`, so neither is offered.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mecharule_ops.confidence import AlphaPolicy, Testing
from mecharule_ops.partition import Order, RootSplit
from mecharule_ops.sequential import SequentialPlan, node_test


@dataclass(frozen=True, slots=True, kw_only=True)
class ChaSettings:
    """Settings of one layer's search. The defaults go beyond the paper; `algorithm_1` does not."""

    tau: float = 0.2
    """Strength threshold τ."""
    epsilon: float = 0.2
    """Selectivity threshold ε, for reporting only."""
    alpha: AlphaPolicy = field(default_factory=AlphaPolicy)
    """The error allowed to each node."""
    n_associated: int = 64
    """Examples of D̃⁺; in shuffled order, unless the testing is fixed."""
    n_unrelated: int = 64
    """Examples of D̃⁻, likewise."""
    testing: Testing = Testing.SEQUENTIAL
    """When counts are looked at: algorithm 1 waits for the whole slices."""
    root_split: RootSplit = RootSplit.SIGN
    order: Order = Order.ATTRIBUTION
    """How units are ordered before groups are cut; neighbours share small groups."""
    largest: int | None = 16
    """Units of the largest group asked. None starts from the whole layer; 1 is brute force."""
    small: int = 4
    """A group of at most this many units opens into units; 2 is bisection to the end."""
    overhead: float | None = 0.05
    """Cost above exhaustive singletons that a search may have, as a share of theirs; None for no limit."""
    seed: int = 0
    """With the layer, seeds the random order."""

    @classmethod
    def algorithm_1(
        cls,
        *,
        tau: float = 0.2,
        epsilon: float = 0.2,
        alpha: float = 0.05,
        n_associated: int = 64,
        n_unrelated: int = 64,
    ) -> ChaSettings:
        """The paper's search: fixed-n tests at a per-node α, bisection in channel order, no limit on cost."""
        return cls(
            tau=tau,
            epsilon=epsilon,
            alpha=AlphaPolicy(alpha=alpha),
            n_associated=n_associated,
            n_unrelated=n_unrelated,
            testing=Testing.FIXED,
            order=Order.CHANNEL,
            largest=None,
            small=2,
            overhead=None,
        )

    @property
    def full_test(self) -> int:
        """n₊ + n₋: example-forwards of one exact singleton test."""
        return self.n_associated + self.n_unrelated

    def asked(self, begin: int, end: int) -> tuple[int, int]:
        """How many examples of D̃⁺ and of D̃⁻ a question about this range of each slice takes."""
        associated, unrelated = self.n_associated, self.n_unrelated
        return (
            min(end, associated) - min(begin, associated),
            min(end, unrelated) - min(begin, unrelated),
        )

    def test(self, size: int, units: int) -> SequentialPlan:
        """The test of a group of `size` among N = `units`."""
        alpha = self.alpha.node_alpha(size, units)
        return node_test(self.testing, self.n_associated, self.n_unrelated, alpha, self.tau)
