"""The units that a certificate's row names as held, as units of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mecharule_ops.mechanism.mediation import ABOVE, above
from mecharule_ops.types import Neuron

if TYPE_CHECKING:
    from mecharule_ops.loading.model import Subject


def held_units(subject: Subject, ablated: tuple[Neuron, ...], held: str | None) -> tuple[Neuron, ...]:
    """None for no hold; `above` is every head and MLP write above the lowest of the ablated units."""
    if held is None:
        return ()
    if held != ABOVE:
        return tuple(map(Neuron.parse, held.split("+")))
    others = above(
        min(ablated, key=lambda unit: unit.layer), subject.n_layers, subject.n_heads, subject.d_model
    )
    return tuple(unit for unit in others if unit not in ablated)
