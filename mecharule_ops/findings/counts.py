"""The counts that a search outcome is made of, and what follows from them: recall, union coverage, Jaccard, dominance.

Source: the paper, §5, E0, E2, and its appendix on overtopping. Dom^(1)(A) = max over units tested alone
in A of Ê / Ê(A). Counts stay counts; a share is computed where it is read.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool

from mecharule_ops import nodes, numbers, thresholds, types
from mecharule_ops.cha.audit import AuditResult, StratumResult


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseCompletions:
    """Completions of the unablated model whose lead is so small that rounding may decide them."""

    lead: float
    """In logits; a smaller lead may be another token's on another processor."""
    disagreement: float
    """Largest difference of a lead between batches of several sizes; `lead` is a multiple of it."""
    compared: int
    """Completions on which it was measured."""
    close: types.Share
    """Records with a smaller lead, of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeLayer:
    """The ablation of all candidate units of one layer together: the root of its CHA tree."""

    layer: int
    estimate: types.FlipEstimate

    @property
    def least(self) -> float:
        """Lower bound of what it flips, by which layers are named: 2 of 2 are not more than 8 of 15."""
        return self.estimate.lcb(thresholds.ALPHA)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerCoverage:
    """D_b records flipped by at least one anchored unit of one layer."""

    layer: int
    flipped: types.Share


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchCost:
    """What a search cost, and what testing every unit alone would have cost."""

    queries: int
    """Group ablations asked, singletons included."""
    example_forwards: int
    """Ablated generations run: the sum over queries of the examples evaluated."""
    prediction_forwards: int = 0
    """What asking for first-order predictions first took, in example-forwards; a backward counts as two."""
    candidates: int
    """N: units searched."""
    slice_examples: int
    """n₊ + n₋: examples that one exhaustive singleton ablation takes."""

    @property
    def share_of_n(self) -> float:
        """The queries over N: against exhaustive singletons; NaN without candidates."""
        return self.queries / self.candidates if self.candidates else float("nan")

    @property
    def share_of_2n_minus_1(self) -> float:
        """The queries over 2N − 1: against every node of the full tree, the published code's denominator."""
        return self.queries / (2 * self.candidates - 1) if self.candidates else float("nan")

    @property
    def exhaustive_example_forwards(self) -> int:
        """N · (n₊ + n₋)."""
        return self.candidates * self.slice_examples

    @property
    def all_forwards(self) -> int:
        """Ablated generations, and the prediction's."""
        return self.example_forwards + self.prediction_forwards

    @property
    def share_of_exhaustive_forwards(self) -> float:
        """all_forwards over those of exhaustive singletons; NaN when there are none."""
        full = self.exhaustive_example_forwards
        return self.all_forwards / full if full else float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitStrength:
    """One unit tested alone."""

    neuron: types.Neuron
    estimate: types.FlipEstimate


DRAWS = 100
"""Resamples of the records of the slices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampled:
    """One unit on the slices' records drawn anew, with replacement, each half from itself: no fresh sample."""

    neuron: types.Neuron
    found: types.Share
    """Of the resamples those in which it reaches τ on a half."""
    first: int
    last: int
    """Ends of the interval that 95 % of its ranks by strength lie in; of equal strengths each has the better rank."""
    alone: int
    """Units that are ranked: all that search, brute force or audit tested alone on all these records."""


