"""Arithmetic questions read back: a typed prompt as an example, and a task from its own description."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress

from mecharule_ops.errors import ClaimNotSupported, UsageError
from mecharule_ops.questions.edits import single_edits
from mecharule_ops.tasks.arithmetic import Arithmetic
from mecharule_ops.tasks.base import Task
from mecharule_ops.tasks.registry import make_task
from mecharule_ops.types import Example, Phase, Value


def read_question(task: Task, text: str) -> Example:
    """The example of a typed question such as `120-7=`; spaces, the prefix and the last `=` may be left out.

    Raises `UsageError` when the task has no questions that can be read back, when the text is none of its
    questions, or when an operand lies outside its range.
    """
    task = _readable(task)
    question = text.removeprefix(task.prefix)
    by_symbol = {symbol: op for op in task.operators for symbol in (op, task.symbols[op])}
    symbols = "|".join(re.escape(symbol) for symbol in sorted(by_symbol, key=len, reverse=True))
    match = re.fullmatch(rf"\s*([0-9]{{1,9}})\s*({symbols})\s*([0-9]{{1,9}})\s*=?\s*", question)
    if match is None:
        shown = task.example(task.operators[0], task.high, task.high).prompt.removeprefix(task.prefix)
        raise UsageError(f"expected a question such as {shown!r}, got {text!r}")
    return task.example(by_symbol[match[2]], int(match[1]), int(match[3]))


def edited(task: Task, example: Example) -> tuple[Example, ...]:
    """Every question of the task that differs from this one in one digit or the operator, the closest first."""
    task = _readable(task)
    found = []
    for edit in single_edits(example.fields, {"op": task.operators}):
        fields = edit.of(example.fields)
        with suppress(UsageError):
            found.append(task.example(str(fields["op"]), int(fields["a"]), int(fields["b"])))
    return tuple(found)


def _readable(task: Task) -> Arithmetic:
    if not isinstance(task, Arithmetic):
        raise UsageError(f"expected a task whose prompts can be typed, such as arithmetic, got {task.name}")
    return task


def task_from(description: Mapping[str, Value]) -> Arithmetic:
    """The task that describes itself so. Raises `ClaimNotSupported` when none does."""
    try:
        operators = tuple(str(description["operators"]).split())
        task = make_task(
            str(description["task"]),
            operators=operators,
            low=description["low"],
            high=description["high"],
            prefix=description["prefix"],
            template=description["template"],
            symbols=dict(zip(operators, str(description["symbols"]).split(), strict=True)),
            max_new_tokens=description["max_new_tokens"],
            stop=tuple(str(description["stop"]).split("|")),
            phase=Phase(str(description["phase"])),
        )
    except (KeyError, ValueError, TypeError, UsageError) as error:
        raise ClaimNotSupported(f"expected a task that this version knows, got {error}") from error
    if dict(task.describe()) != dict(description):
        raise ClaimNotSupported("expected a task that describes itself as the certificate does, got another")
    return task
