"""What a search has found so far: its queried nodes, its cost, and what it kept (paper, §4.4)."""

from dataclasses import dataclass

from mecharule_ops.nodes import Node, Verdict
from mecharule_ops.types import Agonist, Basis, FlipEstimate, Neuron, Regime, SearchStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class ChaTree:
    """A snapshot of one layer's search; a forest when it starts from several groups."""

    layer: int
    regime: Regime
    tau: float
    epsilon: float
    units: int
    """N: candidates of the layer."""
    nodes: tuple[Node, ...]
    """Decided nodes by id; a parent comes before its children. Roots have no parent."""
    queries: int
    """Groups evaluated, decided or not; each counts once, whatever its number of looks."""
    example_forwards: int
    """Examples evaluated over all groups and both slices."""
    status: SearchStatus | None
    """None while the search goes on."""

    @property
    def kept(self) -> tuple[Node, ...]:
        """The localized singletons, by id."""
        return tuple(node for node in self.nodes if node.verdict is Verdict.KEPT)

    def agonists(self, basis: Basis) -> tuple[Agonist, ...]:
        """The localized singletons as agonists of a basis, by channel."""
        found = [
            self.agonist(Neuron(basis, self.layer, node.channels[0]), node.estimate, node.ucb)
            for node in self.kept
        ]
        return tuple(sorted(found, key=lambda agonist: agonist.neuron))

    def agonist(self, neuron: Neuron, estimate: FlipEstimate, ucb: float) -> Agonist:
        """A unit of the layer that is localized, by the thresholds of this search."""
        return Agonist(
            neuron=neuron, regime=self.regime, estimate=estimate, ucb=ucb, tau=self.tau, epsilon=self.epsilon
        )
