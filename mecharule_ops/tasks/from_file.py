"""A task whose items are the rows of a file: CSV, TSV, JSONL with one object a line, or Parquet."""

from __future__ import annotations

import sys
from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, cast

from mecharule_ops.errors import UsageError
from mecharule_ops.plain_text import typed_path
from mecharule_ops.tasks.column_types import typed
from mecharule_ops.tasks.row_files import is_index, raw_rows
from mecharule_ops.tasks.text import Row, TextTask
from mecharule_ops.types import Phase, Value


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
    path = typed_path(file)
    if not file or not path.exists():
        raise UsageError(
            f"expected a CSV, TSV, JSONL or Parquet file, got {file!r}, which is none; name one with task.file"
        )
    found = raw_rows(path)
    names = [name for name in found[0] if not is_index(name)]
    if missing := [name for name in needs if name not in names]:
        raise UsageError(
            f"expected the columns {', '.join(needs)} in {path}, got {', '.join(names)}; "
            f"{', '.join(missing)} is missing"
        )
    if listed := [name for name in names if any(isinstance(row[name], list) for row in found)]:
        raise UsageError(f"expected texts and numbers in {path}, got lists in the column {listed[0]!r}")
    columns = {name: typed([cast(Value, row[name]) for row in found]) for name in names}
    return tuple({name: columns[name][place] for name in names} for place in range(len(found)))
