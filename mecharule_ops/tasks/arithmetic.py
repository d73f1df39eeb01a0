"""The arithmetic task of the paper (§5): `a op b =`, greedy, right when the answer is the exact result.

What counts as an answer is the first word of the completion's first line, with trailing `.,;:!?` ignored.
It is right when it is the exact result in plain decimal digits, or a truncation of its decimal expansion
that keeps the whole integer part: 7 / 2 accepts `3`, `3.5`, `3.50`; 2 / 3 accepts `0`, `0.66`, not `0.67`
(rounded) nor `.6`; 3 + 4 accepts `7` and `7.0`. Leading zeros, `+7` and `7,000` are wrong.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from mecharule_ops.errors import UsageError
from mecharule_ops.tasks import arithmetic_vocabulary as vocabulary
from mecharule_ops.tasks import base, column_words
from mecharule_ops.tasks.text_pieces import SourceSpan, answer_pieces, end_to_end, question_pieces
from mecharule_ops.types import BehaviourRecord, Example, Value

OPERATORS = ("+", "-", "*", "/")
"""Canonical values of the `op` field, whatever symbol the prompt shows."""
OPERAND_LIMIT = 10**6
"""Operands stay below this, so that ids and results fit 64 bits."""
_TAIL = re.compile(r"(?:\.([0-9]+))?[.,;:!?]*")
_NUMBER = re.compile(r"(-?[0-9]{1,15})(?:\.[0-9]+)?[.,;:!?]*")


@dataclass(frozen=True, kw_only=True)
class Arithmetic(base.Task):
    """Every (op, a, b) of a grid of operands; division starts at 1, as in the paper."""

    name = "arithmetic"
    between = " "
    max_new_tokens: int = 6
    operators: tuple[str, ...] = ("+",)
    """Distinct values of `OPERATORS`."""
    low: int = 0
    """Smallest operand."""
    high: int = 99
    """Largest operand, included."""
    template: str = "{a} {op} {b} ="
    """The question; spaces matter to tokenizers."""
    symbols: tuple[str, ...] = ()
    """What the prompt shows for each operator; empty shows these themselves."""

    def __post_init__(self) -> None:
        super().__post_init__()
        operators = self.operators
        if not operators or len(set(operators)) < len(operators) or not set(operators) <= set(OPERATORS):
            raise UsageError(f"expected distinct operators of {' '.join(OPERATORS)}, got {operators!r}")
        if not 0 <= self.low <= self.high < OPERAND_LIMIT:
            raise UsageError(f"expected 0 <= low <= high < {OPERAND_LIMIT}, got {self.low} and {self.high}")
        if "/" in operators and self.high == 0:
            raise UsageError("expected high of 1 or more for division, got 0")
        base.check_template(self.template, "{a}", "{op}", "{b}")
        object.__setattr__(self, "symbols", self.symbols or operators)
        if len(self.symbols) != len(operators) or not all(self.symbols):
            raise UsageError(f"expected a symbol for each operator, got {self.symbols!r}")

    @property
    def prompt_columns(self) -> frozenset[str]:
        """Columns computed from the prompt; the true result is one of them."""
        return frozenset({*vocabulary.ASKED, "prompt"})

    @property
    def solution_columns(self) -> frozenset[str]:
        """The exact result."""
        return frozenset({"expected", "remainder"})

    def examples(self, count: int, generator: np.random.Generator) -> tuple[Example, ...]:
        """`count` distinct examples drawn uniformly, or the whole grid in order when it is not larger.

        Time and memory grow with `count`, not with the grid.
        """
        sizes = [self._side(op) ** 2 for op in self.operators]
        return tuple(self._example_at(index, sizes) for index in base.drawn(sum(sizes), count, generator))

    def _first(self, op: str) -> int:
        return max(self.low, 1) if op == "/" else self.low

    def _side(self, op: str) -> int:
        return self.high - self._first(op) + 1

    def _example_at(self, index: int, sizes: Sequence[int]) -> Example:
        """The example at one position of the grids laid end to end, one grid an operator."""
        place = int(np.searchsorted(np.cumsum(sizes), index, side="right"))
        op = self.operators[place]
        a, b = divmod(index - sum(sizes[:place]), self._side(op))
        return self.example(op, self._first(op) + a, self._first(op) + b)

    def example(self, op: str, a: int, b: int) -> Example:
        """The example of one question; its id encodes (op, a, b) and does not depend on the range.

        Raises `UsageError` for an operator or operand outside the task.
        """
        if op not in self.operators or not all(self._first(op) <= operand <= self.high for operand in (a, b)):
            allowed = f"{' '.join(self.operators)} on {self.low}..{self.high}, no division with 0"
            raise UsageError(f"expected {allowed}, got {a} {op} {b}")
        return Example(
            id=(OPERATORS.index(op) * OPERAND_LIMIT + a) * OPERAND_LIMIT + b,
            prompt=self.prefix + self._question(op, a, b),
            fields={"op": op, "a": a, "b": b},
        )

    def _question(self, op: str, a: int, b: int) -> str:
        parts = self._shown(op, a, b)
        return re.sub(r"\{(?:a|op|b)\}", lambda match: parts[match[0]], self.template)

    def _shown(self, op: str, a: int, b: int) -> Mapping[str, str]:
        """What stands for each part of the template."""
        return {"{a}": str(a), "{op}": self.symbols[self.operators.index(op)], "{b}": str(b)}

    def parse(self, example: Example, completion: str) -> Mapping[str, Value]:
        """`answer`, the integer part of the first word when that is a number, else 0, and `parsed`."""
        match = _NUMBER.fullmatch(_first_word(completion))
        return {"answer": int(match[1]) if match else 0, "parsed": match is not None}

    def label(self, example: Example, completion: str) -> bool:
        """Whether the completion's answer is right (see the module's first lines)."""
        return _is_right(example, _first_word(completion))

    def decide(self, example: Example, partial: str) -> bool | None:
        """The label of every continuation: known once the first word has ended or can no longer be right."""
        word = _first_word(partial)
        if "\n" in partial or word != partial.lstrip():
            return self.label(example, partial)
        integer, _ = vocabulary.result(*_question_of(example))
        return None if str(integer).startswith(word) or _is_right(example, word) else False

    def read(self, text: str) -> Example:
        """The example of a typed question such as `120-7=`; spaces, the prefix and the last `=` may be left out.

        Raises `UsageError` when the text is no question of the task, or when an operand lies outside its range.
        """
        question = text.removeprefix(self.prefix)
        by_symbol = dict(zip((*self.operators, *self.symbols), 2 * self.operators, strict=True))
        symbols = "|".join(re.escape(symbol) for symbol in sorted(by_symbol, key=len, reverse=True))
        match = re.fullmatch(rf"\s*([0-9]{{1,9}})\s*({symbols})\s*([0-9]{{1,9}})\s*=?\s*", question)
        if match is None:
            shown = self._question(self.operators[0], self.high, self.high)
            raise UsageError(f"expected a question such as {shown!r}, got {text!r}")
        return self.example(by_symbol[match[2]], int(match[1]), int(match[3]))

    def edits(self, example: Example) -> tuple[Example, ...]:
        """Questions of the task that differ in one digit, the closest first, then those with another operator."""
        op, a, b = _question_of(example)
        near = [(op, new, b) for new in one_digit_changed(a)] + [(op, a, new) for new in one_digit_changed(b)]
        near.sort(key=lambda question: abs(question[1] - a) + abs(question[2] - b))
        found = []
        for question in (*near, *((other, a, b) for other in self.operators if other != op)):
            with suppress(UsageError):
                found.append(self.example(*question))
        return tuple(found)

    def sources(self, example: Example, completion: str) -> tuple[SourceSpan, ...]:
        """Few-shot lines, every digit of a, b and the answer by its place, the operator, what stands between."""
        shown = self._shown(*_question_of(example))
        return end_to_end([*question_pieces(self.prefix, self.template, shown), *answer_pieces(completion)])

    def cells(self, record: BehaviourRecord) -> Mapping[str, Value]:
        """`ASKED`, `prompt` (the question without the prefix, the same for all), then what the output has."""
        question = _question_of(record.example)
        asked = dict(zip(vocabulary.ASKED, (*question, *vocabulary.result(*question)), strict=True))
        told = self.parse(record.example, record.completion)
        return {**asked, "prompt": self._question(*question), **told, "completion": record.completion}

    @property
    def domain(self) -> column_words.Domain:
        """Every question of the grid, unless they are too many."""
        return vocabulary.arithmetic_domain(self.operators, self.low, self.high)

    def seed_predicates(self) -> tuple[str, ...]:
        """The paper's hand-written families over these operators and operands."""
        return vocabulary.seed_predicates(self.operators, self.low, self.high)

    def account_predicates(self) -> tuple[str, ...]:
        """Digits, their equalities, carries, sums and sizes of operands and result."""
        return vocabulary.account_predicates(self.operators, self.high)


def one_digit_changed(number: int) -> list[int]:
    """Numbers with as many digits that differ from one that is not negative in one of them."""
    places = [10**place for place in reversed(range(len(str(number))))]
    changed = [number + (digit - number // at % 10) * at for at in places for digit in range(10)]
    return [other for other in changed if other != number and len(str(other)) == len(str(number))]


def _first_word(completion: str) -> str:
    """The first word of the first line; empty when there is none."""
    return next(iter(completion.partition("\n")[0].split()), "")


def _question_of(example: Example) -> tuple[str, int, int]:
    fields = example.fields
    return str(fields["op"]), int(fields["a"]), int(fields["b"])


def _is_right(example: Example, word: str) -> bool:
    """Whether a whole word is the exact result or a truncation of its decimal expansion."""
    integer, remainder = vocabulary.result(*_question_of(example))
    tail = _TAIL.fullmatch(word, len(str(integer))) if word.startswith(str(integer)) else None
    if tail is None:
        return False
    decimals = tail[1] or ""
    divisor = int(example.fields["b"]) if remainder else 1
    return not decimals or decimals == str(remainder * 10 ** len(decimals) // divisor).zfill(len(decimals))
