"""A term within bounds, or at a value, as a sentence: `a's tens digit is 5 or more`, `the premise has 3 to 7 words`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mecharule_ops.tasks.terms import WordedTerm


@dataclass(frozen=True, slots=True)
class Phrase:
    """A sentence, and whether it says what is rather than what is not."""

    text: str
    positive: bool = True


@dataclass(frozen=True, slots=True)
class Bound:
    """One end: the number, and whether it belongs to what is meant."""

    at: float
    closed: bool


def between(term: WordedTerm, low: Bound | None, high: Bound | None) -> Phrase:
    """The term within one or two bounds; whole numbers by the last one that is meant where both ends are given."""
    if term.whole:
        least, most = _least(low), _most(high)
        if (exact := _of_whole(term, least, most)) is not None:
            return exact
        if least is not None and most is not None:
            return Phrase(f"{term.subject} {_within(term, least, most)}")
    said = [*([] if low is None else [_low(term, low)]), *([] if high is None else [_high(term, high)])]
    return Phrase(f"{term.subject} {' and '.join(said)}")


def outside(term: WordedTerm, low: Bound, high: Bound) -> Phrase | None:
    """That a term of whole numbers is not between two bounds; None for any other."""
    least, most = _least(low), _most(high)
    if not term.whole or least is None or most is None or term.verb != "is":
        return None
    if least == most:
        return unequal(term, str(least))
    return Phrase(f"{term.subject} is not from {least} to {most}", positive=False)


def equal(term: WordedTerm, value: str) -> Phrase:
    """`a's tens digit is 5`; also of several values, already joined."""
    return Phrase(f"{term.subject} {term.verb} {term.counted(value)}")


def unequal(term: WordedTerm, value: str) -> Phrase:
    """`a's tens digit is not 5`."""
    return Phrase(f"{term.subject} {term.negated} {term.counted(value)}", positive=False)


def alternatives(values: Sequence[object]) -> str:
    """`1, 2 or 6`."""
    *first, last = map(repr, values)
    return f"{', '.join(first)} or {last}" if first else last


def tightest(low: Sequence[Bound], high: Sequence[Bound]) -> tuple[Bound | None, Bound | None]:
    """The ends that hold where all do."""
    return (
        max(low, key=lambda one: (one.at, not one.closed), default=None),
        min(high, key=lambda one: (one.at, one.closed), default=None),
    )


def _least(low: Bound | None) -> int | None:
    """The least whole number that is meant."""
    if low is None:
        return None
    return math.ceil(low.at) if low.closed or low.at % 1 else int(low.at) + 1


def _most(high: Bound | None) -> int | None:
    if high is None:
        return None
    return math.floor(high.at) if high.closed or high.at % 1 else int(high.at) - 1


def _of_whole(term: WordedTerm, least: int | None, most: int | None) -> Phrase | None:
    """One value, or all but one end of what is possible, or a sign; None where none of these is meant."""
    first, last = term.span
    low = first if least is None or (first is not None and least <= first) else least
    high = last if most is None or (last is not None and most >= last) else most
    if low is not None and low == high:
        return equal(term, str(low))
    if most is None and least is not None and first is not None and least == first + 1:
        return unequal(term, str(first))
    if least is None and most is not None and last is not None and most == last - 1:
        return unequal(term, str(last))
    if term.verb == "is" and (first is None or first < 0):
        if (least, most) == (0, None):
            return Phrase(f"{term.subject} is not negative", positive=False)
        if (least, most) == (None, -1):
            return Phrase(f"{term.subject} is negative")
    return None


def _within(term: WordedTerm, least: int, most: int) -> str:
    if term.verb == "is":
        return f"is from {least} to {most}"
    if term.unit:
        return f"has {least} to {most} {term.unit}"
    return f"{term.verb} at least {least} and at most {most}"


def _low(term: WordedTerm, low: Bound) -> str:
    number = _number(low.at)
    if low.closed:
        return f"{term.verb} {term.counted(number)} or more"
    return f"is above {number}" if term.verb == "is" else f"{term.verb} more than {term.counted(number)}"


def _high(term: WordedTerm, high: Bound) -> str:
    number = _number(high.at)
    if high.closed:
        return f"{term.verb} {term.counted(number)} or {'fewer' if term.unit else 'less'}"
    if term.verb == "is":
        return f"is below {number}"
    return f"{term.verb} {'fewer' if term.unit else 'less'} than {term.counted(number)}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
