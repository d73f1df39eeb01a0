"""Some of the records, or of the units: a hashed draw, so that the order in which they come is never a sample.

A task that is read whole comes in the order of its grid or file, often sorted by what matters. A draw depends on the
seed, its purpose and the records' ids alone: not on their order, the processor, or which other draws were made.

Random units stand beside a unit: drawn from all others, whatever a search made of them. A control that leaves out
what was found is chosen by the outcome: where all units are alike it still flips less than the strongest of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Sequence, Set
from functools import lru_cache
from itertools import islice

import numpy as np
from jaxtyping import Int, UInt64

from mecharule_ops.types import Basis, BehaviourRecord, Example, Neuron


def some_of(
    identifiers: Sequence[int], most: int | None = None, *, of: str, seed: int = 0
) -> Int[np.ndarray, " drawn"]:
    """Positions of `most` of the records, at most, or of all; `of` names the purpose, each draws for itself.

    They come by ascending key, so every prefix of a draw is the draw of fewer, and what follows a prefix is a
    disjoint one. `identifiers` are distinct; the ids drawn are the same in every order of the records. The purpose
    "record" is that of the held-out split.

    >>> some_of([7, 8, 9, 10], 2, of="example").tolist(), some_of([10, 9, 8, 7], 2, of="example").tolist()
    ([0, 3], [3, 0])
    """
    order = np.argsort(hashed(seed, of, identifiers), kind="stable")
    return order if most is None else order[:most]


def some_records(
    records: Sequence[BehaviourRecord], most: int | None = None, *, of: str, seed: int = 0
) -> list[BehaviourRecord]:
    """Such a draw of the records themselves."""
    drawn = some_of([record.example.id for record in records], most, of=of, seed=seed)
    return [records[place] for place in drawn]


def some_places(
    records: Sequence[BehaviourRecord],
    among: Int[np.ndarray, " place"],
    most: int | None = None,
    *,
    of: str,
    seed: int = 0,
) -> Int[np.ndarray, " drawn"]:
    """Such a draw of places, `among` those of some records."""
    return among[some_of([records[place].example.id for place in among], most, of=of, seed=seed)]


def unseen(
    draw: Callable[[int, np.random.Generator], Sequence[Example]],
    known: Set[int],
    wanted: int,
    *,
    of: str,
    seed: int,
    salt: int,
) -> list[Example]:
    """`wanted` of a task's examples, at most, whose ids are not `known`, in drawn order."""
    drawn = draw(len(known) + wanted, np.random.default_rng([seed, salt]))
    fresh = [example for example in drawn if example.id not in known]
    return [fresh[place] for place in some_of([example.id for example in fresh], wanted, of=of, seed=seed)]


def hashed(seed: int, of: str, identifiers: Iterable[int]) -> UInt64[np.ndarray, " identifier"]:
    """A number for each identifier that looks random and is the same on every machine."""
    digests = (
        hashlib.blake2b(f"{seed} {of} {identifier}".encode(), digest_size=8).digest()
        for identifier in identifiers
    )
    return np.array([int.from_bytes(digest) for digest in digests], dtype=np.uint64)


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
