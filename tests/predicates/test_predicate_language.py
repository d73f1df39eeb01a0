"""The predicate language against Python itself, row by row, and against hostile text."""

import ast
import math
import re
import unicodedata

import numpy as np
import pytest

from mecharule_ops.predicates.functions import FUNCTIONS
from mecharule_ops.predicates.language import evaluate, parse_predicate, schema_of, vocabulary
from mecharule_ops.predicates.type_check import PredicateRefused

SCHEMA = {"a": int, "b": int, "x": float, "op": str, "s": str, "ok": bool}


def _digits(x):
    return [int(character) for character in str(abs(x))[::-1]]


def _padded(x, count):
    return (_digits(x) + [0] * 20)[:count]


def _carries(a, b):
    """Places that carry, by schoolbook addition."""
    carry, places = 0, set()
    for place, (p, q) in enumerate(zip(_padded(a, 20), _padded(b, 20), strict=True)):
        carry = int(p + q + carry >= 10)
        places |= {place} if carry else set()
    return places


def _borrows(a, b):
    """Places that borrow, by schoolbook subtraction of the smaller magnitude from the larger."""
    borrow, places = 0, set()
    large, small = max(abs(a), abs(b)), min(abs(a), abs(b))
    for place, (p, q) in enumerate(zip(_padded(large, 20), _padded(small, 20), strict=True)):
        borrow = int(p - borrow < q)
        places |= {place} if borrow else set()
    return places


def _upper_ratio(s):
    letters = [character for character in s if unicodedata.category(character).startswith("L")]
    return sum(unicodedata.category(character) == "Lu" for character in letters) / max(len(letters), 1)


def _words(s):
    return [part for part in [re.sub(r"^[^\w\s]+|[^\w\s]+$", "", part).lower() for part in s.split()] if part]


NAIVE = {
    "digit": lambda x, k: _padded(x, 20)[k],
    "n_digits": lambda x: len(_digits(x)),
    "digit_sum": lambda x: sum(_digits(x)),
    "carry": lambda a, b: bool(_carries(a, b)),
    "carry_at": lambda a, b, k: k in _carries(a, b),
    "borrow": lambda a, b: bool(_borrows(a, b)),
    "borrow_at": lambda a, b, k: k in _borrows(a, b),
    "divisible": lambda x, k: x % k == 0,
    "gcd": math.gcd,
    "abs": abs,
    "min": min,
    "max": max,
    "length": len,
    "words": lambda s: len(re.findall(r"\S+", s, re.ASCII)),
    "contains": lambda s, part: part in s,
    "startswith": str.startswith,
    "endswith": str.endswith,
    "count": str.count,
    "upper_ratio": _upper_ratio,
    "has_word": lambda s, word: word.lower() in _words(s),
    "first_word": lambda s: (_words(s) or [""])[0],
    "last_word": lambda s: (_words(s) or [""])[-1],
    "has_phrase": lambda s, t: bool(_words(t)) and f" {' '.join(_words(t))} " in f" {' '.join(_words(s))} ",
    "overlap": lambda s, t: sum(w in _words(s) for w in set(_words(t))) / max(1, len(set(_words(t)))),
    "matches": lambda s, pattern: re.search(pattern, s) is not None,
    "holds": lambda p: p,
}


def _row_by_row(text, columns):
    """Python's own answer on each row, false where Python stops."""
    answers = []
    code = compile(text, "oracle", "eval")
    for row in zip(*(column.tolist() for column in columns.values()), strict=True):
        try:
            answers.append(
                bool(eval(code, {"__builtins__": {}, **NAIVE}, dict(zip(columns, row, strict=True))))
            )
        except ZeroDivisionError:
            answers.append(False)
    return np.array(answers)


def _columns(generator, records=40):
    texts = ["", "Hello World", "a?b", "no NO", "Éa b", "x  y\tz", "12 + 5", "aaaa", "\n"]
    return {
        "a": generator.integers(-350, 350, records) * generator.integers(0, 2, records),
        "b": generator.integers(-3, 4, records) ** generator.integers(1, 6, records),
        "x": generator.choice([0.0, -1.5, 0.5, 2.0, 300.25, math.inf, math.nan], records),
        "op": generator.choice(["+", "-", "*"], records),
        "s": generator.choice(texts, records),
        "ok": generator.random(records) < 0.5,
    }


