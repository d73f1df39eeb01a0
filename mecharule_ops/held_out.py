"""Which records are held out: every stratum of predicate space and outcome keeps its share (paper, §4.1).

Only whole numbers decide: counts of records, and keys hashed from the seed and a record's id. So no processor,
matrix library, number of threads or order of the records changes the split, and a record whose outcome does
differ elsewhere moves only its own stratum. No model is called.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Bool, Int, UInt64

from mecharule_ops.errors import UsageError
from mecharule_ops.subsets import hashed

STRATA = 8
"""Parts of predicate space, at most."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Split:
    """Positions of the records to learn from and of those held out; disjoint, ascending, together all."""

    train: Int[np.ndarray, " train"]
    test: Int[np.ndarray, " test"]


def stratified_split(
    matrix: Bool[np.ndarray, "record predicate"],
    target: Bool[np.ndarray, " record"],
    identifiers: Sequence[int],
    *,
    seed: int,
    test_share: float = 0.3,
    strata: int = STRATA,
) -> Split:
    """Train and test positions that share the strata of predicate space and both outcomes.

    Each stratum of an outcome keeps its share to within one record. An outcome of two records or more reaches
    both splits; a single record stays in train. `identifiers` are distinct, one a record.
    Raises `UsageError` for a share outside (0, 1).
    """
    if not 0 < test_share < 1:
        raise UsageError(f"expected a test share between 0 and 1, got {test_share}; 0.3 is the default")
    share = Fraction(test_share).limit_denominator(10**6)
    stratum = divided(matrix, strata)
    keys = hashed(seed, "record", identifiers)
    held_out = np.zeros(len(target), dtype=bool)
    for outcome in (False, True):
        drawn = _draw(np.flatnonzero(target == outcome), stratum, keys, share, f"{seed} {outcome}")
        held_out[drawn] = True
    return Split(train=np.flatnonzero(~held_out), test=np.flatnonzero(held_out))


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
