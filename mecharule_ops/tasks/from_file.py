"""Tables with typed columns, and a task whose items are the rows of one: CSV, TSV, JSONL, or Parquet.

Cells of a file are texts, numbers, truth values, or a list of these; every refusal is one line that names the row. A
column's type is guessed from all its values: truth values, integers, numbers or text. Columns in which a data frame
keeps its row numbers are left out.
"""

import csv
import io
import math
import re
import sys
from abc import ABC
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
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
_BARE = re.compile(r'(?m)(?:^|\t)"[^"\t\n]+"(?:\t|$)')
"""A cell of a tab-separated file in quotation marks that it does not need."""
_INDEX = re.compile(r"\s*|Unnamed: \d+|__index_level_\d+__")
"""The names under which a data frame's row numbers come into a file."""


def is_table(name: str) -> bool:
    """Whether a task's name is that of a table, by its ending."""
    return typed_path(name).suffix in SUFFIXES and name not in SUFFIXES


def raw_rows(path: Path) -> list[Mapping[str, Cell]]:
    """The rows as the file has them, all with the same columns, without a data frame's row numbers.

    Raises `UsageError` when the file is not there or does not read, has no rows, or a row has other columns than
    the first or an empty cell.
    """
    if not path.is_file() or path.suffix not in SUFFIXES:
        raise UsageError(
            f"expected a CSV, TSV, JSONL or Parquet file, got {str(path)!r}, which is none; put it there, or into the "
            f"folder that the command runs in, or save it as {' or '.join(SUFFIXES[:2])}"
        )
    try:
        found = _read(path)
    except (OSError, ValueError, csv.Error) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UsageError(f"expected rows in {path}, it does not read: {reason}") from error
    if not found:
        raise UsageError(f"expected rows in {path}, got none; the columns prompt and answer are needed")
    first = found[0] if isinstance(found[0], dict) else {}
    for number, row in enumerate(found, 1):
        if not isinstance(row, dict) or row.keys() != first.keys():
            got = ", ".join(map(str, row)) if isinstance(row, dict) else repr(row)
            raise UsageError(
                f"expected the columns {', '.join(first) or 'prompt and answer'} in row {number} of {path}, got {got}"
            )
        for name, cell in row.items():
            check_value(name, f"column names of {path}")
            for each in cell if isinstance(cell, list) else [cell]:
                check_value(each, f"row {number}, column {name!r} of {path}")
    kept = [name for name in found[0] if not _INDEX.fullmatch(name)]
    return [{name: row[name] for name in kept} for row in found]


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


def _read(path: Path) -> list[Any]:
    """One mapping a row. Raises `OSError`, `ValueError` or `csv.Error` on what does not read."""
    if path.suffix == ".parquet":
        import pyarrow.parquet

        with pyarrow.parquet.ParquetFile(path) as file:
            check_once(file.schema_arrow.names, str(path))
            return file.read().to_pylist()
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix == ".json" and text.startswith("["):
        return list(_parsed(text, "the list"))
    if path.suffix in (".jsonl", ".json"):
        lines = enumerate(text.split("\n"), 1)
        return [_parsed(line, f"line {number}") for number, line in lines if line.strip()]
    return _separated(text.lstrip("\n"), path)


def _separated(text: str, path: Path) -> list[Any]:
    """The rows of a text; its line ends, inside cells too, are those of Python, its quotation marks those of CSV.

    Raises `ValueError` or `csv.Error` where they are not used as they are in CSV: doubled inside a cell.
    """
    tabs = path.suffix != ".csv"
    if tabs and text[:1] != '"' and (bare := _BARE.search(text)):
        raise ValueError(f"{bare[0].strip()} needs no quotation marks; save it as JSONL if they are meant")
    header = text.partition("\n")[0]
    cut = "\t" if tabs else next((each for each in ",;\t" if each in header), ",")
    form: Any = {"delimiter": cut, "strict": True}
    one, other = (
        [
            cell.lstrip()
            for line in csv.reader(io.StringIO(text), skipinitialspace=skip, **form)
            for cell in line
        ]
        for skip in (False, not tabs)
    )
    if one != other:
        raise ValueError("a quotation mark stands behind a space; write none between cells")
    rows = csv.DictReader(io.StringIO(text), restkey="more cells", **form)
    check_once(rows.fieldnames or (), str(path))
    return list(rows)


