"""What this process holds now."""

from __future__ import annotations

import os
from pathlib import Path


def resident() -> float:
    """Resident memory in MB; only on Linux."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def open_files() -> int:
    """Open file handles; only on Linux."""
    return len(list(Path("/proc/self/fd").iterdir()))