def _integer(g, depth):
    pick = g.integers(9) if depth else g.integers(3)
    if pick < 2:
        return str(g.choice(["a", "b"]))
    if pick == 2:
        return str(g.choice([0, 1, 2, 7, 10, 99, -3]))
    if pick < 6:
        return f"({_integer(g, depth - 1)} {g.choice(['+', '-', '*', '//', '%'])} {_integer(g, depth - 1)})"
    if pick == 6:
        return f"{g.choice(['gcd', 'min', 'max'])}({_integer(g, depth - 1)}, {_integer(g, depth - 1)})"
    if pick == 7:
        return f"{g.choice(['n_digits', 'digit_sum', 'abs', '-'])}({_integer(g, depth - 1)})"
    return str(
        g.choice(
            [f"digit({_integer(g, depth - 1)}, {g.integers(4)})", "length(s)", "words(s)", "count(s, 'a')"]
        )
    )


def _number(g, depth):
    forms = ["x", "x // 2", "x % b", "a / b", "a * 0.5", "upper_ratio(s)", "min(x, a)", "abs(x)"]
    return str(g.choice(forms)) if g.random() < 0.3 else _integer(g, depth)


def _condition(g, depth):
    pick = g.integers(12) if depth else g.integers(7)
    sign = g.choice(["<", "<=", ">", ">=", "==", "!="])
    if pick < 2:
        return f"{_number(g, 2)} {sign} {_number(g, 2)}"
    if pick == 2:
        return f"{_integer(g, 1)} < {_integer(g, 1)} <= {_number(g, 1)}"
    if pick == 3:
        return f"{_integer(g, 1)} {g.choice(['in', 'not in'])} (0, 1, -2, 7)"
    if pick == 4:
        return str(g.choice(["ok", "op == '+'", "op in ('-', '*')", "s != 'aaaa'", "ok == True"]))
    if pick == 5:
        test = g.choice(["carry", "borrow", "divisible"])
        return f"{test}({_integer(g, 1)}, {_integer(g, 1)})"
    if pick == 6:
        at = f"{g.choice(['carry_at', 'borrow_at'])}({_integer(g, 1)}, {_integer(g, 1)}, {g.integers(4)})"
        texts = ["contains(s, 'o')", "startswith(s, 'H')", "endswith(s, 'd')", "matches(s, '[A-Z]+$')"]
        texts += [
            "has_word(s, 'No')",
            "first_word(s) == last_word(s)",
            "has_phrase(s, s)",
            "overlap(op, s) == 0",
        ]
        return str(g.choice([at, *texts]))
    if pick == 7:
        return f"not ({_condition(g, depth - 1)})"
    if pick == 8:
        return f"holds({_condition(g, depth - 1)})"
    return f"({_condition(g, depth - 1)}) {g.choice(['and', 'or'])} ({_condition(g, depth - 1)})"


def test_random_predicates_equal_python_row_by_row_and_print_back():
    """300 random predicates: same truth as Python on every row, canonical form stable and equivalent."""
    generator = np.random.default_rng(7)
    compared = nonconstant = rejected = 0
    with np.errstate(all="ignore"):
        while compared < 300:
            columns = _columns(generator)
            text = _condition(generator, 2)
            try:
                predicate = parse_predicate(text, SCHEMA)
            except PredicateRefused:
                rejected += 1
                continue
            fires = evaluate(predicate, columns)
            assert fires.tolist() == _row_by_row(text, columns).tolist(), text
            assert parse_predicate(str(predicate), SCHEMA) == predicate
            assert _row_by_row(predicate.text, columns).tolist() == fires.tolist()
            compared += 1
            nonconstant += 0 < fires.sum() < len(fires)
    assert nonconstant > 150
    assert rejected < 50


def test_integers_never_wrap():
    """An integer of 2⁵³ or more makes its row false under a comparison and its negation; others are exact."""
    columns = {"a": np.array([3, 2**31, 2**53, -(2**63)]), "b": np.array([1, 2**31, 1, 1])}
    schema = schema_of(columns)
    for text in ("a * a * a * a >= 0", "a * a * a * a < 0", "a * a * a * a >= 0 or b > 0"):
        assert evaluate(parse_predicate(text, schema), columns)[1:].tolist() == [False] * 3
    assert evaluate(parse_predicate("a * a * a * a == 81", schema), columns).tolist() == [True] + [False] * 3
    assert evaluate(parse_predicate("abs(a) >= 0", schema), columns).tolist() == [True, True, False, False]


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("  a>5 ", "a > 5"),
        ("a>5 and b<3", "holds(a > 5 and b < 3)"),
        ("holds(holds(not ok))", "holds(not ok)"),
        ("holds(a > 5)", "a > 5"),
        ("op in ['+', '-']", "op in ('+', '-')"),
        ("op in {'/'}", "op in ('/',)"),
        ("(a > 1) == (holds(ok or b > 1))", "(a > 1) == (ok or b > 1)"),
    ],
)
def test_canonical_form(text, canonical):
    """Logic at the top is wrapped as holds(...), redundant wrapping goes, constants become tuples."""
    predicate = parse_predicate(text, SCHEMA)
    assert str(predicate) == canonical
    assert parse_predicate(canonical, SCHEMA) == predicate
    assert not isinstance(ast.parse(canonical, mode="eval").body, ast.BoolOp | ast.UnaryOp)


