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
    "+": ("it is an addition", "it is no addition"),
    "-": ("it is a subtraction", "it is no subtraction"),
    "*": ("it is a multiplication", "it is no multiplication"),
    "/": ("it is a division", "it is no division"),
}


_NOUNS = {
    "min(a, b)": "the smaller operand",
    "max(a, b)": "the larger operand",
    "abs(a - b)": "the distance between a and b",
    "gcd(a, b)": "the greatest common divisor of a and b",
}


def _sentences() -> Iterator[tuple[str, Said]]:
    """Conditions that have a sentence of their own."""
    yield "a == b", ("a equals b", "a differs from b")
    yield "a != b", ("a differs from b", "a equals b")
    yield "a % 2 == b % 2", ("a and b are both even or both odd", "one of a and b is even, the other odd")
    yield "a % 2 != b % 2", ("one of a and b is even, the other odd", "a and b are both even or both odd")
    yield (
        "n_digits(a) == n_digits(b)",
        ("a and b have equally many digits", "a and b differ in number of digits"),
    )
    yield (
        "n_digits(a) != n_digits(b)",
        ("a and b differ in number of digits", "a and b have equally many digits"),
    )
    yield "carry(a, b)", ("adding b to a carries", "adding b to a does not carry")
    less = "the smaller from the larger"
    yield "borrow(a, b)", (f"taking {less} borrows", f"taking {less} does not borrow")
    for place in range(LANGUAGE_PLACES):
        above = place_name(place + 1)
        yield (
            f"carry_at(a, b, {place})",
            (
                f"adding b to a carries into the {above}",
                f"adding b to a does not carry into the {above}",
            ),
        )
        yield (
            f"borrow_at(a, b, {place})",
            (
                f"taking {less} borrows from the {above}",
                f"taking {less} does not borrow from the {above}",
            ),
        )


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
    questions = len(operators) * (high - low + 1) ** 2
    least, most = zip(*(_result_range(op, low, high) for op in operators), strict=True)
    first = max(low, 1) if operators == ("/",) else low
    ranges = {"a": (first, high), "b": (first, high), "expected": (min(least), max(most))}
    if questions > ENUMERATED:
        return Domain(ranges=ranges)
    return Domain(
        whole=_every_question(operators, low, high), ranges=ranges, plainer=tuple(_plainer(operators, high))
    )


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
        grids.append((np.full(len(a), op), a, b, *_results(op, a, b)))
    names = ("op", "a", "b", "expected", "remainder")
    return dict(zip(names, map(np.concatenate, zip(*grids, strict=True)), strict=True))


def _results(op: str, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(integer result, remainder) of each question."""
    if op == "/":
        return a // b, a % b
    whole: np.ndarray = {"+": a + b, "-": a - b, "*": a * b}[op]
    return whole, np.zeros_like(a)


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
