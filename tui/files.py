"""Files that the app writes for a person: every copy, export and report, whose paths are said."""

from __future__ import annotations

import re
from pathlib import Path

from mecharule_ops.errors import StoreError


class Outbox:
    """Writes into one folder and remembers what it wrote."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.written: list[Path] = []

    def write(self, name: str, text: str) -> Path:
        """The path of a file after writing it, in place of an older one. Raises `StoreError`."""
        path = self.folder / re.sub(r"[^\w.-]+", "-", name)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise StoreError(f"expected to write {path}, the system says: {error.strerror}") from error
        if path not in self.written:
            self.written.append(path)
        return path