def resampled(
    flips: Bool[np.ndarray, "neuron record"],
    associated: int,
    found: Sequence[tuple[types.Neuron, int]],
    tau: float,
    seed: int,
) -> Iterator[Resampled]:
    """Of each unit `found`, named with its row, how often it reaches τ and its rank; the D+ records come first."""
    rng, halves = np.random.default_rng(seed), np.split(flips, [associated], axis=1)
    drawn = [(half, half.shape[1]) for half in halves if half.shape[1]]
    rates = [half @ rng.multinomial(n, np.full(n, 1 / n), DRAWS).T / n for half, n in drawn]
    strength = np.max(rates, axis=0)
    for neuron, row in found:
        ranks = 1 + (strength > strength[row]).sum(axis=0)
        first, last = np.quantile(ranks, (0.025, 0.975), method="inverted_cdf")
        share = types.Share(count=sum(thresholds.reaches(each, tau) for each in strength[row]), n=DRAWS)
        yield Resampled(neuron=neuron, found=share, first=int(first), last=int(last), alone=len(flips))


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAudit:
    """A search's pruned units drawn at random and tested alone: what it missed at most."""

    strata: tuple[StratumResult, ...]
    found: tuple[types.Agonist, ...]
    """The τ-agonists that the search had missed and the audit met; they count as found."""
    unknown: int
    """Units whose full strength the search left unknown."""
    tested: int
    """Those of them that were drawn and tested."""
    untested: int
    """Neither drawn nor reopened."""
    missed_at_most: int
    """Upper bound on the τ-agonists among the units that the audit does not count as found."""
    confidence: float
    exact: bool = False
    """Whether every drawn unit was tested until τ was reached or out of reach; else a part of the examples ruled out
    the quiet ones with a small chance of error."""
    reopened: int = 0
    """Units tested alone because the search had pruned them with a τ-agonist that was met."""

    @property
    def summary(self) -> str:
        """The bound, and on what it rests, in a line."""
        if self.counted:
            return f"all {self.unknown:,} units that were left were tested alone, {len(self.found)} found"
        besides = f", {self.reopened:,} reopened" if self.reopened else ""
        return (
            f"at most {numbers.plural(self.missed_at_most, 'τ-agonist')} missed, {self.untested:,} units untested, "
            f"{self.confidence:.0%} confidence ({self.tested:,} drawn at random{besides}, {len(self.found)} found)"
        )

    @property
    def counted(self) -> bool:
        """Whether all units that the search left were tested alone for certain: nothing is estimated then."""
        return self.exact and not self.untested

    @property
    def found_reopened(self) -> int:
        """τ-agonists among the reopened units."""
        return len(self.found) - sum(each.found for each in self.strata)

    @classmethod
    def of(cls, result: AuditResult, found: tuple[types.Agonist, ...] = (), *, exact: bool) -> "SearchAudit":
        """With the strata summed; `found` are the result's units."""
        unknown = sum(each.units for each in result.strata)
        tested = sum(each.tested for each in result.strata)
        return cls(
            strata=result.strata,
            found=found,
            unknown=unknown,
            tested=tested,
            untested=unknown - tested - result.reopened,
            reopened=result.reopened,
            missed_at_most=result.missed_at_most,
            confidence=result.confidence,
            exact=exact,
        )


def recall_by_bound(
    exhaustive: Sequence[UnitStrength], localized: Collection[types.Neuron], tau: float, alpha: float
) -> types.Share:
    """Localized units of those whose upper bound Û_E reaches τ when tested alone: the paper's rule of inclusion.

    Exhaustive and search must have used the same slices and regime.
    """
    truth = [unit.neuron for unit in exhaustive if thresholds.reaches(unit.estimate.ucb(alpha), tau)]
    return types.Share(count=len({*truth} & {*localized}), n=len(truth))


def union_coverage(flips: Bool[np.ndarray, "neuron record"]) -> types.Share:
    """Cov_∪: records that at least one unit flips, of all records given (all of one regime's D_b)."""
    return types.Share(count=int(flips.any(axis=0).sum()), n=flips.shape[1])


def jaccard(first: Collection[types.Neuron], second: Collection[types.Neuron]) -> types.Share:
    """|A ∩ J| of |A ∪ J|; `rate` is the Jaccard index, NaN for two empty sets."""
    return types.Share(count=len(set(first) & set(second)), n=len(set(first) | set(second)))


class Dominance(NamedTuple):
    """Of an opened group: Dom^(1) is `single` over the group's own strength."""

    group: nodes.Node
    single: float
    """Strength of the strongest unit that was tested alone inside it."""


def dominance(tree: Sequence[nodes.Node]) -> list[Dominance]:
    """Of each opened group of a search in which a unit was tested alone; parents come before what is inside them."""
    inside: defaultdict[tuple[int, int | None], list[nodes.Node]] = defaultdict(list)
    for node in reversed(tree):
        inside[node.layer, node.parent] += [node, *inside[node.layer, node.id]]
    rows = []
    for group in tree:
        singles = [node.estimate.strength for node in inside[group.layer, group.id] if node.size == 1]
        if singles and group.verdict is nodes.Verdict.SPLIT:
            rows.append(Dominance(group, max(singles)))
    return rows


def floored(share: float) -> float:
    """Rounded down to whole percents, one decimal below 1 %: how the lower bound of a share is printed.

    >>> floored(17 / 233), floored(0.0049)
    (0.07, 0.004)
    """
    step = 100 if share >= 0.01 else 1000
    return math.floor(step * share) / step
