"""The programs that the known models compute: their inputs, and the answer at the last position.

A program is compiled by `benchmarks/compile_known.py` under a causal mask: a position sees itself and those before.
The answers here are written without the compiler and are what the compiled model is compared with, on all inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

Tokens = Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What a known model computes."""

    says: str
    """In words, what it answers."""
    alphabet: str
    """Its tokens, a character each."""
    length: int
    """Tokens of every input."""
    answer: Callable[[Tokens], str | None]
    """The answer to a whole input; None where the program has none, and whatever the model says is wrong."""

    def inputs(self) -> list[tuple[str, ...]]:
        """Every input, in the order of the alphabet."""
        return list(product(self.alphabet, repeat=self.length))


def _count_of_last(tokens: Tokens) -> str:
    return str(list(tokens).count(tokens[-1]))


def _parity(tokens: Tokens) -> str:
    return str(list(tokens).count(tokens[-1]) % 2)


def _sum_of_two(tokens: Tokens) -> str:
    return str((int(tokens[-2]) + int(tokens[-1])) % 4)


def _after_the_same(tokens: Tokens) -> str | None:
    after = {later for earlier, later in pairwise(tokens) if earlier == tokens[-1]}
    return after.pop() if len(after) == 1 else None


def _majority(tokens: Tokens) -> str:
    return str(int(list(tokens).count("a") >= 3))


def _balanced(tokens: Tokens) -> str:
    return str(int(2 * list(tokens).count("(") == len(tokens)))


def _same_ends(tokens: Tokens) -> str:
    return str(int(tokens[0] == tokens[-1]))


def _repeats(tokens: Tokens) -> str:
    return str(sum(token in tokens[:place] for place, token in enumerate(tokens)))


def _pattern(tokens: Tokens) -> str:
    return str(int(tuple(tokens[-2:]) == ("a", "b")))


def _either(tokens: Tokens) -> str:
    return str(int((tokens[0], tokens[-1]) in (("a", "b"), ("c", "d"))))


PROGRAMS: Mapping[str, Program] = {
    "hist": Program(says="how often the last letter occurs", alphabet="abc", length=6, answer=_count_of_last),
    "parity": Program(
        says="whether the last letter occurs an odd number of times", alphabet="abc", length=6, answer=_parity
    ),
    "mod4": Program(
        says="the sum of the last two digits, modulo 4", alphabet="0123", length=5, answer=_sum_of_two
    ),
    "induction": Program(
        says="the letter that followed the last one before",
        alphabet="abcde",
        length=4,
        answer=_after_the_same,
    ),
    "majority": Program(
        says="whether at least three letters are a", alphabet="abc", length=6, answer=_majority
    ),
    "balanced": Program(says="whether as many close as open", alphabet="()", length=6, answer=_balanced),
    "same_ends": Program(
        says="whether the first letter is the last", alphabet="abcd", length=4, answer=_same_ends
    ),
    "repeats": Program(says="how many letters occurred before", alphabet="abc", length=5, answer=_repeats),
    "pattern": Program(
        says="whether the last two letters are ab", alphabet="abcd", length=4, answer=_pattern
    ),
    "backup": Program(says="the first letter", alphabet="abcd", length=4, answer=lambda tokens: tokens[0]),
    "cancelling": Program(
        says="the last letter", alphabet="abcd", length=4, answer=lambda tokens: tokens[-1]
    ),
    "saturated": Program(says="the first letter", alphabet="abcd", length=4, answer=lambda tokens: tokens[0]),
    "either": Program(
        says="whether the first and last letters are a and b, or c and d",
        alphabet="abcd",
        length=4,
        answer=_either,
    ),
    "fault": Program(says="the last digit", alphabet="0123", length=4, answer=lambda tokens: tokens[-1]),
}
