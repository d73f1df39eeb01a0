"""The program of a known model as a task: all its inputs, a column a token, and the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from mecharule_ops.errors import UsageError
from mecharule_ops.tasks.column_words import OF_EVERY_TASK, ColumnWords, Domain
from mecharule_ops.tasks.programs import PROGRAMS, Program
from mecharule_ops.tasks.text import Row, TextTask
from mecharule_ops.types import Phase, Value


@dataclass(frozen=True, kw_only=True)
class KnownProgram(TextTask):
    """Right when the model's token is the program's answer. Columns `t1`, `t2`, …, whole numbers where tokens are."""

    name: ClassVar[str] = "program"
    max_new_tokens: int = 1
    phase: Phase = Phase.LAST_PROMPT
    program: str = "hist"
    """Which program, one of those that `known/` models compute."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.program not in PROGRAMS:
            raise UsageError(f"expected task.program of: {', '.join(PROGRAMS)}; got {self.program!r}")

    @property
    def _program(self) -> Program:
        return PROGRAMS[self.program]

    @property
    def solution_columns(self) -> frozenset[str]:
        """The program's answer."""
        return frozenset({"answer"})

    @property
    def wording(self) -> Mapping[str, ColumnWords]:
        """Tokens by their place."""
        last = self._program.length
        whole = self._program.alphabet.isdecimal()
        names = {place: f"token {place}" for place in range(1, last)} | {last: "the last token"}
        tokens = {f"t{place}": ColumnWords(noun=noun, whole=whole) for place, noun in names.items()}
        answers = self._columns_of_rows["answer"]
        answer = ColumnWords(noun="the right answer", whole=all(isinstance(one, int) for one in answers))
        return {**OF_EVERY_TASK, **tokens, "answer": answer}

    @cached_property
    def domain(self) -> Domain:
        """Every input of the program, for it has no others."""
        whole = {name: np.array(values) for name, values in self._columns_of_rows.items()}
        spans = {name: (int(x.min()), int(x.max())) for name, x in whole.items() if x.dtype.kind == "i"}
        return Domain(whole=whole, ranges=spans)

    def rows(self) -> Sequence[Row]:
        """Every input, in the order of the alphabet."""
        return [
            {
                **{f"t{place}": _value(token) for place, token in enumerate(tokens, 1)},
                "answer": _value(self._program.answer(tokens) or ""),
            }
            for tokens in self._program.inputs()
        ]

    def question(self, row: Row) -> str:
        """The tokens with spaces between them."""
        return " ".join(str(row[f"t{place}"]) for place in range(1, self._program.length + 1))

    def success(self, row: Row, completion: str) -> bool:
        """Whether the model's token is the answer."""
        return completion.strip() == f"={row['answer']}"


def _value(token: str) -> Value:
    return int(token) if token.isdecimal() else token
