"""Which small sets of the train records stand for D⁺ and D⁻ (paper, §3, §4.2).

The four ways of forming the compact slices are the conditions of experiment E1 (paper, §5). Counts on a slice speak
of its own examples. Only slices drawn at random bound a rate on all of D⁺ or D⁻: a k-center cover prefers what is
rare, so its rate is another (`tests/values/test_slices.py`). No model is called.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from jaxtyping import Bool, Float, Int

from mecharule_ops import confidence, thresholds
from mecharule_ops.spectral import covering_radius, farthest_first, pair_by_length, project, two_clusters
from mecharule_ops.subsets import some_of
from mecharule_ops.types import Regime

REQUIRED = confidence.flipless_size(thresholds.ALPHA, thresholds.TAU)
"""Examples that a slice needs before zero flips can prune, under the paper's α and τ."""


class E1Condition(StrEnum):
    """How slices are split and covered (paper, §5, E1)."""

    RULE_SPECTRAL = "rule-spectral"
    """Split by a learned rule, k-center coverage: the paper's main condition."""
    SPECTRAL_SPLIT = "spectral-split"
    """Split by 2-means in spectral space, k-center coverage, no rule."""
    RULE_RANDOM = "rule-random"
    """Split by a learned rule, drawn uniformly at random: the default, and the only one that bounds D⁺ and D⁻."""
    FAKE_RULE = "fake-rule"
    """Split by a rule that was learned on permuted targets: the negative control."""


class SliceStatus(StrEnum):
    """What the compact slices can support; the value is the sentence a person reads, with its numbers."""

    READY = "both slices have the {size} examples asked for"
    SHORT = (
        "the {smaller_name} slice has {smaller} of the {size} examples asked for: all there are. Fewer groups can be "
        "ruled out on it, and a rate on it is coarse"
    )
    ONE_SLICE = (
        "only the {larger_name} slice can bound flips below τ: {required} examples a slice are needed, "
        "the {smaller_name} slice has {smaller}; a search that tests both cannot prune"
    )
    UNDERPOWERED = "{required} examples a slice are needed, {smaller} exist"
    EMPTY = "no train record has this baseline outcome"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CompactSlices:
    """D̃⁺ and D̃⁻ of one regime. Every position points into the records and lies in the train split."""

    regime: Regime
    condition: E1Condition
    rule: str | None
    """The splitter's text; None for a split without a rule."""
    associated: Int[np.ndarray, " associated"]
    """D̃⁺, shuffled: a prefix is a uniform sample of it, so that a sequential test may stop early."""
    unrelated: Int[np.ndarray, " unrelated"]
    """D̃⁻, likewise."""
    pairs: Int[np.ndarray, "pair 2"]
    """(associated position, unrelated position), equal in token length, closest first."""
    status: SliceStatus
    size: int
    """Examples asked for a slice, n."""
    required: int
    """Examples a slice needs so that zero flips can prune."""
    associated_size: int
    """|D⁺| on the train split, before compaction."""
    unrelated_size: int
    """|D⁻| on the train split, before compaction."""
    associated_radius: float
    """Covering radius reached on D⁺, in units of `spectral.project`; NaN when D⁺ is empty."""
    unrelated_radius: float
    """The same on D⁻."""

    @property
    def at_random(self) -> bool:
        """Whether each slice is a uniform sample of its side, so that its bounds hold for all of D⁺ or D⁻."""
        return self.condition is E1Condition.RULE_RANDOM

    @property
    def named(self) -> dict[str, list[int]]:
        """Positions of both slices by name, associated first."""
        return {"associated": self.associated.tolist(), "unrelated": self.unrelated.tolist()}

    @property
    def positions(self) -> list[int]:
        """Positions of both slices, associated first."""
        return [*self.associated.tolist(), *self.unrelated.tolist()]

    @property
    def sentence(self) -> str:
        """The status with its numbers, as a person reads it."""
        (smaller, smaller_name), (_, larger_name) = sorted(
            [(len(self.associated), "associated"), (len(self.unrelated), "unrelated")], key=lambda one: one[0]
        )
        return self.status.value.format(
            required=self.required,
            size=self.size,
            smaller=smaller,
            smaller_name=smaller_name,
            larger_name=larger_name,
        )


