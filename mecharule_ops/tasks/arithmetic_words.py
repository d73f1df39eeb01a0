"""Arithmetic rules in words: its columns and expressions, and every question that there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np

from mecharule_ops.predicates.functions import PLACES as LANGUAGE_PLACES
from mecharule_ops.tasks.column_words import OF_EVERY_TASK, ColumnWords, Domain, Said, Wording
from mecharule_ops.tasks.text_pieces import place_name
from mecharule_ops.types import Columns

ENUMERATED = 200_000
"""Questions at most that are laid out to see what is the same on all of them; of more only the ranges are known."""
_OPERATIONS: Mapping[str, Said] = {
    sign: (f"it is {article} {name}", f"it is no {name}")
    for sign, article, name in (
        *(("+", "an", "addition"), ("-", "a", "subtraction")),
        *(("*", "a", "multiplication"), ("/", "a", "division")),
    )
}
_NOUNS = {
    "min(a, b)": "the smaller operand",
    "max(a, b)": "the larger operand",
    "abs(a - b)": "the distance between a and b",
    "gcd(a, b)": "the greatest common divisor of a and b",
}


_EQUALITIES: Mapping[str, Said] = {
    "a {} b": ("a equals b", "a differs from b"),
    "a % 2 {} b % 2": ("a and b are both even or both odd", "one of a and b is even, the other odd"),
    "n_digits(a) {} n_digits(b)": ("a and b have equally many digits", "a and b differ in number of digits"),
}


def _sentences() -> Iterator[tuple[str, Said]]:
    """Conditions that have a sentence of their own."""
    for text, said in _EQUALITIES.items():
        yield text.format("=="), said
        yield text.format("!="), said[::-1]
    carrying = ("carry", "adding b to a", "carries", "into")
    borrowing = ("borrow", "taking the smaller from the larger", "borrows", "from")
    for name, head, does, to in (carrying, borrowing):
        yield f"{name}(a, b)", (f"{head} {does}", f"{head} does not {name}")
        for place in range(LANGUAGE_PLACES):
            end = f"{to} the {place_name(place + 1)}"
            yield f"{name}_at(a, b, {place})", (f"{head} {does} {end}", f"{head} does not {name} {end}")


ARITHMETIC_WORDS = Wording(
    columns={
        **OF_EVERY_TASK,
        "op": ColumnWords(noun="the operation", values=_OPERATIONS),
        "a": ColumnWords(noun="a", whole=True),
        "b": ColumnWords(noun="b", whole=True),
        "expected": ColumnWords(noun="the right answer", whole=True),
        "remainder": ColumnWords(noun="the remainder", whole=True),
        "answer": ColumnWords(noun="the written answer", whole=True),
        "parsed": ColumnWords(
            noun="the reply", said=("the model writes a number", "the model writes no number")
        ),
    },
    nouns=_NOUNS,
    sentences=dict(_sentences()),
)
"""The words of every arithmetic task; an operation goes by its name, whatever its symbol."""


def arithmetic_domain(operators: Sequence[str], low: int, high: int) -> Domain:
    """All questions where they are not too many, else the ranges of their numbers."""
    return _domain(tuple(operators), low, high)


@lru_cache(maxsize=4)
def _domain(operators: tuple[str, ...], low: int, high: int) -> Domain:
    least, most = zip(*(_result_range(op, low, high) for op in operators), strict=True)
    first = max(low, 1) if operators == ("/",) else low
    ranges = {"a": (first, high), "b": (first, high), "expected": (min(least), max(most))}
    if len(operators) * (high - low + 1) ** 2 > ENUMERATED:
        return Domain(ranges=ranges)
    whole, plainer = _every_question(operators, low, high), tuple(_plainer(operators, high))
    return Domain(whole=whole, ranges=ranges, plainer=plainer)


def _result_range(op: str, low: int, high: int) -> tuple[int, int]:
    """Least and largest result of one operator."""
    first = max(low, 1)
    return {
        "+": (2 * low, 2 * high),
        "-": (low - high, high - low),
        "*": (low * low, high * high),
        "/": (first // high if high else 0, high // first),
    }[op]


def _every_question(operators: Sequence[str], low: int, high: int) -> Columns:
    grids = []
    for op in operators:
        side = np.arange(max(low, 1) if op == "/" else low, high + 1, dtype=np.int64)
        a, b = (grid.ravel() for grid in np.meshgrid(side, side, indexing="ij"))
        results = (
            (a // b, a % b) if op == "/" else ({"+": a + b, "-": a - b, "*": a * b}[op], np.zeros_like(a))
        )
        grids.append((np.full(len(a), op), a, b, *results))
    names = ("op", "a", "b", "expected", "remainder")
    return dict(zip(names, map(np.concatenate, zip(*grids, strict=True)), strict=True))


def _plainer(operators: Sequence[str], high: int) -> Iterator[str]:
    """Conditions on one number or one digit, on which operand is larger, and on carries."""
    for name in ("a", "b"):
        yield from (f"{name} {sign} 0" for sign in ("==", "!="))
    for place in range(len(str(high))):
        for name in ("a", "b"):
            yield from (f"digit({name}, {place}) {sign} 0" for sign in ("==", "!="))
    yield from ("a == b", "a != b", "a > b", "a < b", "a >= b", "a <= b")
    for op, function in (("+", "carry"), ("-", "borrow")):
        if op in operators:
            yield from (f"{function}_at(a, b, {place})" for place in range(len(str(high))))
