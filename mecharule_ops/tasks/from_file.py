"""A task whose items are the rows of a file: CSV, TSV, or JSONL with one object a line."""

from __future__ import annotations

import csv
import sys
from abc import ABC
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from mecharule_ops.codec import parse_json
from mecharule_ops.errors import UsageError
from mecharule_ops.tasks.text import Row, TextTask
from mecharule_ops.types import Phase, Value


@dataclass(frozen=True, kw_only=True)
class TableTask(TextTask, ABC):
    """A task over the rows of a file; a subclass says how a row becomes a question and what counts as success."""

    file: str = ""
    """CSV, TSV or JSONL with a header or keys, from the folder that the command runs in, else the task's own."""
    phase: Phase = Phase.LAST_PROMPT
    """From the last prompt token on: a one-word answer is settled by the first generated token, which an ablation
    of later ones cannot change."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Columns that the file must have."""

    def rows(self) -> Sequence[Row]:
        """The file's rows. Raises `UsageError` as `read_table` does."""
        given = Path(self.file).expanduser()
        beside = Path(str(sys.modules[type(self).__module__].__file__)).parent / given
        chosen = beside if self.file and not given.is_file() and beside.is_file() else given
        return read_table(str(chosen) if self.file else "", self.needs)


def read_table(file: str, needs: Sequence[str] = ()) -> tuple[Row, ...]:
    """The rows of a file with the types that whole columns have: integers, numbers or text.

    Raises `UsageError` when there is no file, it does not read, or a column of `needs` is missing.
    """
    path = Path(file).expanduser()
    if not file or not path.is_file():
        raise UsageError(
            f"expected a CSV, TSV or JSONL file, got {file!r}, which is none; name one with task.file"
        )
    try:
        found = list(_lines(path))
    except (OSError, ValueError, csv.Error) as error:
        raise UsageError(f"expected rows in {path}, it does not read: {error}") from error
    if not found:
        raise UsageError(f"expected rows in {path}, got none; the first line of a table names its columns")
    names = [name for name in found[0] if name is not None]
    if missing := [name for name in needs if name not in names]:
        raise UsageError(
            f"expected the columns {', '.join(needs)} in {path}, got {', '.join(names)}; "
            f"{', '.join(missing)} is missing"
        )
    for number, row in enumerate(found, 1):
        if list(row) != names or None in row.values():
            raise UsageError(f"expected the columns {', '.join(names)} in row {number} of {path}, got others")
    kinds = {name: _kind([row[name] for row in found]) for name in names}
    return tuple({name: kinds[name](row[name]) for name in names} for row in found)


def _lines(path: Path) -> Iterator[Mapping[str, Value]]:
    """One mapping a row. Raises `ValueError` or `csv.Error` on what is none."""
    with path.open(encoding="utf-8", newline="") as stream:
        if path.suffix in (".jsonl", ".json"):
            for line in filter(str.strip, stream):
                row = parse_json(line)
                if not isinstance(row, dict) or not all(
                    isinstance(v, str | int | float) for v in row.values()
                ):
                    raise ValueError("expected one JSON object of texts and numbers a line")
                yield row
            return
        if path.suffix in (".tsv", ".txt"):
            yield from csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
        else:
            yield from csv.DictReader(stream)


def _kind(values: Sequence[Value]) -> type[int] | type[float] | type[str] | type[bool]:
    """The narrowest type that every value of a column reads as."""
    if all(isinstance(value, bool) for value in values):
        return bool
    for kind in (int, float):
        try:
            if all(str(kind(str(value))) == str(value) for value in values):
                return kind
        except ValueError:
            continue
    return str
