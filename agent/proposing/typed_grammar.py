"""A regular expression that every predicate over given columns fits: what a model in a file is held to.

It is the language without its rarer forms, typed: a number is compared with numbers, a category with values that it
has. A text that fits parses, so that a weak model's proposals fail by what they say and not by how it is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np

from mecharule_ops.types import Columns

_CATEGORIES = 12
"""A text column with at most this many values, none of them long, is compared with them."""
_LONGEST_VALUE = 12
_JOINED = 2
"""Further conditions of a predicate."""


def predicate_pattern(columns: Columns, schema: Mapping[str, type], prompt_columns: frozenset[str]) -> str:
    """The expression, anchored at both ends, over the columns that are known before the answer."""
    named = {name: kind for name, kind in schema.items() if name in prompt_columns} or dict(schema)
    forms = list(_forms(columns, named))
    condition = f"({'|'.join(forms)})"
    return f"^{condition}( (and|or) {condition}){{0,{_JOINED}}}$"


def _forms(columns: Columns, schema: Mapping[str, type]) -> Iterator[str]:
    integers = [name for name, kind in schema.items() if kind is int]
    numbers = [*integers, *(name for name, kind in schema.items() if kind is float)]
    if numbers:
        yield f"{_one(numbers)} (>=|<=|<|>) {_number(columns, numbers)}"
    if integers:
        one = _one(integers)
        yield f"{one} (==|!=) {_number(columns, integers)}"
        yield rf"{one} % (2|3|4|5|10) == [0-4]"
        yield rf"digit\({one}, [0-2]\) (>=|<|==) [0-9]"
        yield rf"divisible\({one}, ([2-9]|10)\)"
    if len(integers) > 1:
        one = _one(integers)
        yield f"{one} (<|==|>) {one}"
        yield rf"(carry|borrow)\({one}, {one}\)"
        yield rf"(carry|borrow)_at\({one}, {one}, [0-2]\)"
    texts = [name for name, kind in schema.items() if kind is str and name != "prompt"]
    if len(texts) > 1:
        yield f"{_one(texts)} (==|!=) {_one(texts)}"
    for name, kind in schema.items():
        if kind is bool:
            yield name
        elif kind is str:
            yield _text(name, columns[name])


def _text(name: str, values: np.ndarray) -> str:
    distinct = [str(value) for value in np.unique(values)]
    plain = [value for value in distinct if len(value) <= _LONGEST_VALUE and not set(value) & set("'\\\n")]
    if len(distinct) <= _CATEGORIES and len(plain) == len(distinct):
        return f"{name} == '{_one([re.escape(value) for value in distinct])}'"
    return rf"contains\({name}, '[A-Za-z0-9]{{1,{_LONGEST_VALUE}}}'\)"


def _number(columns: Columns, names: list[str]) -> str:
    """A whole number of as many digits as the columns' values have, with a sign where one is negative."""
    values = [columns[name][np.isfinite(columns[name])] for name in names]
    largest = max((float(np.abs(each).max(initial=0)) for each in values), default=0.0)
    sign = "-?" if any((each < 0).any() for each in values) else ""
    more = min(len(str(int(largest))), 6) - 1
    return f"{sign}(0|[1-9][0-9]{{0,{more}}})"


def _one(choices: list[str]) -> str:
    return f"({'|'.join(choices)})"
