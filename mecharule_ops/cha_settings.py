"""How a layer is searched: the paper's algorithm 1, and the options beyond it."""

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
    direct: int = 0
    """Units with the largest |attribution| that are asked singly before any group."""
    largest: int | None = None
    """Units of the largest group asked; None starts from the whole layer."""
    small: int = 4
    """A group of at most this many units opens into units; 2 is bisection to the end."""
    retest: int = 0
    """Group size of a second, random partition of the pruned units; 0 for none."""
    overhead: float | None = 0.05
    """Cost above exhaustive singletons that a search may have, as a share of theirs; None for no limit."""
    seed: int = 0
    """With the layer, seeds the random order and the second partition."""

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
            small=2,
            overhead=None,
        )

    @property
    def full_test(self) -> int:
        """n₊ + n₋: example-forwards of one exact singleton test."""
        return self.n_associated + self.n_unrelated

    def asked(self, begin: int, end: int) -> tuple[int, int]:
        """How many examples of D̃⁺ and of D̃⁻ a question about this range of each slice takes."""
        sizes = self.n_associated, self.n_unrelated
        associated, unrelated = (min(end, size) - min(begin, size) for size in sizes)
        return associated, unrelated

    def test(self, size: int, units: int) -> SequentialPlan:
        """The test of a group of `size` among N = `units`."""
        alpha = self.alpha.node_alpha(size, units)
        return node_test(self.testing, self.n_associated, self.n_unrelated, alpha, self.tau)
