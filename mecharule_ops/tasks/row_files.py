"""Rows of a table file: CSV, TSV, JSONL, Parquet, or the folder that a Hugging Face data set is saved to.

Cells are texts, numbers, truth values, or a list of these; what a column's texts mean is for the reader to say.
Every refusal is one line that names the row.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from mecharule_ops.codec import parse_json
from mecharule_ops.errors import UsageError
from mecharule_ops.types import Value

Cell = Value | list[Value]
SUFFIXES = (".csv", ".tsv", ".txt", ".jsonl", ".json", ".parquet")
"""What a table's file name ends with; `.txt` is read as TSV."""
FORMATS = "CSV, TSV, JSONL or Parquet file, or the folder of a saved Hugging Face dataset"
_SAVED = "state.json"
"""Lies in a folder that `Dataset.save_to_disk` wrote, and names its Arrow files."""
_SPLITS = "dataset_dict.json"


class _Tabs(csv.excel_tab):
    """Tabs part the cells, and a quotation mark is one."""

    quoting = csv.QUOTE_NONE


def is_table(name: str) -> bool:
    """Whether a task's name is that of a table: by its ending, or a folder that holds a data set."""
    path = Path(name).expanduser()
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
    for number, row in enumerate(found, 1):
        if set(row) != set(names) or (None in row.values() and path.suffix in (".csv", ".tsv", ".txt")):
            lacks, more = [each for each in names if row.get(each) is None], [*set(row) - set(names)]
            got = (
                f"none for {lacks[0]}" if lacks else f"also {more[0]!r}" if None not in row else "more cells"
            )
            raise UsageError(f"expected the columns {', '.join(names)} in row {number} of {path}, got {got}")
        for name, cell in row.items():
            _check(cell, f"row {number}, column {name!r} of {path}")
    return found


def _check(cell: object, where: str) -> None:
    """Raises `UsageError` for a cell that holds nothing, or something that has no type here."""
    cells = cell if isinstance(cell, list) else [cell]
    for each in cells:
        if not isinstance(each, str | int | float) or each != each:
            raise UsageError(f"expected text or a number in {where}, got {each!r}; drop or fill it")


def _read(path: Path) -> Iterable[Mapping[str, Cell]]:
    """One mapping a row. Raises `OSError`, `ValueError` or `csv.Error` on what does not read."""
    if path.is_dir():
        return _saved_dataset(path)
    if path.suffix == ".parquet":
        return _parquet(path)
    if path.suffix in (".jsonl", ".json"):
        return _json(path)
    if path.suffix in (".tsv", ".txt"):
        return _separated(path, _Tabs)
    return _separated(path, csv.excel)


def _separated(path: Path, dialect: type[csv.Dialect]) -> Iterator[Mapping[str, Cell]]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        yield from csv.DictReader(stream, dialect=dialect)


def _json(path: Path) -> Iterator[Mapping[str, Cell]]:
    """An object a line, or one list of objects."""
    with path.open(encoding="utf-8") as stream:
        if path.suffix == ".json" and stream.read(1) == "[":
            stream.seek(0)
            yield from (_object(row, number) for number, row in enumerate(parse_json(stream.read()), 1))
            return
        stream.seek(0)
        for number, line in enumerate(stream, 1):
            if line.strip():
                yield _object(_parsed(line, number), number)


def _parsed(line: str, number: int) -> object:
    try:
        return parse_json(line)
    except ValueError as error:
        raise ValueError(f"line {number} is no JSON ({error})") from error


def _object(row: object, number: int) -> Mapping[str, Cell]:
    if not isinstance(row, dict):
        raise ValueError(f"expected one JSON object of texts and numbers a line, line {number} holds another")
    return row


def _parquet(path: Path) -> Sequence[Mapping[str, Cell]]:
    import pyarrow.parquet

    return pyarrow.parquet.read_table(path).to_pylist()


def _saved_dataset(path: Path) -> Iterator[Mapping[str, Cell]]:
    """The rows of the Arrow files that a data set was saved as; no library but pyarrow is needed."""
    import pyarrow

    if (path / _SPLITS).is_file():
        splits = parse_json((path / _SPLITS).read_text(encoding="utf-8")).get("splits", [])
        raise ValueError(f"it holds the splits {', '.join(splits)}; name one, such as {path / splits[0]}")
    for each in parse_json((path / _SAVED).read_text(encoding="utf-8"))["_data_files"]:
        with pyarrow.memory_map(str(path / each["filename"])) as source:
            yield from pyarrow.ipc.open_stream(source).read_all().to_pylist()