def test_reads_names_columns_and_not_functions():
    """`reads` holds columns only, also when a column is called like a function."""
    predicate = parse_predicate("count(s, 'a') > 1 and count > 2", {"s": str, "count": int})
    assert predicate.reads == {"s", "count"}


REFUSED = [
    "", " ", "a", "a +", "a; b", "a = 1", "1 == 1", "True", "'x' == 'x'", "a < 'x'", "ok < True", "a == ok",
    "ok + 1 > 0", "s < 'x'", "s + 'x' == 'y'", "-ok", "not a", "a and b", "'+' in op", "a in (1, b)",
    "a in (1, 'x')", "a in ()", "a in b", "a is b", "a.real > 0", "a.__class__ == 1", "__import__('os')",
    "().__class__.__bases__", "s[0] == 'a'", "s[::-1] == 'a'", "(lambda: a)() > 0",
    "[a for a in (1, 2)] == 1",
    "{a: 1} == 1", "f'{a}' == 'x'", "(c := a) > 1", "a if ok else b", "a ** 2 > 1", "a ** 99999999 > 1",
    "a << 9 > 1", "a & b == 1", "a @ b > 1", "~a > 1", "await a", "(yield a)", "*a", "unknown > 1",
    "foo(a) > 1",
    "eval('1') > 1", "open('x') > 1", "print(a)", "getattr(a, 'b') > 0", "s.upper() == 'X'", "min(a) > 1",
    "min(*s) > 1", "min(a, b, key=a) > 1", "digit(a, -1) > 1", "digit(a, 16) > 1", "digit(a, b) > 1",
    "digit(a, True) > 1", "digit(x, 0) > 1", "gcd(x, a) > 1", "contains(s, '')", "contains(s, op)",
    "contains('abc', 'a')", "contains(s, 5)", "matches(s, '(')", "matches(s, '(?=a)b')", "matches(s, op)",
    "matches(s, '(((a{1000}){1000}){1000})')", "a > 1e999", "a > 10000000000000", "a > 1j", "s == b'x'",
    "a == None", "a == ...", "s == '\\ud800'", "s == '\ud800'", "a > 1\x00", "holds(a)", "holds(ok, ok)",
    "holds(p=ok)", "holds", "len(s) > 1",
]  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_whatever_is_not_listed_is_refused_in_one_line(text):
    """Attributes, subscripts, calls of anything else, wrong types, huge constants: one clear line."""
    with pytest.raises(PredicateRefused, match=r"^predicate refused: expected .+, got .+\Z") as refused:
        parse_predicate(text, SCHEMA)
    assert "\n" not in str(refused.value)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    "text",
    [
        *("a > " + "9" * 480, "a > 0" + " and a > 0" * 100, "-" * 490 + "a > 0"),
        *("(" * 245 + "a" + ")" * 245, "not " * 120 + "ok", "(" * 100000, "a" * 1_000_000),
        *("a in (" + "1," * 200 + ")", "s == '" + "x" * 300 + "'"),
    ],
)
def test_long_and_deep_text_is_refused(text):
    """Length, nesting, node count and constants are bounded; the message stays short."""
    with pytest.raises(PredicateRefused) as refused:
        parse_predicate(text, SCHEMA)
    assert len(str(refused.value)) < 400


def test_columns_that_do_not_fit_are_refused():
    """Evaluation checks the columns again: a missing column or another type is a refusal."""
    predicate = parse_predicate("a > 1", {"a": int})
    with pytest.raises(PredicateRefused, match="a column of b"):
        evaluate(predicate, {"b": np.array([1])})
    with pytest.raises(PredicateRefused, match="comparison"):
        evaluate(predicate, {"a": np.array(["x"])})


def test_no_records_and_lone_surrogates_are_fine():
    """Empty columns give an empty answer; text that UTF-8 cannot hold is still searched."""
    empty = {"a": np.zeros(0, np.int64), "s": np.zeros(0, "U3")}
    for text in ("carry(a, 7)", "matches(s, 'x')", "length(s) > a"):
        assert evaluate(parse_predicate(text, schema_of(empty)), empty).shape == (0,)
    odd = {"s": np.array(["\ud800abc", "xyz"])}
    assert evaluate(parse_predicate("matches(s, 'abc')", schema_of(odd)), odd).tolist() == [True, False]


def test_the_vocabulary_names_every_function():
    """The description for prompts is drawn from the same table as the parser, and so is the oracle."""
    text = vocabulary()
    assert all(
        f"{row.signature}: " in text and row.signature.startswith(name) for name, row in FUNCTIONS.items()
    )
    assert set(NAIVE) == set(FUNCTIONS)