def compact_slices(
    labels: Bool[np.ndarray, " record"],
    fires: Bool[np.ndarray, " record"] | None,
    representation: Float[np.ndarray, "record channel"],
    token_lengths: Int[np.ndarray, " record"],
    train: Int[np.ndarray, " train"],
    *,
    identifiers: Sequence[int],
    regime: Regime,
    condition: E1Condition = E1Condition.RULE_RANDOM,
    rule: str | None = None,
    size: int = thresholds.SLICE,
    max_pairs: int = 128,
    required: int = REQUIRED,
    seed: int,
) -> CompactSlices:
    """The compact slices of one regime under one E1 condition (paper, §4.2).

    `fires` is the splitter on every record; without one 2-means in spectral space splits. `train` are the positions
    that may be used, `identifiers` the ids of all records, which with the seed decide a random draw. The spectral
    space is fitted on all train records, so that a radius means the same in both regimes. A slice with fewer than
    `size` records gives all it has, never topped up from elsewhere; with fewer than `required` it can rule out none.
    """
    assert size >= 1, size
    points = project(representation[train])
    eligible = np.flatnonzero(~regime.flipped(labels[train]))
    side = _sides(points[eligible], None if fires is None else fires[train][eligible], condition)
    rows = [eligible[side], eligible[~side]]
    if condition is E1Condition.RULE_RANDOM:
        drawn = [
            some_of([identifiers[train[row]] for row in part], size, of="slice", seed=seed) for part in rows
        ]
    else:
        generator = np.random.default_rng([seed, regime.value])
        drawn = [generator.permutation(farthest_first(points[part], size)) for part in rows]
    radii = [covering_radius(points[part], centres) for part, centres in zip(rows, drawn, strict=True)]
    chosen = [part[centres] for part, centres in zip(rows, drawn, strict=True)]
    lengths = token_lengths[train]
    paired = pair_by_length(
        points[chosen[0]], points[chosen[1]], lengths[chosen[0]], lengths[chosen[1]], max_pairs
    )
    return CompactSlices(
        regime=regime,
        condition=condition,
        rule=None if fires is None or condition is E1Condition.SPECTRAL_SPLIT else rule,
        associated=train[chosen[0]],
        unrelated=train[chosen[1]],
        pairs=train[np.stack([chosen[0][paired[:, 0]], chosen[1][paired[:, 1]]], axis=1)],
        status=_status(len(chosen[0]), len(chosen[1]), required, size),
        size=size,
        required=required,
        associated_size=len(rows[0]),
        unrelated_size=len(rows[1]),
        associated_radius=radii[0],
        unrelated_radius=radii[1],
    )


def best_split(rules: Iterable[tuple[float, int]], *, needed: int, wanted: int) -> int | None:
    """Which of (MCC, smallest slice) is worth most: MCC × (m / n)², m up to the n = `wanted` asked for.

    A slice of half the size needs four times the MCC, since few groups can be ruled out on it and chance alone lifts
    weak units to τ. One below `needed` can rule out nothing and is passed over. None where all are. After the first,
    MCCs descend, so the rest is not looked at once none can win.

    >>> best_split([(0.6, 20), (0.4, 64), (0.3, 500)], needed=14, wanted=64)
    1
    """
    chosen, best = None, 0.0
    for place, (agrees, smallest) in enumerate(rules):
        if place and agrees <= best:
            break
        value = agrees * min(1.0, smallest / wanted) ** 2
        if smallest >= needed and value > best:
            chosen, best = place, value
    return chosen


def _sides(
    points: Float[np.ndarray, "record component"],
    fires: Bool[np.ndarray, " record"] | None,
    condition: E1Condition,
) -> Bool[np.ndarray, " record"]:
    """True where a record belongs to D⁺; without a rule, the smaller of two clusters takes that name."""
    if fires is not None and condition is not E1Condition.SPECTRAL_SPLIT:
        return fires
    second = two_clusters(points)
    if 2 * second.sum() == len(points):
        return second == second[:1]
    return second if 2 * second.sum() < len(points) else ~second


def _status(associated: int, unrelated: int, required: int, size: int) -> SliceStatus:
    powered = (associated >= required) + (unrelated >= required)
    if associated + unrelated == 0:
        return SliceStatus.EMPTY
    if min(associated, unrelated) >= size >= required:
        return SliceStatus.READY
    return (SliceStatus.UNDERPOWERED, SliceStatus.ONE_SLICE, SliceStatus.SHORT)[powered]
