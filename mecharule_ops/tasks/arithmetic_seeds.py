"""Hand-written arithmetic predicates, family by family (paper, §4.1: operators, operand ranges, …)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def seed_predicates(operators: Sequence[str], low: int, high: int) -> tuple[str, ...]:
    """Distinct predicate texts over op, a, b, expected, remainder, answer and parsed, in a fixed order."""
    places = len(str(high))
    families = (
        _operators(operators),
        _operand_ranges(low, high),
        _parity_and_divisibility(),
        _digits(places),
        _carries_and_borrows(operators, places),
        _results(operators, high),
        _magnitudes(),
        _outputs(),
    )
    return tuple(dict.fromkeys(text for family in families for text in family))


def _operators(operators: Sequence[str]) -> Iterator[str]:
    if len(operators) > 1:
        yield from (f"op == '{op}'" for op in operators)


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


def _digits(places: int) -> Iterator[str]:
    for operand in ("a", "b", "expected"):
        yield f"digit({operand}, 0) >= 5"
        yield from (f"n_digits({operand}) >= {count}" for count in range(2, places + 2))
    yield "digit(a, 0) == digit(b, 0)"
    yield "n_digits(a) == n_digits(b)"
    yield "digit_sum(a) > digit_sum(b)"


def _carries_and_borrows(operators: Sequence[str], places: int) -> Iterator[str]:
    for op, function in (("+", "carry"), ("-", "borrow")):
        if op not in operators:
            continue
        tests = [f"{function}(a, b)", *(f"{function}_at(a, b, {place})" for place in range(places))]
        yield from (test if len(operators) == 1 else f"holds(op == '{op}' and {test})" for test in tests)


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
