"""What is held at its clean values beside an ablation, and what lies above a unit.

A hold prints as `a21.h2`, `m20` for a whole layer's MLP, `a21` for all its heads, several joined by `+`, or `above`,
`heads-above`, `MLPs-above`: what lies above the ablated unit, which together is all that later blocks write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from mecharule_ops.types import Basis, Neuron

_WITHIN_BLOCK = (Basis.ATTN_HEAD, Basis.MLP_HIDDEN, Basis.MLP_OUT)
"""The order in which a block computes its bases."""
_WHOLE = re.compile(r"([am])(\d{1,4})")


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSizes:
    """Sizes that a whole layer is made of."""

    layers: int
    heads: int
    channels: int
    """Coordinates of the residual stream."""


@dataclass(frozen=True, slots=True)
class OneUnit:
    """One unit."""

    unit: Neuron

    def __str__(self) -> str:
        return str(self.unit)

    def units(self, ablated: Neuron, shape: LayerSizes) -> Iterator[Neuron]:
        """The unit."""
        yield self.unit


@dataclass(frozen=True, slots=True)
class HeldLayer:
    """All heads of a layer, or its MLP."""

    kind: Basis
    layer: int

    def __str__(self) -> str:
        return f"{self.kind.letter}{self.layer}"

    def units(self, ablated: Neuron, shape: LayerSizes) -> Iterator[Neuron]:
        """Every unit of it."""
        width = shape.heads if self.kind is Basis.ATTN_HEAD else shape.channels
        return (Neuron(self.kind, self.layer, channel) for channel in range(width))


@dataclass(frozen=True, slots=True)
class Together:
    """Several at once."""

    parts: tuple[OneUnit | HeldLayer, ...]

    def __str__(self) -> str:
        return "+".join(map(str, self.parts))

    def units(self, ablated: Neuron, shape: LayerSizes) -> Iterator[Neuron]:
        """Those of each part."""
        return (unit for part in self.parts for unit in part.units(ablated, shape))


class Above(StrEnum):
    """Every head and MLP write above the ablated unit, or those of one kind."""

    EVERYTHING = "above"
    HEADS = "heads-above"
    MLPS = "MLPs-above"

    def units(self, ablated: Neuron, shape: LayerSizes) -> Iterator[Neuron]:
        """Those of every layer above."""
        held = {Above.HEADS: (Basis.ATTN_HEAD,), Above.MLPS: (Basis.MLP_OUT,)}
        return (
            unit
            for kind in held.get(self, (Basis.ATTN_HEAD, Basis.MLP_OUT))
            for layer in layers_above(ablated, kind, shape.layers)
            for unit in HeldLayer(kind, layer).units(ablated, shape)
        )


Hold = OneUnit | HeldLayer | Together | Above


def parse_hold(text: str) -> Hold:
    """The hold that prints so. Raises `UsageError` on another text."""
    if text in list(Above):
        return Above(text)
    parts = tuple(map(_part, text.split("+")))
    return parts[0] if len(parts) == 1 else Together(parts)


def _part(text: str) -> OneUnit | HeldLayer:
    whole = _WHOLE.fullmatch(text)
    if whole is None:
        return OneUnit(Neuron.parse(text))
    return HeldLayer(Basis.ATTN_HEAD if whole[1] == "a" else Basis.MLP_OUT, int(whole[2]))


def layers_above(unit: Neuron, kind: Basis, layers: int) -> range:
    """Layers whose heads, or whose MLP, may read what a unit writes.

    A head's own layer counts with its MLP; where the two run in parallel that MLP does not read the head, and
    holding it changes nothing.
    """
    own = kind is Basis.MLP_OUT and unit.basis is Basis.ATTN_HEAD
    return range(unit.layer + (not own), layers)


def nothing_above(unit: Neuron, layers: int) -> bool:
    """Whether no head and no MLP of a model of so many layers may read what a unit writes."""
    return unit.basis is not Basis.ATTN_HEAD and unit.layer == layers - 1


def is_above(unit: Neuron, other: Neuron) -> bool:
    """Whether `other` may read what `unit` writes: it stands in a later layer, or later in the same block."""
    order = _WITHIN_BLOCK.index
    return (other.layer, order(other.basis)) > (unit.layer, order(unit.basis))
