"""What arithmetic rules may read: hand-written seeds (paper, §4.1), and more that may tell one unit's flips apart.

Places count from 0, the units. The larger vocabulary never reads the answer: on the records of one regime it says what
`expected` says, or restates the label. A carry into place k is the carry out of place k − 1, so it is named once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

_LARGEST_MODULUS = 9
"""Beside 10, which the units digit tells."""
_CUTS = (1, 2, 5)
"""Leading digits of round numbers."""


def seed_predicates(operators: Sequence[str], low: int, high: int) -> tuple[str, ...]:
    """Distinct predicate texts over op, a, b, expected, remainder, answer and parsed, in a fixed order."""
    places = len(str(high))
    families = (
        _operators(operators),
        _operand_ranges(low, high),
        _parity_and_divisibility(),
        _seed_digits(places),
        _carries(operators, places),
        _results(operators, high),
        _magnitudes(),
        _outputs(),
    )
    return tuple(dict.fromkeys(text for family in families for text in family))


def account_predicates(operators: Sequence[str], high: int) -> tuple[str, ...]:
    """Distinct predicate texts over op, a, b and expected, in a fixed order."""
    largest = max(_largest_result(operator, high) for operator in operators)
    places = {"a": len(str(high)), "b": len(str(high)), "expected": len(str(largest))}
    families = (
        _operators(operators),
        _sizes(operators, high, largest),
        _comparisons(),
        *(_digits(name, count) for name, count in places.items()),
        _equal_digits(places),
        _column_sums(len(str(high))),
        _carries(operators, len(str(high))),
        _remainders(),
    )
    return tuple(dict.fromkeys(text for family in families for text in family))


def _quarters(low: int, high: int) -> tuple[int, ...]:
    """The three inner cuts of a range into quarters."""
    return tuple(low + (high - low + 1) * part // 4 for part in (1, 2, 3))


def _operand_ranges(low: int, high: int) -> Iterator[str]:
    for cut in _quarters(low, high):
        yield from (f"{operand} >= {cut}" for operand in ("a", "b", "min(a, b)", "max(a, b)"))
    yield from (f"{operand} in (0, 1)" for operand in ("a", "b"))


def _parity_and_divisibility() -> Iterator[str]:
    for operand in ("a", "b", "expected"):
        yield from (f"divisible({operand}, {k})" for k in (2, 3, 5, 10))
    yield "a % 2 == b % 2"
    yield "gcd(a, b) > 1"
    yield "remainder == 0"


def _seed_digits(places: int) -> Iterator[str]:
    for operand in ("a", "b", "expected"):
        yield f"digit({operand}, 0) >= 5"
        yield from (f"n_digits({operand}) >= {count}" for count in range(2, places + 2))
    yield "digit(a, 0) == digit(b, 0)"
    yield "n_digits(a) == n_digits(b)"
    yield "digit_sum(a) > digit_sum(b)"


def _results(operators: Sequence[str], high: int) -> Iterator[str]:
    """Half-open bands of the result, fitted to the widest operator of the task."""
    largest = high * high if "*" in operators else 2 * high if "+" in operators else high
    cuts = (0, *_quarters(0, largest), largest + 1)
    yield from (f"{cuts[part]} <= expected < {cuts[part + 1]}" for part in range(4))
    if "-" in operators:
        yield "expected < 0"


def _magnitudes() -> Iterator[str]:
    yield from ("a > b", "a == b", "a >= 2 * b", "b >= 2 * a", "abs(a - b) < 10")


def _outputs() -> Iterator[str]:
    """Predicates of the output alone; one that compares it with the true result would restate the label."""
    yield from (
        "parsed",
        "answer < 0",
        "divisible(answer, 2)",
        "n_digits(answer) >= 2",
        "n_digits(answer) >= 3",
    )


def _largest_result(operator: str, high: int) -> int:
    return {"+": 2 * high, "*": high * high}.get(operator, high)


def _operators(operators: Sequence[str]) -> Iterator[str]:
    if len(operators) > 1:
        yield from (f"op == '{op}'" for op in operators)


def _round_numbers(below: int) -> Iterator[int]:
    """5, 10, 20, 50, 100, … below a number, and every multiple of its own power of ten."""
    power = 1
    while power < below:
        yield from (lead * power for lead in _CUTS if 5 <= lead * power < below)
        power *= 10
    yield from range(power // 10, below, max(5, power // 10))


def _sizes(operators: Sequence[str], high: int, largest: int) -> Iterator[str]:
    """Operands, result and distance against round numbers; the result's sign and number of digits as one band."""
    for name in ("a", "b", "min(a, b)", "max(a, b)", "abs(a - b)"):
        yield from (f"{name} >= {cut}" for cut in sorted({*_round_numbers(high)}))
    yield from (f"expected >= {cut}" for cut in sorted({0, *_round_numbers(largest)}))
    bounds = [0, *(10**place for place in range(1, len(str(largest)) + 1))]
    for least, above in pairwise(bounds):
        yield f"{least} <= expected < {above}"
        if "-" in operators:
            yield f"{-above} < expected <= {-least}" if least else f"{-above} < expected < 0"


def _comparisons() -> Iterator[str]:
    yield from ("a == b", "a > b", "a >= b", "a >= 2 * b", "b >= 2 * a")
    yield from ("n_digits(a) == n_digits(b)", "gcd(a, b) > 1", "a % 2 == b % 2")


def _digits(name: str, places: int) -> Iterator[str]:
    """Each digit at each place with the others left open, and halves of the digits."""
    for place in range(places):
        yield from (f"digit({name}, {place}) == {digit}" for digit in range(10))
        yield from (f"digit({name}, {place}) >= {digit}" for digit in (3, 5, 7))
    yield from (f"n_digits({name}) == {count}" for count in range(1, places + 1))


def _equal_digits(places: dict[str, int]) -> Iterator[str]:
    """Any two digits of a, b and expected that are equal, and which is larger where they stand in one column."""
    slots = [(name, place) for name, count in places.items() for place in range(count)]
    for (left, i), (right, j) in combinations(slots, 2):
        yield f"digit({left}, {i}) == digit({right}, {j})"
        if i == j:
            yield f"digit({left}, {i}) > digit({right}, {j})"


def _column_sums(places: int) -> Iterator[str]:
    """Where a carry from below would run on, and where a column carries by itself."""
    for place in range(places):
        column = f"digit(a, {place}) + digit(b, {place})"
        yield from (f"{column} == 9", f"{column} == 10", f"{column} >= 10")


def _carries(operators: Sequence[str], places: int) -> Iterator[str]:
    for op, function in (("+", "carry"), ("-", "borrow")):
        if op not in operators:
            continue
        tests = [f"{function}(a, b)", *(f"{function}_at(a, b, {place})" for place in range(places))]
        yield from (test if len(operators) == 1 else f"holds(op == '{op}' and {test})" for test in tests)


def _remainders() -> Iterator[str]:
    """Divisibility of operands and result.

    No other remainders: they would be many more columns to overfit by.
    """
    for name in ("a", "b", "expected"):
        yield from (f"divisible({name}, {modulus})" for modulus in range(2, _LARGEST_MODULUS + 1))
