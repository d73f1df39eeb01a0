"""Keeps the screen for the app: what libraries print to the process's own outputs goes to a file."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def screen_kept() -> Iterator[Path]:
    """Descriptors 1 and 2 write to a file while the app draws on copies of them; gives the file's path.

    Textual draws on `sys.__stderr__` and asks `sys.__stdout__` for the size of the terminal.
    """
    descriptor, name = tempfile.mkstemp(prefix="mecharule-", suffix=".log")
    before = sys.__stdout__, sys.__stderr__
    saved = os.dup(1), os.dup(2)
    opened = [os.fdopen(number, "w", encoding="utf-8") for number in saved]
    try:
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        sys.__stdout__, sys.__stderr__ = opened  # type: ignore[misc]
        yield Path(name)
    finally:
        sys.__stdout__, sys.__stderr__ = before  # type: ignore[misc]
        for file in opened:
            file.flush()
        os.dup2(saved[0], 1)
        os.dup2(saved[1], 2)
        os.close(descriptor)
        for file in opened:
            file.close()
