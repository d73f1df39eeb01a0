"""Gates that ablate a unit only where its rule fires: learned, chosen, tested, exported, attached to a plain model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mecharule_ops.repair.attached import LoadedGate


def load_gate(folder: str | Path) -> LoadedGate:
    """The gates in a folder that `mecharule repair export` wrote. Raises `StoreError` and `ClaimNotSupported`."""
    from mecharule_ops.repair.attached import LoadedGate
    from mecharule_ops.repair.gate_folder import read_folder
    from mecharule_ops.tasks.task_names import task_from

    stated, table = read_folder(Path(folder))
    return LoadedGate(stated, table, task_from(stated.task))
