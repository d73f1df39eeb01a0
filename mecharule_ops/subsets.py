"""Some of the records or of the units, and which records are held out: hashed draws, so that no order is a sample.

A task that is read whole comes in the order of its grid or file, often sorted by what matters. A draw depends on the
seed, its purpose and the records' ids alone: not on their order, the processor, or which other draws were made.

The held-out records keep the share of every stratum of predicate space and outcome (paper, §4.1). Only whole numbers
decide: counts of records, and keys hashed from the seed and a record's id. So no processor, matrix library, number of
threads or order of the records changes the split, and a record whose outcome does differ elsewhere moves only its own
stratum. No model is called.

Random units stand beside a unit: drawn from all others, whatever a search made of them. A control that leaves out
what was found is chosen by the outcome: where all units are alike it still flips less than the strongest of them.
"""

import hashlib
import math
from collections.abc import Callable, Collection, Iterable, Sequence, Set
from fractions import Fraction
from functools import lru_cache
from itertools import islice

import numpy as np
from jaxtyping import Bool, Int, UInt64

from mecharule_ops.types import Basis, BehaviourRecord, Example, Neuron

STRATA = 8
"""Parts of predicate space, at most."""


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


def held_out(
    matrix: Bool[np.ndarray, "record predicate"],
    target: Bool[np.ndarray, " record"],
    identifiers: Sequence[int],
    *,
    seed: int,
    test_share: float = 0.3,
    strata: int = STRATA,
) -> Bool[np.ndarray, " record"]:
    """Which records are held out, so that both parts share the strata of predicate space and both outcomes.

    Each stratum of an outcome keeps its share to within one record. An outcome of two records or more reaches
    both parts; a single record stays in train. `identifiers` are distinct, one a record.
    """
    assert 0 < test_share < 1, test_share
    share = Fraction(test_share).limit_denominator(10**6)
    stratum = divided(matrix, strata)
    keys = hashed(seed, "record", identifiers)
    held = np.zeros(len(target), dtype=bool)
    for outcome in (False, True):
        held[_draw(np.flatnonzero(target == outcome), stratum, keys, share, f"{seed} {outcome}")] = True
    return held


def divided(matrix: Bool[np.ndarray, "record predicate"], most: int) -> Int[np.ndarray, " record"]:
    """The stratum of each record: at most `most` parts, each cut by whether one predicate fires.

    The next cut is always the one whose smaller side holds most records; the earliest stratum and predicate
    win a tie. Records with the same predicates share a stratum.
    """
    stratum = np.zeros(len(matrix), dtype=np.int64)
    cuts = [_widest_cut(matrix)]
    while len(cuts) < most:
        chosen = max(range(len(cuts)), key=lambda index: (cuts[index][0], -index))
        smaller, predicate = cuts[chosen]
        if smaller == 0:
            break
        stratum[(stratum == chosen) & matrix[:, predicate]] = len(cuts)
        cuts[chosen] = _widest_cut(matrix[stratum == chosen])
        cuts.append(_widest_cut(matrix[stratum == len(cuts)]))
    return stratum


def _widest_cut(matrix: Bool[np.ndarray, "record predicate"]) -> tuple[int, int]:
    """(records on the smaller side, predicate) of the most even cut; none on it when nothing divides them."""
    if matrix.size == 0:
        return 0, 0
    fires = np.count_nonzero(matrix, axis=0)
    smaller = np.minimum(fires, len(matrix) - fires)
    return int(smaller.max()), int(smaller.argmax())


def _draw(
    members: Int[np.ndarray, " member"],
    stratum: Int[np.ndarray, " record"],
    keys: UInt64[np.ndarray, " record"],
    share: Fraction,
    salt: str,
) -> list[int]:
    """The members that are held out: of each stratum those with the lowest keys.

    What the shares leave over after whole records goes to as many strata, a stratum with probability near its
    remainder: sequential Poisson sampling by a fixed number a stratum (Ohlsson 1998), which keeps the draw
    when one stratum changes.
    """
    numbers = np.unique(stratum[members]).tolist()
    cells = [members[stratum[members] == number] for number in numbers]
    wanted = [share * len(cell) for cell in cells]
    counts = [math.floor(part) for part in wanted]
    drawn = min(max(1, round(share * len(members))), max(0, len(members) - 1))
    fixed = hashed(0, salt, numbers).tolist()
    left = [index for index, part in enumerate(wanted) if part > counts[index]]
    left.sort(key=lambda index: (fixed[index] / (wanted[index] - counts[index]), index))
    over = drawn - sum(counts)
    assert 0 <= over <= len(left), (drawn, counts)
    for index in left[:over]:
        counts[index] += 1
    chosen = [
        cell[np.argsort(keys[cell], kind="stable")][:count] for cell, count in zip(cells, counts, strict=True)
    ]
    return [int(position) for part in chosen for position in part]
