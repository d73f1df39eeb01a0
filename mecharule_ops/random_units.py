"""Random units to stand beside a unit: drawn from all others, whatever a search made of them.

A control that leaves out what was found is chosen by the outcome: where all units are alike it still flips less than
the strongest of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

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
    """
    order = (divmod(place, width) for place in some_of(range(width * len(layers)), of=of, seed=seed).tolist())
    drawn = (Neuron(basis, layers[row], channel) for row, channel in order)
    return tuple(unit for unit in drawn if unit not in but)[:most]
