"""Tables with typed columns, and a task whose items are the rows of one: CSV, TSV, JSON, Parquet or an eval's log.

Cells of a file are texts, numbers, truth values, or a list of these; every refusal is one line that names the row. A
column's type is guessed from all its values: truth values, integers, numbers or text. Columns in which a data frame
keeps its row numbers are left out.
"""

import csv
import gzip
import io
import json
import math
import re
import sys
import zipfile
import zlib
from abc import ABC
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

from mecharule_ops import codec, plain_text, types
from mecharule_ops.errors import UsageError, did_you_mean
from mecharule_ops.loading.shape import first_line
from mecharule_ops.tasks.text import Row, TextTask, is_free

Cell = types.Value | list[types.Value]
SUFFIXES = (".csv", ".tsv", ".txt", ".jsonl", ".json", ".parquet", ".eval")
"""What a table's file name ends with, in letters of any size, a `.gz` behind it or none; `.txt` is read as TSV."""
_BARE = re.compile(r'(?m)(?:^|\t)"[^"\t\n]+"(?:\t|$)')
"""A cell of a tab-separated file in quotation marks that it does not need."""
_INDEX = re.compile(r"\s*|Unnamed: \d+|__index_level_\d+__")
"""The names under which a data frame's row numbers come into a file."""
HUB = "hf:"
"""Begins the name of a set of the Hugging Face hub, `hf:NAME:CONFIG#SPLIT`, read by the package `datasets`, offline
too; the configuration may be left out, and so may the split, which is train then."""
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
csv.field_size_limit(1 << 30)


def is_table(name: str) -> bool:
    """Whether a task's name is that of a table, by its ending."""
    return name.startswith(HUB) or (_kind(plain_text.typed_path(name)) in SUFFIXES and name not in SUFFIXES)


