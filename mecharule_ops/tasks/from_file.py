"""Tables with typed columns, and a task whose items are the rows of one: CSV, TSV, JSONL, or Parquet.

Cells of a file are texts, numbers, truth values, or a list of these; every refusal is one line that names the row. A
column's type is guessed from all its values: truth values, integers, numbers or text.
"""

from __future__ import annotations

import csv
import io
import math
import re
import sys
from abc import ABC
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, cast

from mecharule_ops.codec import parse_json
from mecharule_ops.errors import UsageError
from mecharule_ops.plain_text import typed_path
from mecharule_ops.tasks.text import Row, TextTask, is_free
from mecharule_ops.types import Phase, Value

Cell = Value | list[Value]
SUFFIXES = (".csv", ".tsv", ".txt", ".jsonl", ".json", ".parquet")
"""What a table's file name ends with; `.txt` is read as TSV."""
_SPACED = re.compile(r'[,;\t] +"')
_INDEX = re.compile(r"\s*|Unnamed: \d+|__index_level_\d+__")
"""The names under which a data frame's row numbers come into a file."""


def is_table(name: str) -> bool:
    """Whether a task's name is that of a table, by its ending."""
    return typed_path(name).suffix in SUFFIXES and name not in SUFFIXES


def raw_rows(path: Path) -> list[Mapping[str, Cell]]:
    """The rows as the file has them, all with the same columns.

    Raises `UsageError` when the file is not there or does not read, has no rows, or a row has other columns than
    the first or an empty cell.
    """
    if not path.is_file() or path.suffix not in SUFFIXES:
        raise UsageError(
            f"expected a CSV, TSV, JSONL or Parquet file, got {str(path)!r}, which is none; check its path, or save "
            f"it as {' or '.join(SUFFIXES[:2])}"
        )
    try:
        found = list(_read(path))
    except (OSError, ValueError, csv.Error) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UsageError(f"expected rows in {path}, it does not read: {reason}") from error
    if not found:
        raise UsageError(f"expected rows in {path}, got none; the columns prompt and answer are needed")
    names = list(found[0])
    for name in names:
        check_value(name, f"column names of {path}")
    for number, row in enumerate(found, 1):
        if row.keys() != found[0].keys():
            lacks, more = [each for each in names if each not in row], [*row.keys() - set(names)]
            got = f"none for {lacks[0]}" if lacks else f"also {more[0]!r}"
            raise UsageError(f"expected the columns {', '.join(names)} in row {number} of {path}, got {got}")
        for name, cell in row.items():
            for each in cell if isinstance(cell, list) else [cell]:
                check_value(each, f"row {number}, column {name!r} of {path}")
    return found


def is_index(name: str) -> bool:
    """Whether a column holds a data frame's row numbers, by its name, so that it is none of the table's."""
    return _INDEX.fullmatch(name) is not None


def check_value(value: object, where: str) -> None:
    """Raises `UsageError` for a cell that holds nothing, or something that has no type here."""
    if not isinstance(value, str | int | float) or (isinstance(value, float) and not math.isfinite(value)):
        raise UsageError(f"expected text or a number in {where}, got {value!r}; drop or fill it")
    if isinstance(value, str) and re.search("[\ud800-\udfff]", value):
        raise UsageError(
            f"expected Unicode text in {where}, got half a surrogate pair; write the character whole"
        )


def check_once(names: Sequence[str], where: str) -> None:
    """Raises `UsageError` where two columns have one name, since one of them would be lost."""
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise UsageError(
            f"expected columns of different names in {where}, got two called {twice[0]!r}; rename one"
        )


def _read(path: Path) -> Iterable[Mapping[str, Cell]]:
    """One mapping a row. Raises `OSError`, `ValueError` or `csv.Error` on what does not read."""
    if path.suffix == ".parquet":
        import pyarrow.parquet

        with pyarrow.parquet.ParquetFile(path) as file:
            check_once(file.schema_arrow.names, str(path))
            return file.read().to_pylist()
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix == ".json" and text.startswith("["):
        return [_object(row, number) for number, row in enumerate(_parsed(text, "the list"), 1)]
    if path.suffix in (".jsonl", ".json"):
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        return [_object(_parsed(line, f"line {number}"), number) for number, line in lines]
    return _separated(text, path)


def _separated(text: str, path: Path) -> Iterator[Mapping[str, Cell]]:
    """The rows of a text; its line ends, inside cells too, are those of Python.

    Raises `ValueError` or `csv.Error` where quotation marks are not used as they are in CSV: doubled inside a cell.
    """
    tabs, header = path.suffix != ".csv", text.partition("\n")[0]
    cut = "\t" if tabs else next((each for each in ",;\t" if each in header), ",")
    if tabs and not _is_quoted(text):
        lines = list(csv.reader(io.StringIO(text), delimiter=cut, quoting=csv.QUOTE_NONE))
    else:
        read = partial(csv.reader, delimiter=cut, strict=True)
        lines = list(read(io.StringIO(text)))
        spaced = list(read(io.StringIO(text), skipinitialspace=True)) if _SPACED.search(text) else lines
        one, other = ([[cell.lstrip() for cell in line] for line in each] for each in (lines, spaced))
        if one != other:
            raise ValueError("a quotation mark stands behind a space; write none between cells")
    names, *rows = [line for line in lines if line] or [[]]
    check_once(names, str(path))
    for number, line in enumerate(rows, 1):
        if len(line) != len(names):
            got = f"none for {names[len(line)]}" if len(line) < len(names) else "more cells"
            raise UsageError(f"expected the columns {', '.join(names)} in row {number} of {path}, got {got}")
        yield dict(zip(names, line, strict=True))


def _is_quoted(text: str) -> bool:
    """Whether quotation marks in a text of tabs are those of CSV: its header has them, or CSV would be this text."""
    if text.startswith('"'):
        return True
    written = io.StringIO()
    try:
        lines = [*csv.reader(io.StringIO(text), csv.excel_tab, strict=True)]
    except csv.Error:
        return False
    csv.writer(written, csv.excel_tab, lineterminator="\n").writerows(lines)
    return written.getvalue().strip() == text.strip() and len(set(map(len, filter(None, lines)))) == 1


def _parsed(text: str, where: str) -> Any:
    """The value of a JSON text. Raises `ValueError`, and `UsageError` for a key that comes twice in an object."""

    def pairs(found: Sequence[tuple[str, object]]) -> dict[str, object]:
        check_once([key for key, _ in found], where)
        return dict(found)

    try:
        return parse_json(text, pairs)
    except ValueError as error:
        raise ValueError(f"{where} is no JSON ({error})") from error


def _object(row: object, number: int) -> Mapping[str, Cell]:
    if not isinstance(row, dict):
        raise ValueError(f"expected one JSON object of texts and numbers a line, line {number} holds another")
    return row


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
    return "text" if is_free(values) else "category"
