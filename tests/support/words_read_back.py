"""Reads rules in words back, as a person would: each phrase is a predicate in plain Python on one record.

Nothing of the product is used: digits are characters of a number's text, words are what white space parts. A phrase is
a row of a table; in its pattern `x` and `y` name nouns, `w` a range.
"""

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

Record = Mapping[str, Any]
Nouns = Mapping[str, Callable[[Record], Any]]
"""What each noun of a task stands for."""
Holds = Callable[[Record], bool]
_PLACES = ("units", "tens", "hundreds", "thousands")
_STRIP = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~“”‘’…"
NUMBER = r"-?\d+(?:\.\d+)?"

ARITHMETIC: Nouns = {
    "a": lambda record: record["a"],
    "b": lambda record: record["b"],
    "the right answer": lambda record: record["expected"],
    "the remainder": lambda record: record["remainder"],
    "the smaller of a and b": lambda record: sorted([record["a"], record["b"]])[0],
    "the larger of a and b": lambda record: sorted([record["a"], record["b"]])[1],
    "the distance between a and b": lambda record: abs(record["a"] - record["b"]),
    "the greatest common divisor of a and b": lambda record: math.gcd(record["a"], record["b"]),
    "the smaller of b and the right answer": lambda record: min(record["b"], record["expected"]),
    "a plus b": lambda record: record["a"] + record["b"],
}
_KINDS = {"addition": "+", "subtraction": "-", "multiplication": "*", "division": "/"}


def digit_of(number: int, place: int) -> int:
    """The digit at a place counted from the units; 0 where the number is shorter."""
    text = str(abs(number))[::-1]
    return int(text[place]) if place < len(text) else 0


def plain_words(text: str) -> list[str]:
    """Words in small letters, without what stands around them."""
    return [word for one in text.split() if (word := one.strip(_STRIP).lower())]


def _reached(a: int, b: int, name: str | None, step: Callable[[int, int, int], int]) -> bool:
    """By hand, column by column: whether what is carried or owed reaches the place, or any."""
    moved, reached = 0, []
    for place in range(8):
        moved = step(digit_of(a, place), digit_of(b, place), moved)
        reached.append(moved)
    return any(reached) if name is None else bool(reached[_PLACES.index(name) - 1])


def _carries(a: int, b: int, into: str | None) -> bool:
    return _reached(a, b, into, lambda one, other, carry: (one + other + carry) // 10)


def _borrows(one: int, other: int, above: str | None) -> bool:
    small, large = sorted([one, other])
    return _reached(large, small, above, lambda upper, lower, owed: int(upper - lower - owed < 0))


_VALUES: tuple[tuple[str, Callable[[re.Match[str], Any], Any]], ...] = (
    (r"(.+)'s (\w+) digit", lambda m, x: digit_of(x, _PLACES.index(m[2]))),
    (r"(.+)'s digit sum", lambda m, x: sum(map(int, str(abs(x))))),
    (r"(.+)'s first word", lambda m, x: (plain_words(x) or [""])[0]),
    (r"(.+)'s last word", lambda m, x: (plain_words(x) or [""])[-1]),
    (r"the size of (.+)", lambda m, x: abs(x)),
    (r"twice (.+)", lambda m, x: 2 * x),
    (r"(.+) modulo (\d+)", lambda m, x: x % int(m[2])),
)
_RANGES: tuple[tuple[str, Callable[..., bool]], ...] = (
    ("even", lambda x: x % 2 == 0),
    ("odd", lambda x: x % 2 == 1),
    ("negative", lambda x: x < 0),
    (rf"(?:from |at least )?({NUMBER}) (?:to|and at most) ({NUMBER})", lambda x, low, high: low <= x <= high),
    (rf"({NUMBER}) or more", operator.ge),
    (rf"({NUMBER}) or (?:less|fewer)", operator.le),
    (rf"(?:below|less than|fewer than) ({NUMBER})", operator.lt),
    (rf"(?:above|more than) ({NUMBER})", operator.gt),
)
_RELATIONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "equals": operator.eq,
    "exceeds": operator.gt,
    "is at least": operator.ge,
    "is below": operator.lt,
    "is at most": operator.le,
    "is divisible by": lambda x, y: y != 0 and x % y == 0,
}
_COUNTS: Mapping[str, Callable[[Any], int]] = {
    "digit": lambda x: len(str(abs(x))),
    "word": lambda x: len(x.split()),
    "character": len,
}
_SENTENCES: tuple[tuple[str, Callable[..., bool]], ...] = (
    (rf"it is an? ({'|'.join(_KINDS)})", lambda r, m: r["op"] == _KINDS[m[1]]),
    (
        r"adding (?P<x>.+) to (?:the size of )?(?P<y>[ab]) carries(?: into the (\w+))?",
        lambda r, m, x, y: _carries(y, x, m[3]),
    ),
    (
        r"taking the smaller from the larger borrows(?: from the (\w+))?",
        lambda r, m: _borrows(r["a"], r["b"], m[1]),
    ),
    (
        r"taking the smaller of (?P<x>[ab]) and (?P<y>.+) from the larger borrows(?: from the (\w+))?",
        lambda r, m, x, y: _borrows(x, y, m[3]),
    ),
    ("a and b are both even or both odd", lambda r, m: r["a"] % 2 == r["b"] % 2),
    ("one of a and b is even, the other odd", lambda r, m: {r["a"] % 2, r["b"] % 2} == {0, 1}),
    ("a and b have equally many digits", lambda r, m: len(str(r["a"])) == len(str(r["b"]))),
    ("a and b differ in number of digits", lambda r, m: len(str(r["a"])) != len(str(r["b"]))),
    ("(?P<x>.+) is true", lambda r, m, x: bool(x)),
    ("(?P<x>.+) contains '([^']*)'", lambda r, m, x: m[2] in x),
    ("(?P<x>.+) begins with '([^']*)'", lambda r, m, x: x.startswith(m[2])),
    ("(?P<x>.+) has the word '([^']*)'", lambda r, m, x: m[2] in plain_words(x)),
    ("(?P<x>.+) has a negation", lambda r, m, x: bool({"not", "no", "never"} & {*plain_words(x)})),
    (
        "(?P<x>.+) has every word of (?P<y>.+)",
        lambda r, m, x, y: bool(plain_words(y)) and {*plain_words(y)} <= {*plain_words(x)},
    ),
    ("(?P<x>.+) has (?P<w>.+) (digit|word|character)s?", lambda r, m, x, w: w(_COUNTS[m[3]](x))),
    (
        r"the (\w+) digits of a and b add up to (?P<w>.+)",
        lambda r, m, w: w(sum(digit_of(r[name], _PLACES.index(m[1])) for name in "ab")),
    ),
    (rf"(?P<x>.+?) ({'|'.join(_RELATIONS)}) (?P<y>.+)", lambda r, m, x, y: _RELATIONS[m[2]](x, y)),
    ("(?P<x>.+?) is (?P<w>.+)", lambda r, m, x, w: w(x)),
)
_OPPOSITES = {
    **{f"does not {verb}": f"{verb}s" for verb in ("contain", "begin")},
    **{"does not carry": "carries", "does not borrow": "borrows", "does not have": "has", "is not ": "is "},
    **{
        "do not add": "add",
        "differs from": "equals",
        " is false": " is true",
        "has no ": "has a ",
        "is no ": "is a ",
    },
}


