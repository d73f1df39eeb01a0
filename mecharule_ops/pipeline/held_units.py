"""The units that a certificate's row names as held, as units of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mecharule_ops.mechanism.mediation import ModelShape, named
from mecharule_ops.types import Neuron

if TYPE_CHECKING:
    from mecharule_ops.loading.model import Subject


def held_units(subject: Subject, ablated: tuple[Neuron, ...], held: str | None) -> tuple[Neuron, ...]:
    """None for no hold; what lies above several ablated units lies above the lowest. Raises `UsageError`."""
    if held is None:
        return ()
    shape = ModelShape(layers=subject.n_layers, heads=subject.n_heads, channels=subject.d_model)
    units = named(held, min(ablated, key=lambda unit: unit.layer), shape)
    return tuple(unit for unit in units if unit not in ablated)
