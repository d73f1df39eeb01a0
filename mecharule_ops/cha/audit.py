"""How many τ-agonists a search missed at most, from tests of units drawn at random.

The population are the units whose own strength on the full slices is not known, because a group that held
them was pruned. They are drawn at random within strata, without replacement, and tested alone, until it is certain that
they do not reach τ (with `slip`: all but certain), else on all examples; like the search, the audit asks and is told.
It looks at its counts once, when all are tested.

What is bounded is the number of τ-agonists by point estimate on these very slices, so no estimation error of
a single unit enters, and nothing is assumed about monotonicity, about why a unit was missed or about what was
predicted of it: predictions only name the strata.

A τ-agonist that is met refutes the pruning of its group, whose other units are then asked too. The bound is that of the
draws; what is found besides is no longer missed.

With `slip` a drawn unit is not asked for all examples: looks at a part of each slice rule it out, with the small
chance of error that the bound accounts for (`exclusion`). So the same money draws two to three times as many
units. This needs examples in an order drawn after the search and independently of it, since the search decided by
the first ones.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from mecharule_ops import nodes, thresholds
from mecharule_ops.cha.audit_bound import most_agonists, sample_within
from mecharule_ops.cha.exclusion import ExclusionPlan, exclusion_plan
from mecharule_ops.cha.tree import ChaTree
from mecharule_ops.types import Basis, FlipEstimate, GroupAnswer, GroupQuery, LayerCandidates, Neuron


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """How many units an audit draws, and how each is tested."""

    n_associated: int
    n_unrelated: int
    confidence: float = 0.95
    tau: float = thresholds.TAU
    budget: int = 0
    """Units that the audit may draw."""
    slip: float = 0.0
    """Chance of overlooking a drawn τ-agonist, for tests that end early; 0 for exact tests of all examples."""

    @property
    def plans(self) -> tuple[ExclusionPlan, ExclusionPlan]:
        """The looks at D̃⁺ and at D̃⁻."""
        associated, unrelated = (
            exclusion_plan(n, self.tau, self.slip) for n in (self.n_associated, self.n_unrelated)
        )
        return associated, unrelated

    @property
    def quiet_test(self) -> int:
        """Example-forwards of a drawn unit that flips nothing."""
        return sum(plan.sizes[0] for plan in self.plans)

    def draws_for(self, tests: int) -> int:
        """Units that can be drawn for the cost of so many exact tests; a fifth is left for those that flip a little."""
        if not self.slip:
            return tests
        return max(tests, int(0.8 * tests * (self.n_associated + self.n_unrelated) / self.quiet_test))


@dataclass(frozen=True, slots=True, kw_only=True)
class StratumResult:
    """What was drawn from one stratum."""

    name: str
    units: int
    tested: int
    found: int
    """τ-agonists among the tested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """What an audit may state."""

    strata: tuple[StratumResult, ...]
    drawn: frozenset[Neuron]
    found: Mapping[Neuron, FlipEstimate]
    """The τ-agonists that the search had missed and the audit met; no longer missed."""
    reopened: int
    """Units asked besides, because they were pruned together with one that was met."""
    missed_at_most: int
    """Upper bound on the τ-agonists among the units not tested."""
    confidence: float


@dataclass(slots=True, kw_only=True)
class _Drawn:
    """A drawn unit and what was counted of it."""

    unit: Neuron
    seen: FlipEstimate = nodes.NOTHING

    def following(self, plans: tuple[ExclusionPlan, ExclusionPlan]) -> tuple[range, range] | None:
        """The examples to ask next; None when nothing is left to ask.

        The next look at each slice that is not ruled out; everything left of both when one shows the unit to be a
        τ-agonist.
        """
        parts = self.seen.associated, self.seen.unrelated
        left = [range(part.n, plan.sizes[-1]) for part, plan in zip(parts, plans, strict=True)]
        if any(part.flips >= plan.needed for part, plan in zip(parts, plans, strict=True)):
            return (left[0], left[1]) if any(left) else None
        looks = [
            range(0) if not rest or (part.n and plan.excludes(part.n, part.flips)) else plan.following(part.n)
            for rest, part, plan in zip(left, parts, plans, strict=True)
        ]
        return (looks[0], looks[1]) if any(looks) else None


def unsettled(tree: ChaTree, candidates: LayerCandidates, basis: Basis, full_test: int) -> tuple[Neuron, ...]:
    """The candidates of a search not tested singly on all n₊ + n₋ = `full_test` examples, by channel."""
    exact = {
        node.channels[0]
        for node in tree.nodes
        if len(node.channels) == 1 and node.estimate.associated.n + node.estimate.unrelated.n == full_test
    }
    return tuple(
        Neuron(basis, tree.layer, channel) for channel in sorted({*candidates.channels.tolist()} - exact)
    )


