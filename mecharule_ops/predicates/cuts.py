"""Predicates over columns of numbers and texts, cut where a person would cut: `lead < 1.5`, `runner_up_1 == '7'`.

A cut is the roundest number near a quantile of the train records. Every cut gives both directions, so that a rule
need not negate, and so that a record without a value (NaN) is in neither.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
from jaxtyping import Bool, Int, Shaped

from mecharule_ops.predicates.language import evaluate, parse_predicate, schema_of
from mecharule_ops.predicates.type_check import MAX_CONSTANT, writable
from mecharule_ops.types import Columns

LEVELS = (0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9)
"""Quantiles near which numbers are cut: the quartiles, and what lies between and beside them."""
NEAR = 0.04
"""How far from its quantile a cut may lie, in probability."""
_FAR = 10.0 * MAX_CONSTANT
"""No predicate names a number so far from 0."""
LEAST_SHARE = 0.03
"""A text gives a predicate when at least this share of the train records has it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PredicateColumns:
    """Predicates evaluated on records; no text comes twice."""

    texts: tuple[str, ...]
    matrix: Bool[np.ndarray, "record predicate"]

    def __post_init__(self) -> None:
        assert self.matrix.shape[1] == len(self.texts) == len(set(self.texts)), self.texts

    def at(self, chosen: Shaped[np.ndarray, " _"]) -> "PredicateColumns":
        """The columns at these places, or for each predicate whether it is one of them."""
        texts = tuple(np.array(self.texts, object)[chosen])
        return PredicateColumns(texts=texts, matrix=self.matrix[:, chosen])

    def on(self, records: Shaped[np.ndarray, " _"]) -> "PredicateColumns":
        """The same on some records: their places, or for each record whether it is one of them."""
        return PredicateColumns(texts=self.texts, matrix=self.matrix[records])

    def beside(self, other: "PredicateColumns") -> "PredicateColumns":
        """These columns, then those of the other that are not among them."""
        fresh = [place for place, text in enumerate(other.texts) if text not in self.texts]
        return PredicateColumns(
            texts=(*self.texts, *(other.texts[place] for place in fresh)),
            matrix=np.column_stack([self.matrix, other.matrix[:, fresh]]),
        )


def evaluated(texts: Sequence[str], columns: Columns) -> PredicateColumns:
    """The predicates of these texts on every record, in canonical form. Raises `PredicateRefused`."""
    schema = schema_of(columns)
    found = {predicate.text: predicate for predicate in (parse_predicate(text, schema) for text in texts)}
    records = len(next(iter(columns.values()))) if columns else 0
    fires = [evaluate(predicate, columns) for predicate in found.values()]
    matrix = np.column_stack(fires) if fires else np.zeros((records, 0), bool)
    return PredicateColumns(texts=tuple(found), matrix=matrix)


def column_predicates(columns: Columns, train: Int[np.ndarray, " train"]) -> tuple[str, ...]:
    """Texts of predicates over each column, cut by its train records: numbers, texts and conditions."""
    return tuple(text for name, column in columns.items() for text in _of(name, column[train]))


def round_cuts(values: np.ndarray, levels: Sequence[float] = LEVELS) -> tuple[float, ...]:
    """Distinct round numbers near the quantiles of the values that are there, ascending; none for a constant.

    Where values lie on both sides of 0, it is a cut too. What lies further from 0 than `_FAR` counts as that far.
    """
    there = values[np.isfinite(values)].clip(-_FAR, _FAR)
    if not len(there) or there.min() == there.max():
        return ()
    spans = (np.quantile(there, [max(0.0, at - NEAR), min(1.0, at + NEAR)]) for at in levels)
    zero = {0.0} if there.min() < 0 <= there.max() else set()
    cuts = zero | {roundest(float(low), float(high)) for low, high in spans}
    return tuple(sorted(cuts - {float(there.min())}))


def roundest(low: float, high: float) -> float:
    """The number in [low, high] with the fewest digits, the one nearest to the middle; `low` where they are equal."""
    if low <= 0 <= high:
        return 0.0
    if low == high:
        return low
    for exponent in count(int(np.ceil(np.log10(max(abs(low), abs(high))))), -1):
        for digit in (1.0, 0.5):
            step = digit * 10.0**exponent
            nearest = np.clip(round((low + high) / 2 / step), np.ceil(low / step), np.floor(high / step))
            if low <= nearest * step <= high:
                return float(f"{nearest * step:.{max(0, 1 - exponent)}f}")
    raise AssertionError("a span of positive width holds a decimal")


def _of(name: str, values: np.ndarray) -> Iterator[str]:
    """The predicates of one column."""
    if values.dtype.kind == "b":
        yield name
    elif values.dtype.kind == "U":
        distinct, counts = np.unique(values, return_counts=True)
        for value, seen in zip(distinct.tolist(), counts.tolist(), strict=True):
            if seen >= LEAST_SHARE * len(values) and writable(value):
                yield f"{name} == {value!r}"
    else:
        for cut in filter(writable, round_cuts(values.astype(np.float64))):
            yield from (f"{name} < {_written(cut)}", f"{name} >= {_written(cut)}")


def _written(cut: float) -> str:
    return str(int(cut)) if cut == int(cut) else str(cut)
