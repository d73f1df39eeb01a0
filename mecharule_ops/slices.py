"""Which small sets of the train records stand for D⁺ and D⁻ (paper, §3, §4.2).

The four ways of forming the compact slices are the conditions of experiment E1 (paper, §5). No model is
called; randomness enters as a generator.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from jaxtyping import Bool, Float, Int

from mecharule_ops.confidence import flipless_size
from mecharule_ops.errors import UsageError
from mecharule_ops.spectral import Coverage, covering, farthest_first, pair_by_length, project, two_clusters
from mecharule_ops.thresholds import ALPHA, TAU
from mecharule_ops.types import Regime


class E1Condition(StrEnum):
    """How slices are split and covered (paper, §5, E1)."""

    RULE_SPECTRAL = "rule-spectral"
    """Split by a learned rule, k-center coverage: the main condition."""
    SPECTRAL_SPLIT = "spectral-split"
    """Split by 2-means in spectral space, no rule: the rule-free fallback."""
    RULE_RANDOM = "rule-random"
    """Split by a learned rule, uniform sampling instead of coverage."""
    FAKE_RULE = "fake-rule"
    """Split by a rule that was learned on permuted targets: the negative control."""


class SliceStatus(StrEnum):
    """What the compact slices can support; the value is the sentence a person reads, with its numbers."""

    READY = "both slices are large enough to prune: {required} examples a slice are needed, {smaller} exist"
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
    partnerless: int
    """Examples of the compact slices without an equal-length example in the other slice."""
    status: SliceStatus
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
        named = sorted(
            [(len(self.associated), "associated"), (len(self.unrelated), "unrelated")], key=lambda one: one[0]
        )
        (smaller, smaller_name), (_, larger_name) = named
        return self.status.value.format(
            required=self.required, smaller=smaller, smaller_name=smaller_name, larger_name=larger_name
        )


def compact_slices(
    labels: Bool[np.ndarray, " record"],
    fires: Bool[np.ndarray, " record"] | None,
    representation: Float[np.ndarray, "record channel"],
    token_lengths: Int[np.ndarray, " record"],
    train: Int[np.ndarray, " train"],
    *,
    regime: Regime,
    condition: E1Condition = E1Condition.RULE_SPECTRAL,
    rule: str | None = None,
    size: int = 64,
    max_pairs: int = 128,
    slice_alpha: float = ALPHA,
    tau: float = TAU,
    generator: np.random.Generator,
) -> CompactSlices:
    """The compact slices of one regime under one E1 condition (paper, §4.2).

    `fires` is the splitter on every record (None only for a split without a rule); `train` the positions that
    may be used. The spectral space is fitted on all train records, so that a radius means the same in both
    regimes. A slice with fewer than `size` records gives all it has, never topped up from elsewhere.
    Raises `UsageError` when the condition needs a rule and `fires` is None, and for a size below 1.
    """
    if size < 1:
        raise UsageError(f"expected at least one example a slice, got size {size}; 64 is the default")
    points = project(representation[train])
    eligible = np.flatnonzero(~regime.flipped(labels[train]))
    side = _sides(points[eligible], None if fires is None else fires[train][eligible], condition)
    rows = [eligible[side], eligible[~side]]
    covers = [_cover(points[part], size, condition, generator) for part in rows]
    chosen = [part[generator.permutation(cover.centres)] for part, cover in zip(rows, covers, strict=True)]
    lengths = token_lengths[train]
    pairing = pair_by_length(
        points[chosen[0]], points[chosen[1]], lengths[chosen[0]], lengths[chosen[1]], max_pairs
    )
    pairs = np.stack([chosen[0][pairing.pairs[:, 0]], chosen[1][pairing.pairs[:, 1]]], axis=1)
    required = flipless_size(slice_alpha, tau)
    return CompactSlices(
        regime=regime,
        condition=condition,
        rule=None if condition is E1Condition.SPECTRAL_SPLIT else rule,
        associated=train[chosen[0]],
        unrelated=train[chosen[1]],
        pairs=train[pairs],
        partnerless=pairing.partnerless,
        status=_status(len(chosen[0]), len(chosen[1]), required),
        required=required,
        associated_size=len(rows[0]),
        unrelated_size=len(rows[1]),
        associated_radius=covers[0].radius,
        unrelated_radius=covers[1].radius,
    )


def _sides(
    points: Float[np.ndarray, "record component"],
    fires: Bool[np.ndarray, " record"] | None,
    condition: E1Condition,
) -> Bool[np.ndarray, " record"]:
    """True where a record belongs to D⁺; without a rule, the smaller of two clusters takes that name."""
    if condition is not E1Condition.SPECTRAL_SPLIT:
        if fires is None:
            raise UsageError(
                f"expected a rule for condition {condition}, got none; pass `fires` or spectral-split"
            )
        return fires
    second = two_clusters(points)
    if 2 * second.sum() == len(points):
        return second == second[:1]
    return second if 2 * second.sum() < len(points) else ~second


def _cover(
    points: Float[np.ndarray, "record component"],
    size: int,
    condition: E1Condition,
    generator: np.random.Generator,
) -> Coverage:
    if condition is not E1Condition.RULE_RANDOM or len(points) == 0:
        return farthest_first(points, size)
    return covering(points, generator.permutation(len(points))[:size])


def _status(associated: int, unrelated: int, required: int) -> SliceStatus:
    powered = (associated >= required) + (unrelated >= required)
    if associated + unrelated == 0:
        return SliceStatus.EMPTY
    return (SliceStatus.UNDERPOWERED, SliceStatus.ONE_SLICE, SliceStatus.READY)[powered]
