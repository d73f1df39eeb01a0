"""What arithmetic rules may read, and in which words: seeds, a larger vocabulary, columns, every question.

The seeds are hand-written (paper, §4.1); the larger vocabulary may tell one unit's flips apart.
Places count from 0, the units. The larger vocabulary never reads the answer: on the records of one regime it says what
`expected` says, or restates the label. A carry into place k is the carry out of place k − 1, so it is named once.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from mecharule_ops.tasks.column_words import WORDS, Domain

ASKED = ("op", "a", "b", "expected", "remainder")
"""The columns of a question: what it asks, and what `result` makes of that."""
_LARGEST_MODULUS = 9
"""Beside 10, which the units digit tells."""
_CUTS = (1, 2, 5)
"""Leading digits of round numbers."""
ENUMERATED = 400_000
"""Questions at most that are laid out to see what is the same on all of them."""

CONDITIONS: Mapping[str, str] = {
    word: condition for condition, words in WORDS["conditions"].items() for word in words
}
"""Conditions on a record by what people call them."""


def seed_predicates(operators: Sequence[str], low: int, high: int) -> tuple[str, ...]:
    """Distinct predicate texts over op, a, b, expected, remainder, answer and parsed, in a fixed order."""
    places, numbers = len(str(high)), ("a", "b", "expected")
    largest = _largest(max(operators, key="/-+*".index), high)
    texts = [
        *_operators(operators),
        *(f"{x} >= {cut}" for cut in _quarters(low, high) for x in ("a", "b", "min(a, b)", "max(a, b)")),
        *("a in (0, 1)", "b in (0, 1)"),
        *(f"divisible({x}, {k})" for x in numbers for k in (2, 3, 5, 10)),
        *("a % 2 == b % 2", "gcd(a, b) > 1", "remainder == 0"),
    ]
    for x in numbers:
        texts.append(f"digit({x}, 0) >= 5")
        texts += [f"n_digits({x}) >= {count}" for count in range(2, places + 2)]
    texts += [
        *("digit(a, 0) == digit(b, 0)", "n_digits(a) == n_digits(b)", "digit_sum(a) > digit_sum(b)"),
        *_carries(operators, places),
        *(
            f"{least} <= expected < {above}"
            for least, above in pairwise((0, *_quarters(0, largest), largest + 1))
        ),
        *(["expected < 0"] if "-" in operators else []),
        *("a > b", "a == b", "a >= 2 * b", "b >= 2 * a", "abs(a - b) < 10"),
        # Of the output alone: what compares it with the true result would restate the label.
        *("parsed", "answer < 0", "divisible(answer, 2)", "n_digits(answer) >= 2", "n_digits(answer) >= 3"),
    ]
    return tuple(dict.fromkeys(texts))


def account_predicates(operators: Sequence[str], high: int) -> tuple[str, ...]:
    """Distinct predicate texts over op, a, b and expected, in a fixed order.

    Of remainders only divisibility: others would be many more columns to overfit by.
    """
    largest = max(_largest(operator, high) for operator in operators)
    places = {"a": len(str(high)), "b": len(str(high)), "expected": len(str(largest))}
    texts = [
        *_operators(operators),
        *_sizes(operators, high, largest),
        *("a == b", "a > b", "a >= b", "a >= 2 * b", "b >= 2 * a"),
        *("n_digits(a) == n_digits(b)", "gcd(a, b) > 1", "a % 2 == b % 2"),
    ]
    for name, count in places.items():
        for place in range(count):
            texts += [f"digit({name}, {place}) == {digit}" for digit in range(10)]
            texts += [f"digit({name}, {place}) >= {digit}" for digit in (3, 5, 7)]
        texts += [f"n_digits({name}) == {length}" for length in range(1, count + 1)]
    slots = [(name, place) for name, count in places.items() for place in range(count)]
    for (left, i), (right, j) in combinations(slots, 2):
        texts.append(f"digit({left}, {i}) == digit({right}, {j})")
        texts += [f"digit({left}, {i}) > digit({right}, {j})"] if i == j else []
    # Where a carry from below would run on, and where a column carries by itself.
    for place in range(places["a"]):
        texts += [f"digit(a, {place}) + digit(b, {place}) {bound}" for bound in ("== 9", "== 10", ">= 10")]
    texts += _carries(operators, places["a"])
    texts += [f"divisible({x}, {by})" for x in places for by in range(2, _LARGEST_MODULUS + 1)]
    return tuple(dict.fromkeys(texts))


def _quarters(low: int, high: int) -> tuple[int, ...]:
    """The three inner cuts of a range into quarters."""
    return tuple(low + (high - low + 1) * part // 4 for part in (1, 2, 3))


def _operators(operators: Sequence[str]) -> list[str]:
    return [f"op == '{op}'" for op in operators] if len(operators) > 1 else []


def _round_numbers(below: int) -> set[int]:
    """5, 10, 20, 50, 100, … below a number, and every multiple of its own power of ten."""
    power = 10 ** len(str(below - 1)) if below > 1 else 1
    leading = {lead * 10**place for place in range(len(str(below))) for lead in _CUTS}
    return {cut for cut in leading if 5 <= cut < below} | {*range(power // 10, below, max(5, power // 10))}


def _sizes(operators: Sequence[str], high: int, largest: int) -> Iterator[str]:
    """Operands, result and distance against round numbers; the result's sign and number of digits as one band."""
    for name in ("a", "b", "min(a, b)", "max(a, b)", "abs(a - b)"):
        yield from (f"{name} >= {cut}" for cut in sorted(_round_numbers(high)))
    yield from (f"expected >= {cut}" for cut in sorted({0, *_round_numbers(largest)}))
    for least, above in pairwise([0, *(10**place for place in range(1, len(str(largest)) + 1))]):
        yield f"{least} <= expected < {above}"
        if "-" in operators:
            yield f"{-above} < expected <= {-least}" if least else f"{-above} < expected < 0"


def _carries(operators: Sequence[str], places: int) -> Iterator[str]:
    for op, function in (("+", "carry"), ("-", "borrow")):
        if op in operators:
            tests = [f"{function}(a, b)", *(f"{function}_at(a, b, {place})" for place in range(places))]
            yield from (test if len(operators) == 1 else f"holds(op == '{op}' and {test})" for test in tests)


def result(op: str, a: Any, b: Any) -> tuple[Any, Any]:
    """(integer result, remainder) of numbers or arrays: for division the quotient's integer part and a mod b."""
    if op == "/":
        return divmod(a, b)
    return {"+": a + b, "-": a - b, "*": a * b}[op], 0 * a


@lru_cache(maxsize=4)
def arithmetic_domain(operators: tuple[str, ...], low: int, high: int) -> Domain:
    """All questions; nothing where they are too many."""
    if len(operators) * (high - low + 1) ** 2 > ENUMERATED:
        return Domain()
    grids = []
    for op in operators:
        side = np.arange(max(low, 1) if op == "/" else low, high + 1, dtype=np.int64)
        a, b = np.repeat(side, len(side)), np.tile(side, len(side))
        grids.append((np.full(len(a), op), a, b, *result(op, a, b)))
    return Domain.of(dict(zip(ASKED, map(np.concatenate, zip(*grids, strict=True)), strict=True)))


def _largest(op: str, high: int) -> int:
    """Largest result of one operator, of operands up to this."""
    return {"+": 2 * high, "*": high * high}.get(op, high)
