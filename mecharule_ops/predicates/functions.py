"""The functions of the predicate language: one table that drives parser, evaluator and documentation.

Integers are below 2⁵³ in magnitude (`language` guarantees it), so that no operation here can
wrap and every integer is exact as a float. Digit places count from 0, the units. Arrow is imported where a pattern is
matched: a question about a stored run seldom has one.
"""

import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

PLACES = 16
"""Decimal places of the largest integer of the language."""
_POWERS = 10 ** np.arange(PLACES + 1, dtype=np.int64)
_NOT_A_SPACE = r"[^ \t\n\r\f\v]+"


class Kind(StrEnum):
    """What a function takes at one place; the value is the phrase that an error shows."""

    NUMBER = "a number"
    INTEGER = "an integer"
    BOOLEAN = "a condition"
    TEXT = "a text column"
    LITERAL = "a non-empty quoted text"
    PATTERN = "a quoted RE2 pattern"
    PLACE = "a digit place from 0 (units) to 15"


@dataclass(frozen=True, slots=True)
class Function:
    """One row of the table."""

    signature: str
    """As a person writes the call."""
    parameters: tuple[Kind, ...]
    result: type | None
    """Type of the value; None for the widest type of the numeric arguments."""
    doc: str
    """One line for people and for prompts."""
    apply: Callable[..., np.ndarray]
    """One-dimensional arrays in (a constant has one element), array out."""
    undefined: Callable[..., np.ndarray] | None = None
    """Rows on which the call has no value; a predicate is false there."""


def _by_arrow(function: str, texts: np.ndarray, pattern: str) -> np.ndarray:
    """What Arrow finds of a pattern in each text; a lone surrogate, which UTF-8 cannot hold, is `?` to it."""
    import pyarrow
    import pyarrow.compute

    encoded = pyarrow.array([text.encode("utf-8", "replace") for text in texts.tolist()], pyarrow.binary())
    found = getattr(pyarrow.compute, function)(encoded.cast(pyarrow.string()), pattern=pattern)
    return found.to_numpy(zero_copy_only=False)


def _count_pattern(values: np.ndarray, pattern: str) -> np.ndarray:
    return _by_arrow("count_substring_regex", values, pattern).astype(np.int64)


def matches_pattern(values: np.ndarray, pattern: str) -> np.ndarray:
    """Whether RE2 finds `pattern` anywhere in each text. Raises `ValueError` (Arrow's own) on a bad pattern."""
    return _by_arrow("match_substring_regex", values, pattern).astype(bool)


def _upper_ratio(values: np.ndarray) -> np.ndarray:
    return _count_pattern(values, r"\p{Lu}") / np.maximum(_count_pattern(values, r"\p{L}"), 1)


def words_of(text: str) -> list[str]:
    """The words of a text in small letters without punctuation around them."""
    stripped = (word.strip(string.punctuation + "“”‘’…").lower() for word in text.split())
    return [word for word in stripped if word]


def _end_word(place: int) -> Callable[[np.ndarray], np.ndarray]:
    """The word of each text that begins or ends it; empty where there is none."""

    def end_word(texts: np.ndarray) -> np.ndarray:
        return np.array([words[place] if (words := words_of(text)) else "" for text in texts.tolist()])

    return end_word


def _has_word(texts: np.ndarray, word: np.ndarray) -> np.ndarray:
    wanted = words_of(str(word.item()))
    first = wanted[0] if wanted else ""
    # Most texts do not hold its letters at all, and need not be taken apart.
    return np.array(
        [first in text.lower() and _stands_in(wanted, words_of(text)) for text in texts.tolist()], bool
    )


def _has_phrase(texts: np.ndarray, phrases: np.ndarray) -> np.ndarray:
    pairs = zip(texts.tolist(), phrases.tolist(), strict=True)
    return np.array([_stands_in(words_of(phrase), words_of(text)) for text, phrase in pairs], bool)


def _stands_in(phrase: list[str], words: list[str]) -> bool:
    """Whether the words of a phrase stand side by side; an empty one does nowhere."""
    starts = range(len(words) - len(phrase) + 1) if phrase else range(0)
    return any(words[start : start + len(phrase)] == phrase for start in starts)