class ReadBack:
    """Reads sentences over the nouns of one task. Raises `ValueError` on a sentence that it cannot read."""

    def __init__(self, nouns: Nouns) -> None:
        self.nouns = nouns

    def rule(self, text: str) -> Holds:
        """A whole rule: clauses with `, or ` between them."""
        if text.startswith(("always: ", "never: ")):
            return lambda record: text.startswith("always")
        clauses = [self.clause(part) for part in text.split(", or ")]
        return lambda record: any(clause(record) for clause in clauses)

    def clause(self, text: str) -> Holds:
        """Sentences with ` and ` between them; `and` may stand within one too, but there must be one way to read it."""
        ways = list(self._ways(text.split(" and ")))
        if len(ways) != 1:
            raise ValueError(f"{len(ways)} ways to read {text!r}")
        return lambda record: all(holds(record) for holds in ways[0])

    def _ways(self, parts: list[str]) -> Iterator[list[Holds]]:
        if not parts:
            yield []
        for end in range(1, len(parts) + 1):
            holds = self.sentence(" and ".join(parts[:end]))
            if holds is not None:
                yield from ([holds, *rest] for rest in self._ways(parts[end:]))

    def value(self, noun: str) -> Callable[[Record], Any] | None:
        """What a noun or a number stands for; None where it is neither."""
        if noun in self.nouns:
            return self.nouns[noun]
        if re.fullmatch(NUMBER, noun):
            return lambda record: float(noun)
        for pattern, meant in _VALUES:
            if (match := re.fullmatch(pattern, noun)) and (of := self.value(match[1])):
                return lambda record, match=match, meant=meant, of=of: meant(match, of(record))
        return None

    def sentence(self, text: str) -> Holds | None:
        """One sentence; None where it is none."""
        if match := re.fullmatch(r"not \((.+)\)", text):
            inner = self.clause(match[1])
            return lambda record: not inner(record)
        text = re.sub(r" (digit|word|character)s?( or more| or fewer)$", r"\2 \1", text)
        for pattern, holds in _SENTENCES:
            if match := re.fullmatch(pattern, text):
                parts = [
                    _range(part) if name == "w" else self.value(part)
                    for name, part in match.groupdict().items()
                ]
                if None not in parts:
                    return lambda r, match=match, holds=holds, parts=parts: holds(
                        r, match, *(p(r) for p in parts)
                    )
        for said, opposite in _OPPOSITES.items():
            if said in text and (plain := self.sentence(text.replace(said, opposite, 1))):
                return lambda record: not plain(record)
        return None


def _range(text: str) -> Callable[[Record], Callable[[Any], bool]] | None:
    """`even`, `5 or more`, `from 1 to 4`, `1, 2 or 6`, `'yes'`, `below 3`; of any record."""
    for pattern, within in _RANGES:
        if match := re.fullmatch(pattern, text):
            return partial(_between, within, match)
    values = re.split(r", | or ", text)
    if all(re.fullmatch(NUMBER, value) for value in values):
        return lambda record: {float(value) for value in values}.__contains__
    if all(re.fullmatch(r"'[^']*'", value) for value in values):
        return lambda record: {value[1:-1] for value in values}.__contains__
    return None


def _between(within: Callable[..., bool], match: re.Match[str], record: Record) -> Callable[[Any], bool]:
    return lambda x: within(x, *map(float, match.groups()))
