"""Random units to stand beside a unit: drawn from all others, whatever a search made of them.

A control that leaves out what was found is chosen by the outcome: where all units are alike it still flips less than
the strongest of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import islice

from mecharule_ops.subsets import some_of
from mecharule_ops.types import Basis, Neuron


def random_units(
    basis: Basis,
    layers: Sequence[int],
    width: int,
    most: int | None = None,
    *,
    but: Collection[Neuron] = (),
    of: str = "control",
    seed: int,
) -> tuple[Neuron, ...]:
    """`most` units, at most, drawn uniformly without replacement from the `width` units of each of some layers.

    `but` are the units that they stand beside; nothing is left out for what it flips. All draws of one purpose `of`
    follow one order: a prefix is a smaller draw, and two units that each leave out themselves share nearly all of it.
    Draws of two layers are independent: the layer is in the key.
    """
    drawn = (Neuron(basis, *divmod(place, width)) for place in _drawn(tuple(layers), width, of, seed))
    return tuple(islice((unit for unit in drawn if unit not in but), most))


@lru_cache(maxsize=8)
def _drawn(layers: tuple[int, ...], width: int, of: str, seed: int) -> tuple[int, ...]:
    """Every layer · width + channel of the layers, in drawn order; kept, since each controlled unit asks for it."""
    places = [layer * width + channel for layer in layers for channel in range(width)]
    return tuple(places[index] for index in some_of(places, of=of, seed=seed).tolist())
