"""How a layer is searched: the paper's algorithm 1, and the options beyond it.

What each option is for, measured on 20 planted layers a setting that were not used to choose the defaults:
N = 576 units, k = 7 τ-agonists, flips by an additive margin; "cancellation" adds 30 units that push the other
way; ρ is how well scores know the effects. Recall of τ-agonists; cost is example-forwards over exhaustive.

- `testing`: sequential tests cost about a third of fixed ones (.15 to .055 under cancellation, ρ = .3) and
  lost 1 agonist of 140 that fixed ones kept.
- `largest`: under cancellation a whole layer hides its agonists and recall is 0; from groups of 16 it is .69,
  .90 and .99 at ρ = 0, .3 and .8 (.44, .85, .99 from 32; .89, .94, .99 from 8). A quiet layer then costs 3 %
  of exhaustive (16: 2 %, 4: 7 %) instead of 0.2 %. On the bundled model, `mlp_out`, seeds 1 to 4 (seed 0 led to
  the choice): in 1→0 all find 12 of 12 τ-agonists at .15 (16), .16 (8) and .19 (4) of exhaustive; in 0→1 they
  find 7, 25 and 29 of 30 at .19, .24 and .27. So the pipeline takes 8, and 4 in 0→1.
- `order` by attribution saves cost when scores mean something (.060 to .0375 at ρ = .8), not at ρ = 0.
- `root_split` by sign keeps apart what cancels: without it recall falls from .90 to .66 at ρ = .3.
- `small`: a group of 4 that holds an agonist takes bisection 4 or 6 more queries, its units 4. Dense layers
  (38 τ-agonists of 128) cost .454 instead of .476 and recall is .86 instead of .85; elsewhere it hardly matters.
- `overhead` bounds the cost of dense layers and never binds in sparse ones.

Two more were measured while choosing (6 layers a setting) and are not offered. Direct tests of the units with
the strongest |attribution| first: level with a smaller `largest` at ρ = .8, behind it at equal cost at ρ = .3
(.72 against .88). A second random partition of the pruned units: behind it under cancellation (.74 against .91
at equal cost), level elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mecharule_ops.cha.partition import Order, RootSplit
from mecharule_ops.cha.sequential import SequentialPlan, node_test
from mecharule_ops.confidence import AlphaPolicy, Testing


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
    largest: int | None = 8
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
