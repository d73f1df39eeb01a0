"""Reads rules in words back, as a person would: each phrase is a predicate in plain Python on one record.

Nothing of the product is used: digits are characters of a number's text, words are what white space parts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
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
_KINDS = {"an addition": "+", "a subtraction": "-", "a multiplication": "*", "a division": "/"}


def digit_of(number: int, place: int) -> int:
    """The digit at a place counted from the units; 0 where the number is shorter."""
    text = str(abs(number))[::-1]
    return int(text[place]) if place < len(text) else 0


def plain_words(text: str) -> list[str]:
    """Words in small letters, without what stands around them."""
    return [word for one in text.split() if (word := one.strip(_STRIP).lower())]


class ReadBack:
    """Reads sentences over the nouns of one task. Raises `ValueError` on a sentence that it cannot read."""

    def __init__(self, nouns: Nouns) -> None:
        self.nouns = nouns

    def rule(self, text: str) -> Holds:
        """A whole rule: clauses with `, or ` between them."""
        if text.startswith("always: "):
            return lambda record: True
        if text.startswith("never: "):
            return lambda record: False
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
        """What a noun stands for; None where it is none."""
        if noun in self.nouns:
            return self.nouns[noun]
        if match := re.fullmatch(r"(.+)'s (\w+) digit", noun):
            of, place = self.value(match[1]), _PLACES.index(match[2])
            return of and (lambda record: digit_of(of(record), place))
        if match := re.fullmatch(r"(.+)'s digit sum", noun):
            of = self.value(match[1])
            return of and (lambda record: sum(map(int, str(abs(of(record))))))
        if match := re.fullmatch(r"(.+)'s (first|last) word", noun):
            of, place = self.value(match[1]), 0 if match[2] == "first" else -1
            return of and (lambda record: (plain_words(of(record)) or [""])[place])
        if match := re.fullmatch(r"the size of (.+)", noun):
            of = self.value(match[1])
            return of and (lambda record: abs(of(record)))
        if match := re.fullmatch(r"twice (.+)", noun):
            of = self.value(match[1])
            return of and (lambda record: 2 * of(record))
        if match := re.fullmatch(r"(.+) modulo (\d+)", noun):
            of, by = self.value(match[1]), int(match[2])
            return of and (lambda record: of(record) % by)
        return None

    def sentence(self, text: str) -> Holds | None:
        """One sentence; None where it is none."""
        if match := re.fullmatch(r"not \((.+)\)", text):
            inner = self.clause(match[1])
            return lambda record: not inner(record)
        for read in (self._of_operands, self._of_texts, self._counted, self._summed, self._related, self._is):
            if (holds := read(text)) is not None:
                return holds
        return None

    def _of_operands(self, text: str) -> Holds | None:
        """Sentences that arithmetic has for itself."""
        if match := re.fullmatch(
            r"it is (no )?(?:an? )?(addition|subtraction|multiplication|division)", text
        ):
            op = next(sign for name, sign in _KINDS.items() if name.endswith(match[2]))
            return lambda record: (record["op"] == op) == (match[1] is None)
        if match := re.fullmatch(
            r"adding (.+) to (?:the size of )?([ab]) (carries|does not carry)(?: into the (\w+))?", text
        ):
            of = self.value(match[1])
            return of and (
                lambda record: _carries(record[match[2]], of(record), match[4]) == (match[3] == "carries")
            )
        less = r"taking the smaller(?: of ([ab]) and (.+))? from the larger"
        if match := re.fullmatch(rf"{less} (borrows|does not borrow)(?: from the (\w+))?", text):
            one, other = self.value(match[1] or "a"), self.value(match[2] or "b")
            if one is None or other is None:
                return None
            return lambda record: _borrows(one(record), other(record), match[4]) == (match[3] == "borrows")
        sides: dict[str, Holds] = {
            "a and b are both even or both odd": lambda r: r["a"] % 2 == r["b"] % 2,
            "one of a and b is even, the other odd": lambda r: {r["a"] % 2, r["b"] % 2} == {0, 1},
            "a and b have equally many digits": lambda r: len(str(r["a"])) == len(str(r["b"])),
            "a and b differ in number of digits": lambda r: len(str(r["a"])) != len(str(r["b"])),
        }
        return sides.get(text)

    def _of_texts(self, text: str) -> Holds | None:
        """Sentences about texts and conditions of a table."""
        if (match := re.fullmatch(r"(.+) is (true|false)", text)) and (of := self.value(match[1])):
            return lambda record: bool(of(record)) == (match[2] == "true")
        if match := re.fullmatch(r"(.+) (contains|does not contain) '([^']*)'", text):
            of = self.value(match[1])
            return of and (lambda record: (match[3] in of(record)) == (match[2] == "contains"))
        if match := re.fullmatch(r"(.+) (begins|does not begin) with '([^']*)'", text):
            of = self.value(match[1])
            return of and (lambda record: of(record).startswith(match[3]) == (match[2] == "begins"))
        if match := re.fullmatch(r"(.+) (has|does not have) the word '([^']*)'", text):
            of = self.value(match[1])
            return of and (lambda record: (match[3] in plain_words(of(record))) == (match[2] == "has"))
        if match := re.fullmatch(r"(.+) has (a|no) negation", text):
            of = self.value(match[1])
            return of and (
                lambda record: bool({"not", "no", "never"} & {*plain_words(of(record))}) == (match[2] == "a")
            )
        if match := re.fullmatch(r"(.+) (has|does not have) every word of (.+)", text):
            of, other = self.value(match[1]), self.value(match[3])
            if of is None or other is None:
                return None
            return lambda record: _all_in(other(record), of(record)) == (match[2] == "has")
        return None

    def _counted(self, text: str) -> Holds | None:
        """What has so many digits, words or characters."""
        match = re.fullmatch(
            r"(.+) (has|does not have) (.+?) (digit|word|character)s?( or more| or fewer)?", text
        )
        if match is None or (of := self.value(match[1])) is None:
            return None
        count = {"digit": lambda x: len(str(abs(x))), "word": lambda x: len(x.split()), "character": len}[
            match[4]
        ]
        amount = f"{match[3]}{match[5] or ''}".replace("fewer", "less")
        within = _within(f"from {amount}" if " to " in amount else amount)
        return within and (lambda record: within(count(of(record))) == (match[2] == "has"))

    def _summed(self, text: str) -> Holds | None:
        """Digits of one place that add up to something."""
        match = re.fullmatch(r"the (\w+) digits of a and b (do not )?add up to (.+)", text)
        if match is None:
            return None
        place = _PLACES.index(match[1])
        within = _within(match[3])
        return within and (
            lambda record: (
                within(digit_of(record["a"], place) + digit_of(record["b"], place)) == (match[2] is None)
            )
        )

    def _related(self, text: str) -> Holds | None:
        """One thing beside another."""
        words = (
            "equals|differs from|exceeds|is at least|is below|is at most|is divisible by|is not divisible by"
        )
        match = re.fullmatch(rf"(.+?) ({words}) (.+)", text)
        if match is None:
            return None
        left, right = self.value(match[1]), self.value(match[3])
        if right is None and re.fullmatch(NUMBER, match[3]):
            number = int(match[3]) if match[3].lstrip("-").isdecimal() else float(match[3])
            right = lambda record: number  # noqa: E731
        if left is None or right is None:
            return None
        relation: Callable[[Any, Any], bool] = {
            "equals": lambda x, y: x == y,
            "differs from": lambda x, y: x != y,
            "exceeds": lambda x, y: x > y,
            "is at least": lambda x, y: x >= y,
            "is below": lambda x, y: x < y,
            "is at most": lambda x, y: x <= y,
            "is divisible by": lambda x, y: y != 0 and x % y == 0,
            "is not divisible by": lambda x, y: y == 0 or x % y != 0,
        }[match[2]]
        return lambda record: relation(left(record), right(record))

    def _is(self, text: str) -> Holds | None:
        """That something is a value, one of several, or within bounds."""
        match = re.fullmatch(r"(.+?) is (not )?(.+)", text)
        if match is None or (of := self.value(match[1])) is None:
            return None
        within = _within(match[3])
        return within and (lambda record: within(of(record)) == (match[2] is None))


def _within(text: str) -> Callable[[Any], bool] | None:
    """`even`, `5 or more`, `from 1 to 4`, `1, 2 or 6`, `'yes'`, `below 3`."""
    simple: dict[str, Callable[[Any], bool]] = {
        "even": lambda x: x % 2 == 0,
        "odd": lambda x: x % 2 == 1,
        "negative": lambda x: x < 0,
    }
    if text in simple:
        return simple[text]
    if match := re.fullmatch(rf"(?:from|at least) ({NUMBER}) (?:to|and at most) ({NUMBER})", text):
        low, high = float(match[1]), float(match[2])
        return lambda x: low <= x <= high
    forms: tuple[tuple[str, Callable[[Any, float], bool]], ...] = (
        (rf"({NUMBER}) or more", lambda x, bound: x >= bound),
        (rf"({NUMBER}) or less", lambda x, bound: x <= bound),
        (rf"(?:below|less than) ({NUMBER})", lambda x, bound: x < bound),
        (rf"(?:above|more than) ({NUMBER})", lambda x, bound: x > bound),
    )
    for form, relation in forms:
        if match := re.fullmatch(form, text):
            bound = float(match[1])
            return lambda x, relation=relation, bound=bound: relation(x, bound)
    values = re.split(r", | or ", text)
    if all(re.fullmatch(NUMBER, value) for value in values):
        return lambda x: x in {float(value) for value in values}
    if all(re.fullmatch(r"'[^']*'", value) for value in values):
        return lambda x: x in {value[1:-1] for value in values}
    return None


def _carries(a: int, b: int, into: str | None) -> bool:
    """By hand, column by column: whether a carry reaches the place, or any."""
    carry, reached = 0, []
    for place in range(8):
        carry = (digit_of(a, place) + digit_of(b, place) + carry) // 10
        reached.append(carry)
    return any(reached) if into is None else bool(reached[_PLACES.index(into) - 1])


def _borrows(one: int, other: int, above: str | None) -> bool:
    """Likewise, of the smaller taken from the larger."""
    small, large = sorted([one, other])
    owed, reached = 0, []
    for place in range(8):
        owed = int(digit_of(large, place) - digit_of(small, place) - owed < 0)
        reached.append(owed)
    return any(reached) if above is None else bool(reached[_PLACES.index(above) - 1])


def _all_in(wanted: str, text: str) -> bool:
    """Whether a text has every word of another, which has some."""
    return bool(plain_words(wanted)) and set(plain_words(wanted)) <= set(plain_words(text))
