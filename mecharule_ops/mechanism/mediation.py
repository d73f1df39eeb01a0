"""Through which units an ablation acts: do(j) with others held at their clean values, counted (mediation).

Unit j is ablated while units above it are held at what they were in the clean run. A flip of do(j) that does not
happen then needs the held units to change: it goes through them. Every unit above held at once leaves what j adds
to the residual stream itself, its direct effect. Shares of different holds do not add up to the whole: a flip can
need two units, or be carried by either of two.

A clean value exists only at positions whose text so far is the clean completion's. So units are held from the
prompt on up to the first generated token that changes, and released from there: until that token, holding is exact,
and what follows is the free continuation under do(j). Whether the first change of do(j) still happens is therefore
decided wholly under the hold; whether the label flips is that of the completion that follows. Both are counted.

Source: path patching and causal mediation (Vig et al. 2020; Wang et al. 2023), here with counts of flips as outcome.
Axes: record.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from mecharule_ops.confidence import lower_bound, upper_bound
from mecharule_ops.types import Basis, FlipCount, Neuron

ABOVE, HEADS_ABOVE, MLPS_ABOVE = "above", "heads-above", "MLPs-above"
"""What stands for every head and MLP write above the ablated unit, or for those of one kind."""
_WITHIN_BLOCK = (Basis.ATTN_HEAD, Basis.MLP_HIDDEN, Basis.MLP_OUT)
"""The order in which a block computes its bases."""
Tokens = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """Sizes that a whole layer is made of."""

    layers: int
    heads: int
    channels: int
    """Coordinates of the residual stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded:
    """k of n with one-sided Clopper–Pearson bounds, each at α/2."""

    count: int
    n: int
    lower: float
    upper: float

    @classmethod
    def of(cls, count: int, n: int, alpha: float) -> Bounded:
        """The bounds of a rate at level 1 − α."""
        return cls(
            count=count,
            n=n,
            lower=lower_bound(count, n, alpha / 2) if n else 0.0,
            upper=upper_bound(count, n, alpha / 2) if n else 1.0,
        )

    @property
    def rate(self) -> float:
        """NaN when n is 0."""
        return self.count / self.n if self.n else float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Through:
    """What holding some units does to the flips of a unit."""

    held: str
    """As `named` reads it."""
    gone: Bounded
    """Flips of do(j) that do not happen with the units held, of all flips of do(j)."""
    first_gone: Bounded
    """Of the flips of do(j), those whose first changed token stays the clean one, exact under the hold."""
    restored: int
    """Flips of do(j) where the whole completion is the clean one again."""
    new: FlipCount
    """Records that flip with the units held and not under do(j) alone, of those that do(j) alone does not flip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mediation:
    """The flips of one unit, and what remains of them with others held."""

    flips: FlipCount
    """Under do(j) alone."""
    through: tuple[Through, ...]
    """One entry a hold, in the order asked."""

    def of(self, held: str) -> Through | None:
        """The entry of a hold."""
        return next((entry for entry in self.through if entry.held == held), None)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """Completions of some records under one ablation."""

    tokens: Sequence[Tokens]
    flipped: Bool[np.ndarray, " record"]
    """Whether the label is another one than the clean completion's."""


def mediation(clean: Sequence[Tokens], alone: Outcome, held: dict[str, Outcome], alpha: float) -> Mediation:
    """Counts over records: `alone` under do(j), `held` by what was held beside it."""
    first = [first_change(before, after) for before, after in zip(clean, alone.tokens, strict=True)]
    flips = FlipCount(flips=int(alone.flipped.sum()), n=len(clean))
    through = tuple(_through(name, clean, first, alone, under, alpha) for name, under in held.items())
    return Mediation(flips=flips, through=through)


def first_change(before: Tokens, after: Tokens) -> int | None:
    """Index of the first token that differs, a missing one included; None when the completions are equal."""
    pairs = zip(before, after, strict=False)
    shared = next(
        (place for place, (old, new) in enumerate(pairs) if old != new), min(len(before), len(after))
    )
    return None if before == after else shared


def named(held: str, unit: Neuron, shape: ModelShape) -> tuple[Neuron, ...]:
    """The units that a hold beside `unit` names: `a21.h2`, `m20` for a whole layer's MLP, `a21` for all its heads.

    Several are joined by `+`; `above`, `heads-above` and `MLPs-above` take what lies above the unit, which together
    is all that later blocks write. Raises `UsageError` on another text.
    """
    if held in (ABOVE, HEADS_ABOVE, MLPS_ABOVE):
        kinds = {ABOVE: (Basis.ATTN_HEAD, Basis.MLP_OUT), HEADS_ABOVE: (Basis.ATTN_HEAD,)}
        layers = [
            (kind, layer)
            for kind in kinds.get(held, (Basis.MLP_OUT,))
            for layer in layers_above(unit, kind, shape)
        ]
        return tuple(one for kind, layer in layers for one in _layer(kind, layer, shape))
    found = []
    for part in held.split("+"):
        whole = re.fullmatch(r"([am])(\d{1,4})", part)
        if whole is None:
            found.append(Neuron.parse(part))
        else:
            kind = Basis.ATTN_HEAD if whole[1] == "a" else Basis.MLP_OUT
            found += _layer(kind, int(whole[2]), shape)
    return tuple(found)


def layers_above(unit: Neuron, kind: Basis, shape: ModelShape) -> range:
    """Layers whose heads, or whose MLP, may read what a unit writes.

    A head's own layer counts with its MLP; where the two run in parallel that MLP does not read the head, and
    holding it changes nothing.
    """
    own = kind is Basis.MLP_OUT and unit.basis is Basis.ATTN_HEAD
    return range(unit.layer + (not own), shape.layers)


def nothing_above(unit: Neuron, layers: int) -> bool:
    """Whether no head and no MLP of a model of so many layers may read what a unit writes."""
    return unit.basis is not Basis.ATTN_HEAD and unit.layer == layers - 1


def _layer(kind: Basis, layer: int, shape: ModelShape) -> list[Neuron]:
    width = shape.heads if kind is Basis.ATTN_HEAD else shape.channels
    return [Neuron(kind, layer, channel) for channel in range(width)]


def is_above(unit: Neuron, other: Neuron) -> bool:
    """Whether `other` may read what `unit` writes: it stands in a later layer, or later in the same block."""
    order = _WITHIN_BLOCK.index
    return (other.layer, order(other.basis)) > (unit.layer, order(unit.basis))


def _through(
    name: str,
    clean: Sequence[Tokens],
    first: Sequence[int | None],
    alone: Outcome,
    under: Outcome,
    alpha: float,
) -> Through:
    flipped = np.flatnonzero(alone.flipped)
    stays = [record for record in flipped.tolist() if not under.flipped[record]]
    kept = [
        record for record in flipped.tolist() if _reaches(clean[record], under.tokens[record], first[record])
    ]
    whole = sum(under.tokens[record] == clean[record] for record in flipped.tolist())
    still = ~alone.flipped
    return Through(
        held=name,
        gone=Bounded.of(len(stays), len(flipped), alpha),
        first_gone=Bounded.of(len(kept), len(flipped), alpha),
        restored=whole,
        new=FlipCount(flips=int((under.flipped & still).sum()), n=int(still.sum())),
    )


def _reaches(before: Tokens, after: Tokens, place: int | None) -> bool:
    """Whether the tokens are the clean ones up to and including `place`."""
    changed = first_change(before, after)
    return place is None or changed is None or changed > place
