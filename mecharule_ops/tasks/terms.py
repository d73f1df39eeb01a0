"""What is compared in a rule, put in words: `digit(a, 1)` is `a's tens digit`, `words(x)` is that x has words."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mecharule_ops.tasks.column_words import Wording, column_words
from mecharule_ops.tasks.text_pieces import place_name

Span = tuple[int | None, int | None]
"""The least and the largest value of a term of whole numbers; None where it is not known."""
_OPEN: Span = (None, None)
Ranges = Mapping[str, tuple[int, int]]
"""Of columns of whole numbers, over all that the task makes possible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WordedTerm:
    """A subject with the verb that joins it to a value: `a's tens digit` *is* 5, `the premise` *has* 5 words."""

    subject: str
    verb: str = "is"
    negated: str = "is not"
    unit: str = ""
    """In the plural; empty where the value stands alone."""
    whole: bool = False
    span: Span = _OPEN

    @property
    def noun(self) -> str:
        """The value itself as a noun."""
        if self.unit:
            return f"the number of {self.unit} of {self.subject}"
        return self.subject if self.verb == "is" else f"the sum of {self.subject}"

    def counted(self, value: str) -> str:
        """A value with its unit: `1 digit`, `2 or 3 digits`."""
        return f"{value} {self.unit.removesuffix('s') if value == '1' else self.unit}" if self.unit else value


def term_of(node: ast.expr, wording: Wording, ranges: Ranges) -> WordedTerm | None:
    """The words of an expression; None where it has none."""
    if (noun := wording.nouns.get(ast.unparse(node))) is not None:
        return WordedTerm(subject=noun, whole=_is_whole(node, wording))
    match node:
        case ast.Name(id=name):
            return _of_column(name, wording, ranges)
        case ast.Call(func=ast.Name(id=name), args=[first, *rest]) if name in _CALLS:
            subject = term_of(first, wording, ranges)
            return None if subject is None else _CALLS[name](subject, rest, wording, ranges)
        case ast.BinOp():
            return _of_arithmetic(node, wording, ranges)
    return None


def owned(noun: str, thing: str) -> str:
    """`a's tens digit`, `the words of the column text`."""
    return f"{thing} of {noun}" if noun.startswith("the column ") else f"{noun}'s {thing}"


def _of_column(name: str, wording: Wording, ranges: Ranges) -> WordedTerm | None:
    words = column_words(wording, name)
    if words is None:
        return None
    span = ranges.get(name, _OPEN)
    if words.unit:
        return _has(words.noun, words.unit, span)
    return WordedTerm(subject=words.noun, whole=words.whole, span=span)


def _is_whole(node: ast.expr, wording: Wording) -> bool:
    """Whether every column below is one of whole numbers and nothing divides."""
    names = [one.id for one in ast.walk(node) if isinstance(one, ast.Name)]
    words = [found for name in names if (found := column_words(wording, name)) is not None]
    return all(one.whole for one in words) and not any(isinstance(one, ast.Div) for one in ast.walk(node))


def _has(subject: str, unit: str, span: Span = (0, None)) -> WordedTerm:
    return WordedTerm(subject=subject, verb="has", negated="does not have", unit=unit, whole=True, span=span)


_Call = Callable[[WordedTerm, list[ast.expr], Wording, Ranges], WordedTerm | None]


def _digit(x: WordedTerm, rest: list[ast.expr], wording: Wording, ranges: Ranges) -> WordedTerm | None:
    place = ast.literal_eval(rest[0])
    return WordedTerm(subject=owned(x.noun, f"{place_name(place)} digit"), whole=True, span=(0, 9))


def _count(x: WordedTerm, rest: list[ast.expr], wording: Wording, ranges: Ranges) -> WordedTerm | None:
    times = f"how often {ast.unparse(rest[0])} occurs in {x.noun}"
    return WordedTerm(subject=times, whole=True, span=(0, None))


def _overlap(x: WordedTerm, rest: list[ast.expr], wording: Wording, ranges: Ranges) -> WordedTerm | None:
    other = term_of(rest[0], wording, ranges)
    return (
        None
        if other is None
        else WordedTerm(subject=f"the share of {owned(other.noun, 'words')} that {x.noun} has")
    )


def _of_two(kind: str) -> _Call:
    """The smaller, the larger, the common divisor of two."""

    def made(x: WordedTerm, rest: list[ast.expr], wording: Wording, ranges: Ranges) -> WordedTerm | None:
        other = term_of(rest[0], wording, ranges)
        if other is None:
            return None
        return WordedTerm(subject=f"{kind} of {x.noun} and {other.noun}", whole=x.whole and other.whole)

    return made


_CALLS: Mapping[str, _Call] = {
    "digit": _digit,
    "n_digits": lambda x, rest, wording, ranges: _has(x.noun, "digits", (1, None)),
    "digit_sum": lambda x, rest, wording, ranges: WordedTerm(
        subject=owned(x.noun, "digit sum"), whole=True, span=(0, None)
    ),
    "length": lambda x, rest, wording, ranges: _has(x.noun, "characters"),
    "words": lambda x, rest, wording, ranges: _has(x.noun, "words"),
    "count": _count,
    "upper_ratio": lambda x, rest, wording, ranges: WordedTerm(subject=f"the share of capitals in {x.noun}"),
    "first_word": lambda x, rest, wording, ranges: WordedTerm(subject=owned(x.noun, "first word")),
    "last_word": lambda x, rest, wording, ranges: WordedTerm(subject=owned(x.noun, "last word")),
    "overlap": _overlap,
    "abs": lambda x, rest, wording, ranges: WordedTerm(subject=f"the size of {x.noun}", whole=x.whole),
    "min": _of_two("the smaller"),
    "max": _of_two("the larger"),
    "gcd": _of_two("the greatest common divisor"),
}


def _of_arithmetic(node: ast.BinOp, wording: Wording, ranges: Ranges) -> WordedTerm | None:
    match node:
        case ast.BinOp(
            left=ast.Call(func=ast.Name(id="digit"), args=[x, ast.Constant(value=int(place))]),
            op=ast.Add(),
            right=ast.Call(func=ast.Name(id="digit"), args=[y, ast.Constant(value=int(other))]),
        ) if place == other:
            one, two = term_of(x, wording, ranges), term_of(y, wording, ranges)
            if one is None or two is None:
                return None
            subject = f"the {place_name(place)} digits of {one.noun} and {two.noun}"
            return WordedTerm(
                subject=subject, verb="add up to", negated="do not add up to", whole=True, span=(0, 18)
            )
        case ast.BinOp(left=ast.Constant(value=int(times)), op=ast.Mult(), right=x):
            of = term_of(x, wording, ranges)
            often = "twice" if times == 2 else f"{times} times"
            return None if of is None else WordedTerm(subject=f"{often} {of.noun}", whole=of.whole)
        case ast.BinOp(left=x, op=ast.Mod(), right=ast.Constant(value=int(divisor))) if divisor > 0:
            of = term_of(x, wording, ranges)
            if of is None or not of.whole:
                return None
            return WordedTerm(subject=f"{of.noun} modulo {divisor}", whole=True, span=(0, divisor - 1))
        case ast.BinOp(left=ast.Name() as x, op=ast.Add() | ast.Sub() as sign, right=ast.Name() as y):
            left, right = term_of(x, wording, ranges), term_of(y, wording, ranges)
            if left is None or right is None:
                return None
            joined = "plus" if isinstance(sign, ast.Add) else "minus"
            return WordedTerm(subject=f"{left.noun} {joined} {right.noun}", whole=left.whole and right.whole)
    return None