def pruned_together(trees: Iterable[ChaTree], basis: Basis) -> dict[Neuron, tuple[Neuron, ...]]:
    """For every unit that was pruned with others, the units of the smallest such group."""
    groups: dict[Neuron, tuple[Neuron, ...]] = {}
    for tree in trees:
        for node in sorted(tree.nodes, key=lambda node: -len(node.channels)):
            if node.verdict is nodes.Verdict.PRUNED:
                members = tuple(Neuron(basis, tree.layer, channel) for channel in node.channels)
                groups |= dict.fromkeys(members, members)
    return groups


class Audit:
    """Draws units and asks for their exact tests until `done`; then `result` bounds what was missed."""

    def __init__(
        self,
        strata: Mapping[str, Sequence[Neuron]],
        *,
        settings: AuditSettings,
        rng: np.random.Generator,
        together: Mapping[Neuron, Sequence[Neuron]] = MappingProxyType({}),
    ) -> None:
        """`strata` names disjoint parts of the population, each sampled at the same rate.

        They are cut by layer, for example, by the size of the pruned group or by rank in attribution. `together` names
        the units that each was pruned with.
        """
        self._settings, self._names, self._together = settings, tuple(strata), together
        self._drawn = [[units[i] for i in rng.permutation(len(units))] for units in strata.values()]
        self._sample = sample_within(self._population, settings.budget)
        self._found: dict[Neuron, FlipEstimate] = {}
        self._asked: list[_Drawn] = []
        self._waiting: dict[int, GroupQuery] = {}
        self._reopened: set[Neuron] = set()
        self._most = sum(self._population)
        for units, size in zip(self._drawn, self._sample, strict=True):
            self._ask(units[:size])

    @property
    def done(self) -> bool:
        """Whether there is nothing left to ask."""
        return not self._waiting

    @property
    def result(self) -> AuditResult:
        """What may be stated when it is `done`."""
        asked = {each.unit for each in self._asked}
        drawn = asked - self._reopened
        tested = [[unit for unit in units if unit in drawn] for units in self._drawn]
        strata = tuple(
            StratumResult(
                name=name, units=len(units), tested=len(done), found=len(self._found.keys() & set(done))
            )
            for name, units, done in zip(self._names, self._drawn, tested, strict=True)
        )
        unknown = sum(self._population) - len(self._found.keys() if self._settings.slip else asked)
        return AuditResult(
            strata=strata,
            drawn=frozenset(drawn),
            found=dict(self._found),
            reopened=len(asked & self._reopened),
            missed_at_most=max(0, min(self._most - len(self._found), unknown)),
            confidence=self._settings.confidence,
        )

    def ask(self) -> tuple[GroupQuery, ...]:
        """All questions now open, one unit each; node ids count the draws."""
        return tuple(self._waiting.values())

    def tell(self, answer: GroupAnswer) -> None:
        """Take the counts of one unit, exactly of the examples that were asked for."""
        query, told = self._waiting[answer.node], answer.estimate
        assert (told.associated.n, told.unrelated.n) == (len(query.associated), len(query.unrelated))
        drawn = self._asked[answer.node]
        drawn.seen += told
        self._proceed(answer.node, drawn)
        if not self._waiting:
            self._conclude()

    @property
    def _population(self) -> tuple[int, ...]:
        return tuple(len(units) for units in self._drawn)

    def _conclude(self) -> None:
        """Bound the agonists by the draws, then ask for all units that were pruned together with one that was met."""
        if not self._reopened:
            error = 1 - self._settings.confidence
            self._most = most_agonists(
                self._population, self._sample, len(self._found), error, self._settings.slip
            )
        left = {unit for units in self._drawn for unit in units} - {each.unit for each in self._asked}
        more = left & {member for unit in self._found for member in self._together.get(unit, ())}
        self._reopened |= more
        self._ask(sorted(more))

    def _ask(self, units: Iterable[Neuron]) -> None:
        for unit in units:
            self._asked.append(_Drawn(unit=unit))
            self._proceed(len(self._asked) - 1, self._asked[-1])

    def _proceed(self, node: int, drawn: _Drawn) -> None:
        """Ask for a drawn unit's next look, or close its question."""
        self._waiting.pop(node, None)
        ranges = drawn.following(self._settings.plans)
        if ranges is not None:
            self._waiting[node] = GroupQuery(
                node=node,
                layer=drawn.unit.layer,
                channels=(drawn.unit.channel,),
                associated=ranges[0],
                unrelated=ranges[1],
            )
        elif drawn.seen.reaches(self._settings.tau) and self._is_whole(drawn):
            self._found[drawn.unit] = drawn.seen

    def _is_whole(self, drawn: _Drawn) -> bool:
        seen = drawn.seen.associated.n, drawn.seen.unrelated.n
        return seen == (self._settings.n_associated, self._settings.n_unrelated)
