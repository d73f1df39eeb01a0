"""What is compared in a rule, put in words: `digit(a, 1)` is `a's tens digit`, `words(x)` is that x has words."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mecharule_ops.tasks.column_words import Wording, column_words
from mecharule_ops.tasks.text_pieces import place_name

Span = tuple[int | None, int | None]
"""The least and the largest value of a term of whole numbers; None where it is not known."""
_OPEN: Span = (None, None)
_OF_TWO = {"min": "the smaller", "max": "the larger", "gcd": "the greatest common divisor"}


class NoWords(Exception):
    """An expression has no words."""


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


@dataclass(frozen=True, slots=True)
class Speaker:
    """Words of expressions; each method raises `NoWords` for one that has none."""

    wording: Wording
    ranges: Mapping[str, tuple[int, int]]
    """Of columns of whole numbers, over all that the task makes possible."""

    def noun(self, node: ast.expr) -> str:
        """The value of an expression as a noun."""
        return self.term(node).noun

    def term(self, node: ast.expr) -> WordedTerm:
        """An expression as what is compared."""
        if (noun := self.wording.nouns.get(ast.unparse(node))) is not None:
            return WordedTerm(subject=noun, whole=self._is_whole(node))
        match node:
            case ast.Name(id=name):
                return self._column(name)
            case ast.Call(func=ast.Name(id=name), args=[first, *rest]):
                return self._called(name, self.term(first), rest)
            case ast.BinOp(
                left=ast.Call(func=ast.Name(id="digit"), args=[x, ast.Constant(value=int(place))]),
                op=ast.Add(),
                right=ast.Call(func=ast.Name(id="digit"), args=[y, ast.Constant(value=int(other))]),
            ) if place == other:
                both = f"the {place_name(place)} digits of {self.noun(x)} and {self.noun(y)}"
                return WordedTerm(
                    subject=both, verb="add up to", negated="do not add up to", whole=True, span=(0, 18)
                )
            case ast.BinOp(left=ast.Constant(value=int(times)), op=ast.Mult(), right=right):
                of = self.term(right)
                often = "twice" if times == 2 else f"{times} times"
                return WordedTerm(subject=f"{often} {of.noun}", whole=of.whole)
            case ast.BinOp(left=left, op=ast.Mod(), right=ast.Constant(value=int(by))) if by > 0:
                if (of := self.term(left)).whole:
                    return WordedTerm(subject=f"{of.noun} modulo {by}", whole=True, span=(0, by - 1))
            case ast.BinOp(left=ast.Name() as x, op=ast.Add() | ast.Sub() as sign, right=ast.Name() as y):
                one, two = self.term(x), self.term(y)
                joined = "plus" if isinstance(sign, ast.Add) else "minus"
                return WordedTerm(subject=f"{one.noun} {joined} {two.noun}", whole=one.whole and two.whole)
        raise NoWords

    def _column(self, name: str) -> WordedTerm:
        words = column_words(self.wording, name)
        if words is None:
            raise NoWords
        span = self.ranges.get(name, _OPEN)
        if words.unit:
            return _has(words.noun, words.unit, span)
        return WordedTerm(subject=words.noun, whole=words.whole, span=span)

    def _called(self, function: str, x: WordedTerm, rest: Sequence[ast.expr]) -> WordedTerm:
        match function, rest:
            case "digit", [place]:
                digit = owned(x.noun, f"{place_name(ast.literal_eval(place))} digit")
                return WordedTerm(subject=digit, whole=True, span=(0, 9))
            case "n_digits", _:
                return _has(x.noun, "digits", (1, None))
            case "length", _:
                return _has(x.noun, "characters")
            case "words", _:
                return _has(x.noun, "words")
            case "digit_sum", _:
                return WordedTerm(subject=owned(x.noun, "digit sum"), whole=True, span=(0, None))
            case "count", [text]:
                often = f"how often {ast.unparse(text)} occurs in {x.noun}"
                return WordedTerm(subject=often, whole=True, span=(0, None))
            case "upper_ratio", _:
                return WordedTerm(subject=f"the share of capitals in {x.noun}")
            case (("first_word" | "last_word"), _):
                return WordedTerm(subject=owned(x.noun, function.replace("_", " ")))
            case "overlap", [text]:
                return WordedTerm(subject=f"the share of {owned(self.noun(text), 'words')} that {x.noun} has")
            case "abs", _:
                return WordedTerm(subject=f"the size of {x.noun}", whole=x.whole)
            case (("min" | "max" | "gcd"), [second]):
                y = self.term(second)
                subject = f"{_OF_TWO[function]} of {x.noun} and {y.noun}"
                return WordedTerm(subject=subject, whole=x.whole and y.whole)
        raise NoWords

    def _is_whole(self, node: ast.expr) -> bool:
        """Whether every column below is one of whole numbers and nothing divides."""
        below = [*ast.walk(node)]
        words = [column_words(self.wording, one.id) for one in below if isinstance(one, ast.Name)]
        return all(one.whole for one in words if one) and not any(isinstance(one, ast.Div) for one in below)


def owned(noun: str, thing: str) -> str:
    """`a's tens digit`, `the words of the column text`."""
    return f"{thing} of {noun}" if noun.startswith("the column ") else f"{noun}'s {thing}"


def _has(subject: str, unit: str, span: Span = (0, None)) -> WordedTerm:
    return WordedTerm(subject=subject, verb="has", negated="does not have", unit=unit, whole=True, span=span)
