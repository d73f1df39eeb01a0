"""The types of a table's columns, guessed from all their values: truth values, integers, numbers or text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress

from mecharule_ops.tasks.text import CATEGORIES
from mecharule_ops.tasks.text_account import is_free
from mecharule_ops.types import Value

_TRUTHS = {"true": True, "false": False, "yes": True, "no": False}
_EXACT: tuple[Callable[[str], float], ...] = (int, float)
_BEYOND = 2**63
"""A whole number of 64 bits is smaller; another is a text, since no column holds it as it stands."""


def typed(values: Sequence[Value]) -> list[Value]:
    """The column in the narrowest type that writes every value as it stands: `007` stays a text, and so does `3.50`."""
    if all(isinstance(value, bool) for value in values):
        return list(values)
    for kind in _EXACT:
        with suppress(ValueError):
            read = [kind(str(value)) for value in values]
            limit = _BEYOND if kind is int else math.inf
            if all(
                str(one) == str(value) and abs(one) < limit for one, value in zip(read, values, strict=True)
            ):
                return list(read)
    return [str(value) for value in values]


def freely_typed(values: Sequence[Value]) -> list[Value]:
    """The same for a column that no prompt shows: `3.50` is a number, and `true`, `False`, `yes` are truth values."""
    exact = typed(values)
    if not all(isinstance(value, str) for value in exact):
        return exact
    words = [str(value).strip().lower() for value in values]
    if set(words) <= _TRUTHS.keys():
        return [_TRUTHS[word] for word in words]
    with suppress(ValueError):
        numbers = [float(word) for word in words]
        if all(map(math.isfinite, numbers)) and not any(_is_name(word) for word in words):
            return list(numbers)
    return exact


def _is_name(word: str) -> bool:
    """Digits that begin with 0, or that 64 bits do not hold, name something: a postal code, the number of a form."""
    digits = word.lstrip("+-")
    long = digits.isdecimal() and int(digits) >= _BEYOND
    return long or (digits[:1] == "0" and digits[1:2].isdigit())


def kind_of(values: Sequence[Value]) -> str:
    """What a column holds, in a word: `bool`, `int`, `float`, `category` (a text of few values) or `text`."""
    if not isinstance(values[0], str):
        return type(values[0]).__name__
    return "text" if is_free(values, CATEGORIES) else "category"
