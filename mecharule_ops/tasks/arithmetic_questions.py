"""Arithmetic questions read back: a typed prompt as an example, its edits, and settings from a description."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

from mecharule_ops.errors import UsageError
from mecharule_ops.tasks.edits import single_edits
from mecharule_ops.types import Example, Phase, Value


class Questioned(Protocol):
    """What is asked of the arithmetic task here."""

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators that the task asks for, such as `+` and `-`."""

    @property
    def symbols(self) -> Mapping[str, str]:
        """How the prompt writes each operator."""

    @property
    def prefix(self) -> str:
        """What stands before every question, worked examples for instance; may be empty."""

    @property
    def high(self) -> int:
        """Largest operand."""

    def example(self, op: str, a: int, b: int) -> Example:
        """The example `a op b`. Raises `UsageError` when an operand lies outside its range."""


def read_question(task: Questioned, text: str) -> Example:
    """The example of a typed question such as `120-7=`; spaces, the prefix and the last `=` may be left out.

    Raises `UsageError` when the text is no question of the task, or when an operand lies outside its range.
    """
    question = text.removeprefix(task.prefix)
    by_symbol = {symbol: op for op in task.operators for symbol in (op, task.symbols[op])}
    symbols = "|".join(re.escape(symbol) for symbol in sorted(by_symbol, key=len, reverse=True))
    match = re.fullmatch(rf"\s*([0-9]{{1,9}})\s*({symbols})\s*([0-9]{{1,9}})\s*=?\s*", question)
    if match is None:
        shown = task.example(task.operators[0], task.high, task.high).prompt.removeprefix(task.prefix)
        raise UsageError(f"expected a question such as {shown!r}, got {text!r}")
    return task.example(by_symbol[match[2]], int(match[1]), int(match[3]))


def edited(task: Questioned, example: Example) -> tuple[Example, ...]:
    """Every question of the task that differs from this one in one digit or the operator, the closest first."""
    found = []
    for edit in single_edits(example.fields, {"op": task.operators}):
        fields = edit.of(example.fields)
        with suppress(UsageError):
            found.append(task.example(str(fields["op"]), int(fields["a"]), int(fields["b"])))
    return tuple(found)


def settings_of(description: Mapping[str, Value]) -> Mapping[str, Any]:
    """The settings of the task that describes itself so. Raises `KeyError` or `ValueError` when none does."""
    operators = tuple(str(description["operators"]).split())
    same = ("low", "high", "prefix", "template", "max_new_tokens")
    return {
        **{name: description[name] for name in same},
        "operators": operators,
        "symbols": dict(zip(operators, str(description["symbols"]).split(), strict=True)),
        "stop": tuple(str(description["stop"]).split("|")),
        "phase": Phase(str(description["phase"])),
    }
