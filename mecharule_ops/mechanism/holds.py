"""What is held at its clean values beside an ablation, and what lies above a unit.

A hold prints as `a21.h2`, `m20` for a whole layer's MLP, `a21` for all its heads, several joined by `+`, or `above`,
`heads-above`, `MLPs-above`: what lies above the ablated unit, which together is all that later blocks write.
"""

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
class HeldLayer:
    """All heads of a layer, or its MLP."""

    kind: Basis
    layer: int

    def __str__(self) -> str:
        return f"{self.kind.letter}{self.layer}"


@dataclass(frozen=True, slots=True)
class Together:
    """Several at once."""

    parts: tuple[Neuron | HeldLayer, ...]

    def __str__(self) -> str:
        return "+".join(map(str, self.parts))


class Above(StrEnum):
    """Every head and MLP write above the ablated unit, or those of one kind."""

    EVERYTHING = "above"
    HEADS = "heads-above"
    MLPS = "MLPs-above"


Hold = Neuron | HeldLayer | Together | Above


def held_by(hold: Hold, ablated: Neuron, shape: LayerSizes) -> Iterator[Neuron]:
    """The units of a hold beside an ablated one, in a model of these sizes."""
    match hold:
        case Neuron():
            yield hold
        case HeldLayer(kind, layer):
            width = shape.heads if kind is Basis.ATTN_HEAD else shape.channels
            yield from (Neuron(kind, layer, channel) for channel in range(width))
        case Together(parts):
            for part in parts:
                yield from held_by(part, ablated, shape)
        case Above():
            kinds = {Above.HEADS: [Basis.ATTN_HEAD], Above.MLPS: [Basis.MLP_OUT]}
            for kind in kinds.get(hold, [Basis.ATTN_HEAD, Basis.MLP_OUT]):
                for layer in layers_above(ablated, kind, shape.layers):
                    yield from held_by(HeldLayer(kind, layer), ablated, shape)


def parse_hold(text: str) -> Hold:
    """The hold that prints so. Raises `UsageError` on another text."""
    if text in list(Above):
        return Above(text)
    parts = tuple(map(_part, text.split("+")))
    return parts[0] if len(parts) == 1 else Together(parts)


def _part(text: str) -> Neuron | HeldLayer:
    whole = _WHOLE.fullmatch(text)
    if whole is None:
        return Neuron.parse(text)
    return HeldLayer(Basis.ATTN_HEAD if whole[1] == "a" else Basis.MLP_OUT, int(whole[2]))


def layers_above(unit: Neuron, kind: Basis, layers: int) -> range:
    """Layers whose heads, or whose MLP, may read what a unit writes.

    A head's own layer counts with its MLP; where the two run in parallel that MLP does not read the head, and
    holding it changes nothing.
    """
    return range(unit.layer + (kind is not Basis.MLP_OUT or unit.basis is not Basis.ATTN_HEAD), layers)


def nothing_above(unit: Neuron, layers: int) -> bool:
    """Whether no head and no MLP of a model of so many layers may read what a unit writes."""
    return unit.basis is not Basis.ATTN_HEAD and unit.layer == layers - 1


def is_above(unit: Neuron, other: Neuron) -> bool:
    """Whether `other` may read what `unit` writes: it stands in a later layer, or later in the same block."""
    order = _WITHIN_BLOCK.index
    return (other.layer, order(other.basis)) > (unit.layer, order(unit.basis))
