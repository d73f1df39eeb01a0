"""A table in memory, kept as a JSONL file that tasks read like any other: what a call's `table=` becomes.

A data frame and a data set are known by their packages' names, so that neither package is imported here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from mecharule_ops.errors import StoreError, UsageError
from mecharule_ops.types import Value


def rows_of(table: object) -> list[dict[str, Value]]:
    """The rows of a pandas data frame (its index is left out), a Hugging Face data set, or an iterable of mappings.

    Raises `UsageError` for another object, a table without rows, and a cell that is no text, number or truth value,
    such as a missing one.

    >>> rows_of([{"review": "Fine.", "stars": 4}])
    [{'review': 'Fine.', 'stars': 4}]
    >>> rows_of([{"review": None}])
    Traceback (most recent call last):
    mecharule_ops.errors.UsageError: expected text or a number in row 1, column 'review', got None; drop or fill it
    """
    rows = [
        {str(name): _cell(value, number, name) for name, value in row.items()}
        for number, row in enumerate(_mappings(table), 1)
    ]
    if not rows:
        raise UsageError("expected a table with rows, got none")
    return rows


def table_file(table: object, folder: Path) -> Path:
    """The JSONL file of the table in the folder, named by its content, so that a table is kept once.

    Raises `UsageError` as `rows_of`, `StoreError` where it cannot be written.
    """
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows_of(table))
    file = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.jsonl"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"expected to write {file}, the system says: {error.strerror}") from error
    return file.resolve()


def _mappings(table: object) -> Iterable[Mapping[object, object]]:
    kind = f"{type(table).__module__.partition('.')[0]}.{type(table).__name__}"
    if kind == "pandas.DataFrame":
        return table.to_dict("records")  # type: ignore[attr-defined]
    rows = list(table) if isinstance(table, Iterable) and not isinstance(table, str | Mapping) else []
    if (not rows and kind != "builtins.list") or not all(isinstance(row, Mapping) for row in rows):
        raise UsageError(
            "expected a pandas DataFrame, one split of a Hugging Face Dataset or a list of dicts as a table, "
            f"got {kind}"
        )
    return rows


def _cell(value: object, row: int, column: object) -> Value:
    """The cell as JSON has it. Raises `UsageError`."""
    if hasattr(value, "item"):
        value = value.item()
    if not isinstance(value, str | int | float) or value != value:
        raise UsageError(
            f"expected text or a number in row {row}, column {column!r}, got {value!r}; drop or fill it"
        )
    return value
