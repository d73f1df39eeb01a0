"""How much memory is free, and whether an error means that it ran out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def free_bytes(*devices: torch.device) -> int:
    """Free memory of the device, of several that of the one with least."""
    import torch

    return min(
        torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else free_memory() for device in devices
    )


def free_memory() -> int:
    """What the system can hand out without swapping."""
    meminfo = Path("/proc/meminfo")
    if meminfo.is_file():
        lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines() if ":" in line)
        if "MemAvailable" in lines:
            return int(lines["MemAvailable"].split()[0]) * 1024
    # Half of what is installed, where the system does not say what is free.
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def is_out_of_memory(error: BaseException) -> bool:
    """True for `MemoryError` and for the errors torch raises when an allocation fails, on any device."""
    import torch

    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and ("out of memory" in text or "can't allocate memory" in text)
