"""The naive oracle of what tools state: every number of a sentence is a number of the data beside it."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from mecharule_ops.confidence import lower_bound, upper_bound

_NUMBER = re.compile(
    r"(?<![\w.])[-+−]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)(?:e-?\d+)?(?![a-z])(?: ?%)?"
)
_NO_CLAIM = re.compile(r"`[^`]*`|[01]→[01]|\b[mna]\d+\.\w+|\bh:\w+|… \d+ more|p < \.001")
"""Commands to type, a p too small to print, directions of a flip, names of units, how many examples are not shown."""
_SENTENCES = ("explanation", "parts", "sentence", "claims", "rule_words")
"""Fields that hold sentences themselves: what they say is borne out by other fields."""


_DOWN, _UP = re.compile(r"at least $"), re.compile(r"(?:less than|at most|below) $")


def numbers_in(text: str) -> list[str]:
    """As printed: `28`, `1,840`, `-.25`, `44 %`."""
    return [match[0] for match in _NUMBER.finditer(_NO_CLAIM.sub(" ", text))]


def unborne(sentence: str, known: Collection[float]) -> list[str]:
    """The numbers of a sentence that no known number bears out at the precision printed: rounded to the nearest, a
    bound also away from what it bounds."""
    bare = _NO_CLAIM.sub(" ", sentence)
    missing = []
    for match in _NUMBER.finditer(bare):
        aside = (
            0.5 if _DOWN.search(bare[: match.start()]) else -0.5 if _UP.search(bare[: match.start()]) else 0.0
        )
        if not any(_same(match[0], value) or _same(match[0], value, aside) for value in known):
            missing.append(match[0])
    return missing


def _same(said: str, value: float, aside: float = 0.0) -> bool:
    share = said.endswith("%")
    digits = said.rstrip(" %").replace(",", "").replace("−", "-")
    if "e" in digits:
        return abs(value - float(digits)) <= 0.01 * abs(value)
    step = 10.0 ** -len(digits.partition(".")[2])
    return abs((100 * value if share else value) - float(digits) - aside * step) <= 0.5 * step + 1e-9


def known_numbers(data: Any, *levels: float) -> set[float]:
    """Every number of JSON and of its quoted texts, lengths of its lists, and of each count k of n its share and its
    one-sided bounds at these levels."""
    return set(_values(data, "", levels))


def _values(value: Any, key: str, levels: Sequence[float]) -> Iterator[float]:
    if isinstance(value, bool) or key in _SENTENCES:
        return
    if isinstance(value, int | float):
        yield float(value)
    elif isinstance(value, str):
        for said in numbers_in(value):
            number = float(said.rstrip(" %").replace(",", "").replace("−", "-"))
            yield number / 100 if said.endswith("%") else number
    elif isinstance(value, Mapping):
        for k, n in _counts(value):
            yield from (k / n, n - k, (n - k) / n)
            for level in levels:
                yield from (lower_bound(k, n, level), upper_bound(k, n, level))
        for name, item in value.items():
            yield from _values(item, str(name), levels)
    elif isinstance(value, list | tuple):
        yield float(len(value))
        for item in value:
            yield from _values(item, key, levels)


def _counts(value: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    """Every k of n, also as `associated_flips` of `associated_n`."""
    for name, k in value.items():
        for ending in ("flips", "count"):
            n = value.get(f"{name.removesuffix(ending)}n")
            if name.endswith(ending) and isinstance(k, int) and isinstance(n, int) and n >= k >= 0 and n:
                yield k, n
