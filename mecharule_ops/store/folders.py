"""Folders that are written for others to read."""

from __future__ import annotations

from pathlib import Path

from mecharule_ops.errors import StoreError


def make_empty(folder: Path) -> None:
    """Make the folder where it is missing. Raises `StoreError` where it cannot be made, or has files already."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        has_files = any(folder.iterdir())
    except OSError as error:
        raise StoreError(f"expected to make {folder}, the system says: {error.strerror}") from error
    if has_files:
        raise StoreError(f"expected a new or empty folder, {folder} has files; choose another")
