"""The columns of a table that say what is right, and those that a prompt template names; each refusal is one line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from string import Formatter
from typing import cast

from mecharule_ops.errors import UsageError
from mecharule_ops.tasks.beginning import begins
from mecharule_ops.tasks.row_files import Cell
from mecharule_ops.tasks.text import Row
from mecharule_ops.types import Value

ANSWER, ANSWERS, TARGET, FOIL = "answer", "answers", "target", "foil"
OR = "|"
"""Between the entries of `answers`; none holds it."""


def graded_by(names: Sequence[str], where: Path) -> str:
    """The one of `answer`, `answers` and `target` that a table has. Raises `UsageError` for none, or several."""
    found = [name for name in (ANSWER, ANSWERS, TARGET) if name in names]
    if not found or (found == [TARGET] and FOIL not in names):
        raise UsageError(
            f"expected a column answer, answers, or target and foil in {where}, got {', '.join(names)}; rename one"
        )
    if len(found) > 1:
        raise UsageError(
            f"expected one of answer, answers, and target with foil in {where}, got {' and '.join(found)}; drop one"
        )
    return found[0]


def columns_named(template: str) -> tuple[str, ...]:
    """The columns in a template's braces. Raises `UsageError` for none, and for braces that hold something else."""
    try:
        parts = [part for part in Formatter().parse(template) if part[1] is not None]
    except ValueError as error:
        raise UsageError(
            f"expected columns in braces in the prompt template, got {template!r}: {error}"
        ) from error
    names = tuple(dict.fromkeys(str(name) for _, name, _, _ in parts))
    if not names or any(form or how or not name or set(name) & set(".[") for _, name, form, how in parts):
        raise UsageError(
            f"expected columns in braces, such as {{question}}, in the prompt template, got {template!r}"
        )
    return names


def single_cells(name: str, cells: Sequence[Cell], where: Path) -> Sequence[Value]:
    """The cells of a column that holds no list. Raises `UsageError` where it does."""
    for number, cell in enumerate(cells, 1):
        if isinstance(cell, list):
            raise UsageError(
                f"expected a text or a number in row {number}, column {name!r} of {where}, got a list; only answers "
                "may be one"
            )
    return cast(Sequence[Value], cells)


def joined(cells: Sequence[Cell], where: Path) -> list[Value]:
    """Each row's answers as one text; a text has them with `|` between already. Raises `UsageError` for none."""
    texts: list[Value] = []
    for number, cell in enumerate(cells, 1):
        answers = [str(each) for each in cell] if isinstance(cell, list) else str(cell).split(OR)
        if not answers or any(OR in answer for answer in answers):
            raise UsageError(
                f"expected one answer or more, without {OR} in any, in row {number} of {where}, got {cell!r}"
            )
        texts.append(OR.join(answers))
    return texts


def check_answers(number: int, row: Row, how: str, where: Path) -> None:
    """Raises `UsageError` for an answer that is empty, and for a foil that begins with its target."""
    texts = str(row[how]).split(OR) if how == ANSWERS else [str(row[how])]
    if not all(text.strip() for text in texts):
        raise UsageError(f"expected an answer in row {number}, column {how!r} of {where}, got an empty one")
    if how == TARGET and begins(str(row[FOIL]), str(row[TARGET])):
        raise UsageError(
            f"expected a foil that does not begin with its target in row {number} of {where}, got {row[FOIL]!r} and "
            f"{row[TARGET]!r}"
        )