def _kind(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def is_separated(path: Path) -> bool:
    """Whether columns are separated by a sign, with their names in the first line."""
    return _kind(path) in (".csv", ".tsv", ".txt")


def read_rows(path: Path, at: str = "") -> list[Any]:
    """The rows of a file as they are, without a data frame's row numbers; `at` is where a JSON object has them.

    Raises `UsageError` when the file is not there or does not read, has no rows, or two columns of one name.
    """
    if not str(path).startswith(HUB) and (not path.is_file() or _kind(path) not in SUFFIXES):
        near = did_you_mean(path.name, (one.name for one in path.parent.glob("*") if is_table(one.name)))
        raise UsageError(
            f"expected a CSV, TSV, JSONL or Parquet file, got {str(path)!r}, which is none{near}; put it there, "
            f"a run's own into this folder, or save it as {' or '.join(SUFFIXES[:2])}"
        )
    try:
        found = _read(path, at)
    except (OSError, ValueError, csv.Error, EOFError, zlib.error, zipfile.BadZipFile, ImportError) as error:
        said = first_line(error)
        if isinstance(error, csv.Error):
            said = said.replace("unexpected end of data", "a quotation mark is never closed")
        raise UsageError(f"expected rows in {path}, it does not read: {said}") from error
    if not found:
        raise UsageError(f"expected rows in {path}, got none; the columns prompt and answer are needed")
    return [dict(_flat(row)) if isinstance(row, dict) else row for row in found]


def _flat(row: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Cells by their columns; those of an object, and of the first in a list of objects or lists, by dotted names.

    Row numbers of a data frame are left out; None names the cells beyond the columns.
    """
    for name, cell in row.items():
        if not above and name is not None and _INDEX.fullmatch(name):
            continue
        inside = _opened(cell)
        if isinstance(inside, dict) and inside:
            yield from _flat(inside, f"{above}{name}.")
        else:
            yield f"{above}{name}" if name is not None else name, cell


def _opened(cell: Any) -> Any:
    """What a list holds by names: what each says where all speak once, else its first object or list; else the cell.

    One that speaks is an object with `role` and `content`, or `from` and `value`, of text.
    """
    if not isinstance(cell, list) or not (cell and isinstance(cell[0], dict | list)):
        return cell
    first = cell[0] if isinstance(cell[0], dict) else dict(enumerate(cell[0]))
    who, what = ("role", "content") if "role" in first else ("from", "value")
    said = [(str(one.get(who, "")), one.get(what, 0)) for one in cell if isinstance(one, dict)]
    turns = {name: text for name, text in said if name and isinstance(text, str | None)}
    return turns if len(turns) == len(cell) else {0: first} if first else cell


def raw_rows(path: Path) -> list[Mapping[str, Cell]]:
    """The same, all with the same columns and whole cells. Raises `UsageError` where a row or a cell is another."""
    found = read_rows(path)
    names = dict.fromkeys(name for row in found if isinstance(row, dict) for name in row)
    for number, row in enumerate(found, 1):
        for name in names or [""]:
            cell = row.get(name) if isinstance(row, dict) else None
            for value, where in ((name, "column names"), (cell, f"row {number}, column {name!r}")):
                if wants := wanting(value):
                    raise UsageError(f"expected {wants} in {where} of {path}, got {value!r}; drop or fill it")
    return found


def wanting(value: object) -> str:
    """What a cell should be, where it is no text, finite number or truth value; empty where it is."""
    if not isinstance(value, str | int | float) or (isinstance(value, float) and not math.isfinite(value)):
        return "text or a number"
    half = isinstance(value, str) and re.search("[\ud800-\udfff]", value)
    return "Unicode text, not half a surrogate pair," if half else ""


def check_once(names: Sequence[str], where: str) -> None:
    """Raises `UsageError` where two columns have one name, since one of them would be lost."""
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise UsageError(
            f"expected columns of different names in {where}, got two called {twice[0]!r}; rename one"
        )


def _read(path: Path, at: str) -> list[Any]:
    """One mapping a row. Raises `OSError`, `ValueError` or `csv.Error` on what does not read."""
    kind = _kind(path)
    if (named := str(path)).startswith(HUB):
        from datasets import load_dataset

        name, _, split = named.removeprefix(HUB).partition("#")
        name, _, configuration = name.partition(":")
        return load_dataset(name, configuration or None, split=split or "train").to_list()
    if kind == ".parquet":
        import pyarrow.parquet

        with pyarrow.parquet.ParquetFile(path) as file:
            check_once(file.schema_arrow.names, str(path))
            return file.read().to_pylist()
    if kind == ".eval":
        with zipfile.ZipFile(path) as log:
            names = [name for name in log.namelist() if re.match(r"samples/.*\.json$", name)]
            return [codec.parse_json(log.read(name)) for name in names]
    whole = path.read_bytes()
    text = decoded_text(gzip.decompress(whole) if path.name.lower().endswith(".gz") else whole)
    text = re.sub(r"\A(?:(?:[^\S\n]*|sep=.)\n)+", "", text)
    if is_separated(path):
        return _separated(text, kind)
    values = list(_values(text))
    return _within(values[0], at) if len(values) == 1 and (at or kind == ".json") else values


def decoded_text(whole: bytes) -> str:
    """What a file says, its line ends those of Python, without a byte order mark.

    Raises `ValueError` for bytes that are no UTF-8, nor UTF-16 behind its mark.
    """
    try:
        text = whole.decode("utf-16" if whole[:2] in _UTF16 else "utf-8-sig")
    except ValueError:
        raise ValueError("it is no UTF-8, but perhaps Windows text (cp1252); save it as UTF-8") from None
    if "\0" in text:
        raise ValueError("it holds zero bytes, as UTF-16 without its mark does; save it as UTF-8")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _within(found: Any, at: str) -> list[Any]:
    """The rows of a JSON value: of an object those at a dotted name, else its one list of objects, else `_oriented`."""
    for name in at.split(".") if at else ():
        if not isinstance(found, dict) or name not in found:
            raise ValueError(f"it has no {name!r} for --rows, only {', '.join(found)[:200]}")
        found = found[name]
    if not isinstance(found, dict):
        return found if isinstance(found, list) else [found]
    lists = [key for key, part in found.items() if isinstance(part, list) and isinstance((*part, 0)[0], dict)]
    if len(lists) > 1 and "samples" not in lists:
        raise ValueError(f"it has several lists of rows; choose one with --rows: {', '.join(lists)}")
    return list(found["samples" if "samples" in lists else lists[0]]) if lists else _oriented(found)


def _oriented(found: Mapping[str, Any]) -> list[Any]:
    """The rows of an object of columns, as data frames write it, or of rows by their names; else itself alone."""
    names, cells = found.get("columns"), found.get("data")
    if isinstance(names, list) and isinstance(cells, list) and all(isinstance(row, list) for row in cells):
        check_once(list(map(str, names)), "columns")
        return [dict(zip(map(str, names), row, strict=True)) for row in cells]
    parts = [dict(enumerate(part)) if isinstance(part, list) else part for part in found.values()]
    if len(parts) < 2 or not all(isinstance(part, dict) and part.keys() == parts[0].keys() for part in parts):
        return [found]
    if not all(str(key).isdecimal() for key in parts[0]):
        return parts
    return [{name: part[key] for name, part in zip(found, parts, strict=True)} for key in parts[0]]


def _separated(text: str, kind: str) -> list[Any]:
    """The rows of a text; its line ends, inside cells too, are those of Python, its quotation marks those of CSV.

    Raises `ValueError` or `csv.Error` where they are not used as they are in CSV: doubled inside a cell.
    """
    tabs = kind != ".csv"
    if tabs and text[:1] != '"' and (bare := _BARE.search(text)):
        raise ValueError(f"{bare[0].strip()} needs no quotation marks; save it as JSONL if they are meant")
    header = text.partition("\n")[0]
    cut = "\t" if tabs else next((each for each in ",;\t|" if each in header), ",")
    form: Any = {"delimiter": cut, "strict": True}
    reads = (csv.reader(io.StringIO(text), skipinitialspace=skip, **form) for skip in (False, not tabs))
    one, other = ([cell.lstrip() for line in read for cell in line] for read in reads)
    if one != other:
        raise ValueError("a quotation mark stands behind a space; write none between cells")
    rows = csv.DictReader(io.StringIO(text), **form)
    check_once(rows.fieldnames or (), "the first line")
    return list(rows)


def _values(text: str) -> Iterator[Any]:
    """JSON values one behind the other, such as lines of JSONL or objects over several lines.

    Raises `ValueError`, and `UsageError` for a key that comes twice in an object.
    """
    line, start = 1, 0

    def pairs(found: Sequence[tuple[str, object]]) -> dict[str, object]:
        check_once([key for key, _ in found], f"line {line}")
        return dict(found)

    decoder, blank = json.JSONDecoder(object_pairs_hook=pairs), re.compile(r"[\s\ufeff]*")
    while (begin := blank.match(text, start).end()) < len(text):  # type: ignore[union-attr]
        line += text.count("\n", start, begin)
        try:
            value, start = decoder.raw_decode(text, begin)
        except ValueError as error:
            raise ValueError(f"line {line} is no JSON ({error})") from error
        except RecursionError:
            raise ValueError(f"line {line} is no JSON (it is nested too deep)") from None
        line += text.count("\n", begin, start)
        yield value


_TRUTHS = {"true": True, "false": False, "yes": True, "no": False}
_BEYOND = 2**53
"""Whole numbers below it are compared exactly; another is a text, since conditions read numbers of 64 bits."""


@dataclass(frozen=True, kw_only=True)
class TableTask(TextTask, ABC):
    """A task over the rows of a file; a subclass says how a row becomes a question and what counts as success."""

    file: str = ""
    """CSV, TSV, JSONL or Parquet with named columns, from the folder that the command runs in, else the task's own."""
    phase: types.Phase = types.Phase.LAST_PROMPT
    """From the last prompt token on: a one-word answer is settled by the first generated token, which an ablation
    of later ones cannot change."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Columns that the file must have."""

    def rows(self) -> Sequence[Row]:
        """The file's rows. Raises `UsageError` as `read_table` does."""
        given = plain_text.typed_path(self.file)
        beside = Path(str(sys.modules[type(self).__module__].__file__)).parent / given
        chosen = beside if self.file and not given.is_file() and beside.is_file() else given
        return read_table(str(chosen) if self.file else "", self.needs)


def read_table(file: str, needs: Sequence[str] = ()) -> tuple[Row, ...]:
    """The rows of a file with the types that whole columns have: integers, numbers or text.

    Raises `UsageError` when there is no file, it does not read, or a column of `needs` is missing.
    """
    found = raw_rows(plain_text.typed_path(file)) if file else [{}]
    if missing := [name for name in needs if name not in found[0]]:
        raise UsageError(
            f"expected the columns {', '.join(needs)} in {file!r}, got {', '.join(found[0]) or 'no file'}; "
            f"{', '.join(missing)} is missing; name a file with task.file"
        )
    return typed_rows(found, found[0].keys())


def typed_rows(rows: Sequence[Mapping[str, Cell]], as_written: Collection[str]) -> tuple[Row, ...]:
    """The rows with the types of whole columns, of those that are named as they are written, of others freely."""
    columns: dict[str, list[types.Value]] = {}
    for name in rows[0]:
        cells = [row[name] for row in rows]
        columns[name] = typed(cast(list[types.Value], cells), freely=name not in as_written)
    return tuple(dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))


def typed(values: Sequence[types.Value], freely: bool = False) -> list[types.Value]:
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
    """Digits that begin with 0, or are not compared exactly, name something: a postal code, the number of a form."""
    digits = word.lstrip("+-")
    return (digits.isdecimal() and int(digits) >= _BEYOND) or (digits[:1] == "0" and digits[1:2].isdigit())


def kind_of(values: Sequence[types.Value]) -> str:
    """What a column holds, in a word: `bool`, `int`, `float`, `category` (a text of few values) or `text`."""
    if not isinstance(values[0], str):
        return type(values[0]).__name__
    return "text" if is_free(values) else "category"