def _parsed(text: str, where: str) -> Any:
    """The value of a JSON text. Raises `ValueError`, and `UsageError` for a key that comes twice in an object."""

    def pairs(found: Sequence[tuple[str, object]]) -> dict[str, object]:
        check_once([key for key, _ in found], where)
        return dict(found)

    try:
        return parse_json(text, pairs)
    except ValueError as error:
        raise ValueError(f"{where} is no JSON ({error})") from error


_TRUTHS = {"true": True, "false": False, "yes": True, "no": False}
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
    """The rows of a file with the types that whole columns have: integers, numbers or text.

    Raises `UsageError` when there is no file, it does not read, or a column of `needs` is missing.
    """
    found = raw_rows(typed_path(file)) if file else [{}]
    if missing := [name for name in needs if name not in found[0]]:
        raise UsageError(
            f"expected the columns {', '.join(needs)} in {file!r}, got {', '.join(found[0]) or 'no file'}; "
            f"{', '.join(missing)} is missing; name a file with task.file"
        )
    return typed_rows(found, file, found[0].keys())


def typed_rows(
    rows: Sequence[Mapping[str, Cell]], where: str | Path, as_written: Collection[str]
) -> tuple[Row, ...]:
    """The rows with the types of whole columns, of those that are named as they are written, of others freely.

    Raises `UsageError` for a list in a cell.
    """
    columns: dict[str, list[Value]] = {}
    for name in rows[0]:
        cells = [row[name] for row in rows]
        if lists := [number for number, cell in enumerate(cells, 1) if isinstance(cell, list)]:
            raise UsageError(
                f"expected a text or a number in row {lists[0]}, column {name!r} of {where}, got a list; only the "
                "answers of a table of prompts may be one"
            )
        columns[name] = typed(cast(list[Value], cells), freely=name not in as_written)
    return tuple(dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))


def typed(values: Sequence[Value], freely: bool = False) -> list[Value]:
    """The column in the narrowest type that writes every value as it stands: `007` stays a text, and so does `3.50`.

    Freely `3.50` is a number, and `true`, `False`, `yes` are truth values: no prompt shows them.
    """
    if all(isinstance(value, bool) for value in values):
        return list(values)
    texts = list(map(str, values))
    words = [text.strip().lower() for text in texts]
    if freely and set(words) <= _TRUTHS.keys():
        return [_TRUTHS[word] for word in words]
    with suppress(ValueError):
        whole = list(map(int, texts))
        if list(map(str, whole)) == texts and max(map(abs, whole)) < _BEYOND:
            return list(whole)
    with suppress(ValueError):
        numbers = list(map(float, texts))
        plain = not any(map(_is_name, words)) if freely else list(map(str, numbers)) == texts
        if plain and all(map(math.isfinite, numbers)):
            return list(numbers)
    return list(texts)


def _is_name(word: str) -> bool:
    """Digits that begin with 0, or that 64 bits do not hold, name something: a postal code, the number of a form."""
    digits = word.lstrip("+-")
    return (digits.isdecimal() and int(digits) >= _BEYOND) or (digits[:1] == "0" and digits[1:2].isdigit())


def kind_of(values: Sequence[Value]) -> str:
    """What a column holds, in a word: `bool`, `int`, `float`, `category` (a text of few values) or `text`."""
    if not isinstance(values[0], str):
        return type(values[0]).__name__
    return "text" if is_free(values) else "category"
