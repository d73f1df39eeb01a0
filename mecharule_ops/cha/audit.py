"""How many τ-agonists a search missed at most, from exact tests of units drawn at random.

The population are the units whose own strength on the full slices is not known, because a group that held
them was pruned. They are drawn at random within strata, without replacement, and tested exactly; like the
search, the audit asks and is told. It looks at its counts after a few stages, each with its share of α, so
that all bounds hold together; it ends as soon as one says "at most k missed".

What is bounded is the number of τ-agonists by point estimate on these very slices, so no estimation error of
a single unit enters, and nothing is assumed about monotonicity or about why a unit was missed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mecharule_ops.cha.audit_bound import most_agonists, sample_sizes, sample_within
from mecharule_ops.cha.group_search import AnswerError
from mecharule_ops.cha.tree import ChaTree
from mecharule_ops.types import Basis, FlipEstimate, GroupAnswer, GroupQuery, Neuron

STAGES = ((0, 0.5), (1, 0.25), (4, 0.25))
"""For each stage: τ-agonists found with which it can still end the audit, and its share of α."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """What an audit has to show."""

    at_most: int
    """k: the audit ends once at most so many τ-agonists are missed."""
    n_associated: int
    n_unrelated: int
    confidence: float = 0.95
    tau: float = 0.2
    budget: int | None = None
    """Singleton tests that the audit may ask; None for as many as its stages want."""


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
    found: Mapping[Neuron, FlipEstimate]
    """The τ-agonists that the search had missed and the audit met; no longer missed."""
    missed_at_most: int
    """Upper bound on the τ-agonists among the units not tested."""
    confidence: float

    @property
    def sentence(self) -> str:
        """The finding in words."""
        tested, units = sum(part.tested for part in self.strata), sum(part.units for part in self.strata)
        return (
            f"at most {self.missed_at_most} τ-agonists missed among {units - tested:,} untested units, "
            f"{self.confidence:.0%} confidence ({tested:,} drawn at random, {len(self.found)} found)"
        )


def unsettled(tree: ChaTree, basis: Basis, full_test: int) -> tuple[Neuron, ...]:
    """The units of a search that were not tested singly on all n₊ + n₋ = `full_test` examples, by channel."""
    seen = {channel for node in tree.nodes for channel in node.channels}
    exact = {
        node.channels[0]
        for node in tree.nodes
        if len(node.channels) == 1 and node.estimate.associated.n + node.estimate.unrelated.n == full_test
    }
    return tuple(Neuron(basis, tree.layer, channel) for channel in sorted(seen - exact))


class Audit:
    """Draws units and asks for their exact tests until `done`; then `result` bounds what was missed."""

    def __init__(
        self, strata: Mapping[str, Sequence[Neuron]], *, settings: AuditSettings, rng: np.random.Generator
    ) -> None:
        """`strata` names disjoint parts of the population, for example by layer, size of the pruned group or
        rank in attribution; each is sampled at the same rate."""
        self._settings, self._names = settings, tuple(strata)
        self._drawn = [[units[i] for i in rng.permutation(len(units))] for units in strata.values()]
        self._sample = (0,) * len(self._drawn)
        self._found: dict[Neuron, FlipEstimate] = {}
        self._asked: list[Neuron] = []
        self._waiting: dict[int, GroupQuery] = {}
        self._stages, self._alpha = list(STAGES), 0.0
        self._most = sum(self._population)
        self._advance()

    @property
    def done(self) -> bool:
        """Whether there is nothing left to ask."""
        return not self._waiting

    @property
    def result(self) -> AuditResult:
        """What may be stated now; also after `stop`, from the stages that were completed."""
        asked = set(self._asked) - {self._asked[node] for node in self._waiting}
        tested = [[unit for unit in units if unit in asked] for units in self._drawn]
        strata = tuple(
            StratumResult(
                name=name, units=len(units), tested=len(done), found=len(self._found.keys() & set(done))
            )
            for name, units, done in zip(self._names, self._drawn, tested, strict=True)
        )
        untested = sum(self._population) - len(asked)
        return AuditResult(
            strata=strata,
            found=dict(self._found),
            missed_at_most=min(self._most - len(self._found), untested),
            confidence=self._settings.confidence,
        )

    def ask(self) -> tuple[GroupQuery, ...]:
        """All questions now open, one unit each, for the full slices; node ids count the draws."""
        return tuple(self._waiting.values())

    def tell(self, answer: GroupAnswer) -> None:
        """Take the exact counts of one unit. Raises `AnswerError`, and then nothing has changed."""
        sizes = answer.estimate.associated.n, answer.estimate.unrelated.n
        expected = self._settings.n_associated, self._settings.n_unrelated
        if answer.node not in self._waiting or sizes != expected:
            raise AnswerError(
                f"expected {expected[0]} examples and {expected[1]} for an open question, "
                f"got {sizes[0]} and {sizes[1]} for node {answer.node}: ask again"
            )
        del self._waiting[answer.node]
        if answer.estimate.strength >= self._settings.tau:
            self._found[self._asked[answer.node]] = answer.estimate
        if not self._waiting:
            self._conclude()

    def stop(self) -> None:
        """Ask no more; the result then rests on the stages that were completed."""
        self._asked = [unit for node, unit in enumerate(self._asked) if node not in self._waiting]
        self._waiting.clear()

    @property
    def _population(self) -> tuple[int, ...]:
        return tuple(len(units) for units in self._drawn)

    def _conclude(self) -> None:
        """End a stage: bound the agonists, and go on if that is not enough."""
        most = most_agonists(self._population, self._sample, len(self._found), self._alpha)
        self._most = min(self._most, most)
        if self._most - len(self._found) > self._settings.at_most:
            self._advance()

    def _advance(self) -> None:
        """Ask for the next stage's draws, if there is one; one that the budget cuts short is the last."""
        if not self._stages:
            return
        expected, share = self._stages.pop(0)
        error, budget = 1 - self._settings.confidence, self._settings.budget
        sample = sample_sizes(self._population, self._settings.at_most, expected, error * share)
        if budget is not None and sum(sample) > budget:
            sample = sample_within(self._population, budget)
            share += sum(rest for _, rest in self._stages)
            self._stages.clear()
        self._alpha = error * share
        for units, begin, end in zip(self._drawn, self._sample, sample, strict=True):
            for unit in units[begin:end]:
                self._ask(unit)
        self._sample = tuple(np.maximum(sample, self._sample).tolist())

    def _ask(self, unit: Neuron) -> None:
        node = len(self._asked)
        self._asked.append(unit)
        self._waiting[node] = GroupQuery(
            node=node,
            layer=unit.layer,
            channels=(unit.channel,),
            associated=range(self._settings.n_associated),
            unrelated=range(self._settings.n_unrelated),
        )