def _overlap(texts: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Share of the distinct words of the other text that the text has; 0 without words."""
    pairs = ((set(words_of(text)), set(words_of(other))) for text, other in zip(texts, others, strict=True))
    return np.array([len(own & wanted) / len(wanted) if wanted else 0.0 for own, wanted in pairs])


def _digit(x: np.ndarray, place: np.ndarray) -> np.ndarray:
    return np.abs(x) // _POWERS[place] % 10


def _n_digits(x: np.ndarray) -> np.ndarray:
    return np.searchsorted(_POWERS[1:], np.abs(x), side="right") + 1


def _digit_sum(x: np.ndarray) -> np.ndarray:
    return sum((_digit(x, np.array([place])) for place in range(PLACES)), np.zeros(1, np.int64))


def _carry_at(a: np.ndarray, b: np.ndarray, place: np.ndarray) -> np.ndarray:
    above = _POWERS[place + 1]
    return np.abs(a) % above + np.abs(b) % above >= above


def _borrow_at(a: np.ndarray, b: np.ndarray, place: np.ndarray) -> np.ndarray:
    above = _POWERS[place + 1]
    large, small = np.maximum(np.abs(a), np.abs(b)), np.minimum(np.abs(a), np.abs(b))
    return large % above < small % above


def _at_any_place(at: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """The same test at any of the places that its arguments use."""

    def any_place(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        places = len(str(np.maximum(np.abs(a), np.abs(b)).max(initial=0)))
        return np.logical_or.reduce([at(a, b, np.array([place])) for place in range(places)])

    return any_place


def _smaller(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(y < x, y, x)


def _larger(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(y > x, y, x)


_I, _N, _T, _L, _K = Kind.INTEGER, Kind.NUMBER, Kind.TEXT, Kind.LITERAL, Kind.PLACE


_TABLE = (
    Function("digit(x, k)", (_I, _K), int, "digit of |x| at place k, 0 = units", _digit),
    Function("n_digits(x)", (_I,), int, "how many decimal digits |x| has; 1 for 0", _n_digits),
    Function("digit_sum(x)", (_I,), int, "sum of the decimal digits of |x|", _digit_sum),
    Function("carry(a, b)", (_I, _I), bool, "|a| + |b| carries somewhere", _at_any_place(_carry_at)),
    Function("carry_at(a, b, k)", (_I, _I, _K), bool, "|a| + |b| carries out of place k", _carry_at),
    Function(
        "borrow(a, b)", (_I, _I), bool, "larger minus smaller of |a|, |b| borrows", _at_any_place(_borrow_at)
    ),
    Function(
        "borrow_at(a, b, k)",
        (_I, _I, _K),
        bool,
        "larger minus smaller of |a|, |b| borrows into place k",
        _borrow_at,
    ),
    Function(
        "divisible(x, k)",
        (_I, _I),
        bool,
        "k divides x; false when k is 0",
        lambda x, k: x % np.where(k == 0, 1, k) == 0,
        lambda x, k: k == 0,
    ),
    Function("gcd(a, b)", (_I, _I), int, "greatest common divisor, at least 0", np.gcd),
    Function("abs(x)", (_N,), None, "magnitude", np.abs),
    Function("min(x, y)", (_N, _N), None, "the smaller", _smaller),
    Function("max(x, y)", (_N, _N), None, "the larger", _larger),
    Function("length(s)", (_T,), int, "characters", np.strings.str_len),
    Function("words(s)", (_T,), int, "runs without white space", lambda s: _count_pattern(s, _NOT_A_SPACE)),
    Function("contains(s, 'x')", (_T, _L), bool, "x occurs in s", lambda s, x: np.strings.find(s, x) >= 0),
    Function("startswith(s, 'x')", (_T, _L), bool, "s begins with x", np.strings.startswith),
    Function("endswith(s, 'x')", (_T, _L), bool, "s ends with x", np.strings.endswith),
    Function("count(s, 'x')", (_T, _L), int, "times x occurs in s without overlap", np.strings.count),
    Function(
        "upper_ratio(s)", (_T,), float, "share of letters in upper case; 0 without letters", _upper_ratio
    ),
    Function("has_word(s, 'x')", (_T, _L), bool, "x is one of the words of s, whole, in any case", _has_word),
    Function("first_word(s)", (_T,), str, "first word of s in small letters", _end_word(0)),
    Function("last_word(s)", (_T,), str, "last word of s in small letters", _end_word(-1)),
    Function("has_phrase(s, t)", (_T, _T), bool, "the words of t stand side by side in s", _has_phrase),
    Function("overlap(s, t)", (_T, _T), float, "share of the distinct words of t that s has", _overlap),
    Function(
        "matches(s, 'x')",
        (_T, Kind.PATTERN),
        bool,
        "RE2 finds the pattern x in s",
        lambda s, x: matches_pattern(s, x.item()),
    ),
    Function("holds(p)", (Kind.BOOLEAN,), bool, "p itself; wraps and, or, not", lambda p: p),
)
FUNCTIONS: Mapping[str, Function] = {row.signature.partition("(")[0]: row for row in _TABLE}
