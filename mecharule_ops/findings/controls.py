"""What the controls beside a unit show: where it ranks among other units, and whether its flips follow the split.

The unit was picked by its flips on the compact slices, so nothing that these say of it can test it. Both tests read
held-out records of D_b, which selected nothing.

*Rank*: of random units drawn from all others of the basis, or of the layer, found ones included, those that flip at
least as many of the same records. It is a count; the one test of it is `evidence`'s.

*Selective*: p is the share of all permutations of the split's labels over the held-out records that make the two
rates differ at least as much; the flips on one side are then hypergeometric, so every permutation is counted.

1. UNDECIDED      one side of the split has no held-out record, or there is no split.
2. NOT_SELECTIVE  the whole interval of the difference of the rates, at 1 − α, lies within ±ε.
3. UNDECIDED      the rates differ by less than ε, or p > α after Holm's correction over the run's units.
4. SELECTIVE      none of the above.

Neither claim needs the other. Neither is decided by the second baseline, because the paper defines an agonist relative
to one replacement; `depends_on_baseline` says when the strength does not survive the change.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from mecharule_ops.confidence import difference_interval, log_choose
from mecharule_ops.thresholds import ALPHA
from mecharule_ops.types import Baseline, FlipCount, FlipEstimate, Neuron, Share


class Selective(StrEnum):
    """Whether a unit's flips follow the split."""

    SELECTIVE = "selective"
    NOT_SELECTIVE = "not selective"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgonistControls:
    """The controls run beside one τ-agonist and what they show; None where a control was not run."""

    neuron: Neuron
    flips: FlipCount | None = None
    """The unit's flips on the held-out records on which the random units were ablated."""
    basis: Share | None = None
    """Random units of the basis that flip at least as many of them, of those drawn."""
    layer: Share | None = None
    """The same for random units of its layer."""
    split: FlipEstimate | None = None
    """Its flips on all held-out records of D_b: where the splitter rule fires, and where it does not."""
    selective: Selective = Selective.UNDECIDED
    selective_p: float | None = None
    """Corrected p that its flips follow the split; None without a split."""
    second_baseline: Baseline | None = None
    second: FlipEstimate | None = None
    """This unit with `second_baseline` as its replacement, on the slices."""
    out_of_range: Share | None = None
    """Replaced values outside the range that the unit takes at that position in the data."""

    def below_elsewhere(self, tau: float) -> bool:
        """Whether a second replacement baseline was run and its point estimate stays below τ."""
        return self.second is not None and not self.second.reaches(tau)

    def depends_on_baseline(self, main: FlipEstimate, tau: float) -> bool:
        """Whether it stays below τ there and, on the slice that `main` flips more, is told apart from `main` (95 %)."""
        if self.second is None or not self.below_elsewhere(tau):
            return False
        name, here = main.stronger
        there = self.second.associated if name == "D+" else self.second.unrelated
        return difference_interval(here.flips, here.n, there.flips, there.n, ALPHA)[0] > 0


def as_many(flips: Mapping[Neuron, int], unit: Neuron, others: Collection[Neuron]) -> Share:
    """Of some other units those that flip at least as many records as a unit."""
    return Share(count=sum(flips[other] >= flips[unit] for other in others), n=len(others))


def permutation_p(split: FlipEstimate) -> float:
    """Share of all permutations of the split's labels after which the two rates differ as much or more.

    1.0 when a side is empty, and when nothing flips.
    """
    first, second = split.associated, split.unrelated
    if not (first.n and second.n):
        return 1.0
    flips = first.flips + second.flips
    here = np.arange(max(0, flips - second.n), min(flips, first.n) + 1)
    ways = log_choose(first.n, here) + log_choose(second.n, flips - here)
    share = np.exp(ways - log_choose(first.n + second.n, np.array([flips])))
    # Both rates over one denominator, so that equal differences compare as equal whole numbers.
    apart = np.abs(here * second.n - (flips - here) * first.n)
    return float(min(1.0, share[apart >= abs(first.flips * second.n - second.flips * first.n)].sum()))


def holm(values: Sequence[float]) -> list[float]:
    """Holm's corrected p of each value (1979): their family-wise error is at most the level they are read at."""
    corrected, least = [0.0] * len(values), 0.0
    for place, index in enumerate(np.argsort(values, kind="stable").tolist()):
        least = max(least, min(1.0, (len(values) - place) * values[index]))
        corrected[index] = least
    return corrected


def decided(controls: Sequence[AgonistControls], *, alpha: float, epsilon: float) -> list[AgonistControls]:
    """The controls of a run's units with the claim of each split decided over all of them at once."""
    splits = iter(holm([permutation_p(beside.split) for beside in controls if beside.split is not None]))
    done = []
    for beside in controls:
        follows = next(splits) if beside.split is not None else None
        selective = _selective(beside.split, follows, epsilon, alpha)
        done.append(replace(beside, selective_p=follows, selective=selective))
    return done


def _selective(split: FlipEstimate | None, p: float | None, epsilon: float, alpha: float) -> Selective:
    difference = float("nan") if split is None else abs(split.signed_selectivity)
    if split is None or np.isnan(difference):
        return Selective.UNDECIDED
    first, second = split.associated, split.unrelated
    low, high = difference_interval(first.flips, first.n, second.flips, second.n, alpha)
    if -epsilon < low and high < epsilon:
        return Selective.NOT_SELECTIVE
    told_apart = difference >= epsilon and p is not None and p <= alpha
    return Selective.SELECTIVE if told_apart else Selective.UNDECIDED
