"""Through which units an ablation acts: do(j) with others held at their clean values, counted (mediation).

Unit j is ablated while units above it are held at what they were in the clean run. A flip of do(j) that does not
happen then needs the held units to change: it goes through them. Every unit above held at once leaves what j adds
to the residual stream itself, its direct effect. Shares of different holds do not add up to the whole: a flip can
need two units, or be carried by either of two.

A clean value exists only at positions whose text so far is the clean completion's. So units are held from the
prompt on up to the first generated token that changes, and released from there: until that token, holding is exact,
and what follows is the free continuation under do(j). Whether the first change of do(j) still happens is therefore
decided wholly under the hold; whether the label flips, which is counted, is that of the completion that follows.

Source: path patching and causal mediation (Vig et al. 2020; Wang et al. 2023), here with counts of flips as outcome.
Axes: record.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from mecharule_ops import confidence, plain_text, types
from mecharule_ops.mechanism.holds import Hold, parse_hold


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded:
    """k of n with one-sided Clopper–Pearson bounds, each at α/2."""

    count: int
    n: int
    lower: float
    upper: float

    @classmethod
    def of(cls, count: int, n: int, alpha: float) -> "Bounded":
        """The bounds of a rate at level 1 − α."""
        return cls(
            count=count,
            n=n,
            lower=confidence.lower_bound(count, n, alpha / 2) if n else 0.0,
            upper=confidence.upper_bound(count, n, alpha / 2) if n else 1.0,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Through:
    """What holding some units does to the flips of a unit."""

    held: str
    """As a hold prints."""
    gone: Bounded
    """Flips of do(j) that do not happen with the units held, of all flips of do(j)."""
    new: types.FlipCount
    """Records that flip with the units held and not under do(j) alone, of those that do(j) alone does not flip."""

    @property
    def hold(self) -> Hold:
        """What was held."""
        return parse_hold(self.held)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mediation:
    """The flips of one unit, and what remains of them with others held."""

    flips: types.FlipCount
    """Under do(j) alone."""
    through: tuple[Through, ...]
    """One entry a hold, in the order asked."""

    def of(self, hold: Hold) -> Through | None:
        """The entry of a hold."""
        return next((entry for entry in self.through if entry.held == str(hold)), None)


def mediation(
    alone: Bool[np.ndarray, " record"], held: Mapping[str, Bool[np.ndarray, " record"]], alpha: float
) -> Mediation:
    """Counts over records that flip: `alone` under do(j), `held` by what was held beside it."""
    flips, others = int(alone.sum()), int((~alone).sum())
    through = tuple(
        Through(
            held=name,
            gone=Bounded.of(int((alone & ~under).sum()), flips, alpha),
            new=types.FlipCount(flips=int((under & ~alone).sum()), n=others),
        )
        for name, under in held.items()
    )
    return Mediation(flips=types.FlipCount(flips=flips, n=len(alone)), through=through)


def first_change(before: types.Tokens, after: types.Tokens) -> int | None:
    """Index of the first token that differs, a missing one included; None when the completions are equal."""
    return None if before == after else plain_text.alike((before, after))
