"""Tables with typed columns, and a task whose items are the rows of one: CSV, TSV, JSONL, or Parquet.

A column's type is guessed from all its values: truth values, integers, numbers or text.
"""

from __future__ import annotations

import math
import sys
from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, cast

from mecharule_ops.errors import UsageError
from mecharule_ops.plain_text import typed_path
from mecharule_ops.tasks.row_files import Cell, is_index, raw_rows
from mecharule_ops.tasks.text import CATEGORIES, Row, TextTask
from mecharule_ops.tasks.text_account import is_free
from mecharule_ops.types import Phase, Value

_TRUTHS = {"true": True, "false": False, "yes": True, "no": False}
_EXACT: tuple[Callable[[str], float], ...] = (int, float)
_BEYOND = 2**63
"""A whole number of 64 bits is smaller; another is a text, since no column holds it as it stands."""


@dataclass(frozen=True, kw_only=True)
class TableTask(TextTask, ABC):
    """A task over the rows of a file; a subclass says how a row becomes a question and what counts as success."""

    file: str = ""
    """CSV, TSV, JSONL or Parquet with named columns, from the folder that the command runs in, else the task's own."""
    phase: Phase = Phase.LAST_PROMPT
    """From the last prompt token on: a one-word answer is settled by the first generated token, which an ablation
    of later ones cannot change."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Columns that the file must have."""

    def rows(self) -> Sequence[Row]:
        """The file's rows. Raises `UsageError` as `read_table` does."""
        given = typed_path(self.file)
        beside = Path(str(sys.modules[type(self).__module__].__file__)).parent / given
        chosen = beside if self.file and not given.is_file() and beside.is_file() else given
        return read_table(str(chosen) if self.file else "", self.needs)


def read_table(file: str, needs: Sequence[str] = ()) -> tuple[Row, ...]:
    """The rows of a file with the types that whole columns have: integers, numbers or text; no data frame's index.

    Raises `UsageError` when there is no file, it does not read, or a column of `needs` is missing.
    """
    found = raw_rows(typed_path(file)) if file else [{}]
    names = [name for name in found[0] if not is_index(name)]
    if missing := [name for name in needs if name not in names]:
        raise UsageError(
            f"expected the columns {', '.join(needs)} in {file!r}, got {', '.join(names) or 'no file'}; "
            f"{', '.join(missing)} is missing; name a file with task.file"
        )
    return typed_rows(found, file, lambda name: typed)


def typed_rows(
    rows: Sequence[Mapping[str, Cell]],
    where: str | Path,
    of: Callable[[str], Callable[[Sequence[Value]], list[Value]]],
) -> tuple[Row, ...]:
    """The rows with each column typed as `of` its name says, without those that hold a data frame's row numbers.

    Raises `UsageError` for a list in a cell.
    """
    columns: dict[str, list[Value]] = {}
    for name in (name for name in rows[0] if not is_index(name)):
        cells = [row[name] for row in rows]
        if (
            number := next((n for n, cell in enumerate(cells, 1) if isinstance(cell, list)), None)
        ) is not None:
            raise UsageError(
                f"expected a text or a number in row {number}, column {name!r} of {where}, got a list; only the "
                "answers of a table of prompts may be one"
            )
        columns[name] = of(name)(cast(Sequence[Value], cells))
    return tuple(dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))


def typed(values: Sequence[Value]) -> list[Value]:
    """The column in the narrowest type that writes every value as it stands: `007` stays a text, and so does `3.50`."""
    if all(isinstance(value, bool) for value in values):
        return list(values)
    for kind in _EXACT:
        with suppress(ValueError):
            read = [kind(str(value)) for value in values]
            limit = _BEYOND if kind is int else math.inf
            if all(
                str(one) == str(value) and abs(one) < limit for one, value in zip(read, values, strict=True)
            ):
                return list(read)
    return [str(value) for value in values]


def freely_typed(values: Sequence[Value]) -> list[Value]:
    """The same for a column that no prompt shows: `3.50` is a number, and `true`, `False`, `yes` are truth values."""
    exact = typed(values)
    if not all(isinstance(value, str) for value in exact):
        return exact
    words = [str(value).strip().lower() for value in values]
    if set(words) <= _TRUTHS.keys():
        return [_TRUTHS[word] for word in words]
    with suppress(ValueError):
        numbers = [float(word) for word in words]
        if all(map(math.isfinite, numbers)) and not any(_is_name(word) for word in words):
            return list(numbers)
    return exact


def _is_name(word: str) -> bool:
    """Digits that begin with 0, or that 64 bits do not hold, name something: a postal code, the number of a form."""
    digits = word.lstrip("+-")
    return (digits.isdecimal() and int(digits) >= _BEYOND) or (digits[:1] == "0" and digits[1:2].isdigit())


def kind_of(values: Sequence[Value]) -> str:
    """What a column holds, in a word: `bool`, `int`, `float`, `category` (a text of few values) or `text`."""
    if not isinstance(values[0], str):
        return type(values[0]).__name__
    return "text" if is_free(values, CATEGORIES) else "category"
