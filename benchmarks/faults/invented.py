"""Texts invented by hypothesis, a family of them from each draw: near what is valid, and far from it."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

from forgeries import leaves, put
from hypothesis import strategies as st

from mecharule_ops.predicates.functions import FUNCTIONS

PLACES = 12
"""Places at which a drawn value stands in turn."""
_WORDS = [
    "a",
    "b",
    "x",
    "op",
    "ok",
    "0",
    "1",
    "7",
    "-3",
    "1e9",
    "10**12",
    "0.5",
    "'+'",
    "''",
    "'a'",
    "True",
    "None",
]
_HOSTILE = [
    "__import__('os').system('touch /tmp/x')",
    "().__class__.__bases__[0].__subclasses__()",
    "lambda: 1",
    "[c for c in 'ab']",
    "f'{a}'",
    "(a := 1)",
    "open('/etc/passwd')",
    "a.__class__",
    "a[0]",
    "9**9**9**9",
    "'x' * 10**10",
    "matches(op, '(a+)+$')",
    "matches(op, '(((((((((a{1,100}){1,100}){1,100})')",
    "a if ok else b",
    "await a",
    "*a",
    "...",
    "\x00",
    "\ud800",
    "a\\\n",
    "(" * 90,
    "-" * 400 + "a",
    "not " * 100 + "ok",
    "1e999 < a",
    "a < " * 60 + "a",
    "١ < a",
    "ａ > 1",
]
_OPERATORS = [
    f" {sign} "
    for sign in ["+", "-", "*", "/", "//", "%", "<", "<=", "==", "!=", "and", "or", "in", "is", "**"]
]
_CALLS = [*FUNCTIONS, "eval", "exec", "getattr", "print", "len"]
_ATOM = st.sampled_from([*_WORDS * 3, *_HOSTILE])
EXPRESSIONS = st.recursive(
    _ATOM,
    lambda inner: st.one_of(
        st.builds(lambda left, op, right: f"({left}{op}{right})", inner, st.sampled_from(_OPERATORS), inner),
        st.builds(
            lambda name, args: f"{name}({', '.join(args)})",
            st.sampled_from(_CALLS),
            st.lists(inner, max_size=3),
        ),
        st.builds(lambda one: f"not ({one})", inner),
        st.builds(
            lambda one, several: f"{one} in ({', '.join(several)},)", inner, st.lists(inner, max_size=4)
        ),
    ),
    max_leaves=8,
)
_NUMBER = st.recursive(
    st.sampled_from(
        ["a", "b", "a", "b", "x", "0", "1", "7", "-3", "10", "0.5", "10**12", "1000000000000", "length(op)"]
    ),
    lambda inner: st.one_of(
        st.builds(
            lambda left, op, right: f"({left} {op} {right})",
            inner,
            st.sampled_from(["+", "-", "*", "/", "//", "%"]),
            inner,
        ),
        st.builds(
            lambda name, one: f"{name}({one})", st.sampled_from(["abs", "n_digits", "digit_sum"]), inner
        ),
        st.builds(
            lambda name, one, two: f"{name}({one}, {two})",
            st.sampled_from(["min", "max", "gcd"]),
            inner,
            inner,
        ),
        st.builds(lambda one, place: f"digit({one}, {place})", inner, st.integers(-1, 17)),
    ),
    max_leaves=5,
)
_TEXT = st.sampled_from(
    ["''", "'a'", "'+'", "'é'", "'.'", "'(a+)+$'", "'['", "'(?i)A'", "'\\\\d'", "'a{1000}'", "'\\n'"]
)
_CONDITION = st.recursive(
    st.one_of(
        st.builds(
            lambda one, op, two: f"{one} {op} {two}",
            _NUMBER,
            st.sampled_from(["<", "<=", ">", ">=", "==", "!="]),
            _NUMBER,
        ),
        st.builds(
            lambda one, op, two, last: f"{one} {op} {two} < {last}",
            _NUMBER,
            st.sampled_from(["<", "<="]),
            _NUMBER,
            _NUMBER,
        ),
        st.builds(
            lambda one, places: f"{one} in ({', '.join(map(str, places))},)",
            _NUMBER,
            st.lists(st.integers(), min_size=1, max_size=4),
        ),
        st.builds(
            lambda name, text: f"{name}(op, {text})",
            st.sampled_from(["contains", "startswith", "endswith", "matches", "has_word"]),
            _TEXT,
        ),
        st.builds(
            lambda name, one, two: f"{name}({one}, {two})",
            st.sampled_from(["carry", "borrow", "divisible", "divides"]),
            _NUMBER,
            _NUMBER,
        ),
        st.just("ok"),
    ),
    lambda inner: st.one_of(
        st.builds(lambda one, op, two: f"({one} {op} {two})", inner, st.sampled_from(["and", "or"]), inner),
        st.builds(lambda one: f"not ({one})", inner),
        st.builds(lambda one: f"holds({one})", inner),
    ),
    max_leaves=4,
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["", "nan", "auto", "../..", "a\nb", "1e400", -1, 10**30]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=5,
)


def predicates() -> st.SearchStrategy[list[str]]:
    """Conditions and expressions, alone and every two of them joined."""
    return st.lists(st.one_of(_CONDITION, _CONDITION, EXPRESSIONS), min_size=1, max_size=5).map(_joined)


def json_near(document: Any) -> st.SearchStrategy[list[str]]:
    """JSON texts near a valid one: drawn values at a row of places each, and the same with characters changed."""
    places = [path for path in leaves(document) if path]

    def family(start: int, values: list[Any], cuts: list[tuple[int, str]]) -> list[str]:
        texts = []
        for step, value in enumerate(values):
            for place in range(start + step, start + step + PLACES):
                texts.append(json.dumps(put(document, places[place % len(places)], value)))
        return texts + [_cut(text, *cut) for text, cut in zip(texts, cuts * len(texts), strict=False)]

    ends = st.sampled_from(['"', "}", "[", "[" * 3000, ",", ""])
    cuts = st.lists(st.tuples(st.integers(0, 100_000), ends), max_size=4)
    return st.builds(family, st.integers(0, 10_000), st.lists(VALUES, min_size=1, max_size=4), cuts)


def csv_tables() -> st.SearchStrategy[list[str]]:
    """Tables with a header or none, cells of other kinds, quotes that do not close."""
    odd = ["a", "b", '"', "1", "-2.5", "nan", "", " ", "\x00", "\ufeff", "'", "1e999", "٣"]
    cells = st.lists(st.one_of(st.sampled_from(odd), st.text(max_size=5)), max_size=4)
    line = st.one_of(st.sampled_from(["a", "a,b", "a,a", "b", ""]), cells.map(",".join))
    return st.lists(line, min_size=1, max_size=5).map(_tables)


def jsonl_tables() -> st.SearchStrategy[list[str]]:
    """Lines of objects, some with other keys, some no objects."""
    item = st.dictionaries(st.sampled_from(["a", "b", ""]), SCALARS, max_size=3).map(json.dumps)
    line = st.one_of(item, item, item, st.just("[" * 3000), VALUES.map(json.dumps))
    return st.lists(line, min_size=1, max_size=5).map(_tables)


def _cut(text: str, place: int, instead: str) -> str:
    at = place % (len(text) + 1)
    return text[:at] + instead + text[at + 1 :]


def _joined(parts: list[str]) -> list[str]:
    ways = ("({}) and ({})", "({}) or ({})", "not ({0}) and {1}", "({}) == ({})", "({}) < ({})")
    return parts + [way.format(one, two) for one, two in permutations(parts, 2) for way in ways]


def _tables(lines: list[str]) -> list[str]:
    """Every order of one, two and three of the lines."""
    orders = (*permutations(lines, 1), *permutations(lines, 2), *permutations(lines, 3))
    return ["\n".join(order) for order in orders]
