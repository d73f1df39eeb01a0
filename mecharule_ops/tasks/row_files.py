"""Rows of a table file: CSV, TSV, JSONL, Parquet, or the folder that a Hugging Face data set is saved to.

Cells are texts, numbers, truth values, or a list of these; what a column's texts mean is for the reader to say.
Every refusal is one line that names the row.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mecharule_ops.codec import parse_json
from mecharule_ops.errors import UsageError
from mecharule_ops.plain_text import typed_path
from mecharule_ops.types import Value

if TYPE_CHECKING:
    import pyarrow

Cell = Value | list[Value]
SUFFIXES = (".csv", ".tsv", ".txt", ".jsonl", ".json", ".parquet")
"""What a table's file name ends with; `.txt` is read as TSV."""
FORMATS = "CSV, TSV, JSONL or Parquet file, or the folder of a saved Hugging Face dataset"
_SAVED = "state.json"
"""Lies in a folder that `Dataset.save_to_disk` wrote, and names its Arrow files."""
_SPLITS = "dataset_dict.json"
_INDEX = re.compile(r"\s*|Unnamed: \d+|__index_level_\d+__")
"""The names under which a data frame's row numbers come into a file."""
_SPACED_QUOTE = re.compile(r'[,;\t] +"')


def is_table(name: str) -> bool:
    """Whether a task's name is that of a table: by its ending, or a folder that holds a data set."""
    path = typed_path(name)
    saved = path.is_dir() and any((path / each).is_file() for each in (_SAVED, _SPLITS))
    return saved or (path.suffix in SUFFIXES and name != path.suffix)


def raw_rows(path: Path) -> list[Mapping[str, Cell]]:
    """The rows as the file has them, all with the same columns.

    Raises `UsageError` when the file is not there or does not read, has no rows, or a row has other columns than
    the first or an empty cell.
    """
    if not path.exists():
        raise UsageError(f"expected a {FORMATS}, got {str(path)!r}, which is none; check its path")
    if not path.is_dir() and path.suffix not in SUFFIXES:
        raise UsageError(f"expected a {FORMATS}, got {path.name!r}; save it as {' or '.join(SUFFIXES[:2])}")
    try:
        found = list(_read(path))
    except (OSError, ValueError, csv.Error) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UsageError(f"expected rows in {path}, it does not read: {reason}") from error
    if not found:
        raise UsageError(f"expected rows in {path}, got none; the columns prompt and answer are needed")
    names = [name for name in found[0] if name is not None]
    if not all(map(_is_unicode, names)):
        raise UsageError(
            f"expected column names of Unicode text in {path}, got half a surrogate pair; rename it"
        )
    for number, row in enumerate(found, 1):
        if set(row) != set(names) or (None in row.values() and path.suffix in (".csv", ".tsv", ".txt")):
            lacks, more = [each for each in names if row.get(each) is None], [*set(row) - set(names)]
            got = (
                f"none for {lacks[0]}" if lacks else f"also {more[0]!r}" if None not in row else "more cells"
            )
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
    if isinstance(value, str) and not _is_unicode(value):
        raise UsageError(
            f"expected Unicode text in {where}, got half a surrogate pair; write the character whole"
        )


def check_once(names: Sequence[str], where: str) -> None:
    """Raises `UsageError` where two columns have one name, since one of them would be lost."""
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise UsageError(
            f"expected columns of different names in {where}, got two called {twice[0]!r}; rename one"
        )


def _is_unicode(text: str) -> bool:
    """Whether no half of a surrogate pair stands alone in it."""
    return not re.search("[\ud800-\udfff]", text)


def _read(path: Path) -> Iterable[Mapping[str, Cell]]:
    """One mapping a row. Raises `OSError`, `ValueError` or `csv.Error` on what does not read."""
    if path.is_dir():
        return _saved_dataset(path)
    if path.suffix == ".parquet":
        import pyarrow.parquet

        with pyarrow.parquet.ParquetFile(path) as file:
            return _of_arrow(file.read(), path)
    if path.suffix in (".jsonl", ".json"):
        return _json(path)
    return _separated(path)


def _separated(path: Path) -> Iterator[Mapping[str, Cell]]:
    """The rows of a text; its line ends, inside cells too, are those of Python.

    Raises `ValueError` or `csv.Error` where quotation marks are not used as they are in CSV: doubled inside a cell.
    """
    text, tabs = path.read_text(encoding="utf-8-sig"), path.suffix != ".csv"
    header = text.partition("\n")[0]
    cut = "\t" if tabs else next((each for each in ",;\t" if each in header), ",")
    if tabs and not _is_quoted(text):
        lines = csv.reader(io.StringIO(text), delimiter=cut, quoting=csv.QUOTE_NONE)
    elif _SPACED_QUOTE.search(text) and _cells(text, cut, False) != _cells(text, cut, True):
        raise ValueError("a quotation mark stands behind a space; write none between cells")
    else:
        lines = csv.reader(io.StringIO(text), delimiter=cut, strict=True)
    names = next(lines, [])
    check_once(names, str(path))
    for line in filter(None, lines):
        yield dict(itertools.zip_longest(names, line))


def _cells(text: str, cut: str, spaced: bool) -> list[list[str]]:
    """Each line's cells without the spaces before them, where these may be `spaced` apart or belong to the cells."""
    lines = csv.reader(io.StringIO(text), delimiter=cut, strict=True, skipinitialspace=spaced)
    return [[cell.lstrip() for cell in line] for line in lines]


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


def _json(path: Path) -> Iterator[Mapping[str, Cell]]:
    """An object a line, or one list of objects."""
    with path.open(encoding="utf-8-sig") as stream:
        if path.suffix == ".json" and stream.read(1) == "[":
            stream.seek(0)
            rows = _parsed(stream.read(), "the list")
            yield from (_object(row, number) for number, row in enumerate(rows, 1))
            return
        stream.seek(0)
        for number, line in enumerate(stream, 1):
            if line.strip():
                yield _object(_parsed(line, f"line {number}"), number)


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


def _of_arrow(table: pyarrow.Table, path: Path) -> list[Mapping[str, Cell]]:
    check_once(table.column_names, str(path))
    return table.to_pylist()


def _saved_dataset(path: Path) -> Iterator[Mapping[str, Cell]]:
    """The rows of the Arrow files that a data set was saved as; no library but pyarrow is needed."""
    import pyarrow

    if (path / _SPLITS).is_file():
        splits = parse_json((path / _SPLITS).read_text(encoding="utf-8")).get("splits", [])
        raise ValueError(f"it holds the splits {', '.join(splits)}; name one, such as {path / splits[0]}")
    for each in parse_json((path / _SAVED).read_text(encoding="utf-8"))["_data_files"]:
        with pyarrow.memory_map(str(path / each["filename"])) as source:
            yield from _of_arrow(pyarrow.ipc.open_stream(source).read_all(), path)
