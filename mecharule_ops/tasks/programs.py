"""The programs that the known models compute: their inputs, and the answer at the last position.

A program is compiled by `benchmarks/compile_known.py` under a causal mask: a position sees itself and those before.
The answers here are written without the compiler and are what the compiled model is compared with, on all inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

Tokens = Sequence[str]


@dataclass(frozen=True, slots=True)
class Program:
    """What a known model computes."""

    says: str
    """In words, what it answers."""
    alphabet: str
    """Its tokens, a character each."""
    length: int
    """Tokens of every input."""
    computes: Callable[[Tokens], int | str | None]

    def answer(self, tokens: Tokens) -> str | None:
        """The answer to a whole input; None where there is none, and whatever the model says is wrong."""
        found = self.computes(tokens)
        return None if found is None else str(found)

    def inputs(self) -> list[tuple[str, ...]]:
        """Every input, in the order of the alphabet."""
        return list(product(self.alphabet, repeat=self.length))


def _after_the_same(tokens: Tokens) -> str | None:
    after = {later for earlier, later in pairwise(tokens) if earlier == tokens[-1]}
    return after.pop() if len(after) == 1 else None


PROGRAMS: Mapping[str, Program] = {
    "hist": Program("how often the last letter occurs", "abc", 6, lambda x: x.count(x[-1])),
    "parity": Program(
        "whether the last letter occurs an odd number of times", "abc", 6, lambda x: x.count(x[-1]) % 2
    ),
    "mod4": Program(
        "the sum of the last two digits, modulo 4", "0123", 5, lambda x: (int(x[-2]) + int(x[-1])) % 4
    ),
    "induction": Program("the letter that followed the last one before", "abcde", 4, _after_the_same),
    "majority": Program("whether at least three letters are a", "abc", 6, lambda x: int(x.count("a") >= 3)),
    "balanced": Program("whether as many close as open", "()", 6, lambda x: int(2 * x.count("(") == len(x))),
    "same_ends": Program("whether the first letter is the last", "abcd", 4, lambda x: int(x[0] == x[-1])),
    "repeats": Program(
        "how many letters occurred before",
        "abc",
        5,
        lambda x: sum(token in x[:place] for place, token in enumerate(x)),
    ),
    "pattern": Program(
        "whether the last two letters are ab", "abcd", 4, lambda x: int(tuple(x[-2:]) == ("a", "b"))
    ),
    "backup": Program("the first letter", "abcd", 4, lambda x: x[0]),
    "cancelling": Program("the last letter", "abcd", 4, lambda x: x[-1]),
    "saturated": Program("the first letter", "abcd", 4, lambda x: x[0]),
    "either": Program(
        "whether the first and last letters are a and b, or c and d",
        "abcd",
        4,
        lambda x: int((x[0], x[-1]) in (("a", "b"), ("c", "d"))),
    ),
    "fault": Program("the last digit", "0123", 4, lambda x: x[-1]),
}
