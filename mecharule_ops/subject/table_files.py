"""Replacement values as a file, so that a certificate can be run again where the run file is not."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mecharule_ops.errors import StoreError
from mecharule_ops.subject.baselines import ReplacementTable
from mecharule_ops.subject.statistics import Observed
from mecharule_ops.types import Intervention


def write_table(path: Path, table: ReplacementTable) -> None:
    """Writes offsets, counts and values of every layer as `.npz`. Raises `StoreError`."""
    arrays: dict[str, Any] = {f"layer{index}": values.numpy() for index, values in enumerate(table.values)}
    arrays |= {"offsets": table.observed.offsets.numpy(), "counts": table.observed.counts.numpy()}
    try:
        np.savez_compressed(path, **arrays)
    except OSError as error:
        raise StoreError(f"expected to write {path}, the system says: {error.strerror}") from error


def read_table(path: Path, intervention: Intervention) -> ReplacementTable:
    """The values of an intervention; its hash tells whether they are the ones that were written.

    The ranges that units take in the data are not kept. Raises `StoreError` when the file does not read.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: torch.from_numpy(file[name]) for name in file.files}
        offsets, counts = arrays.pop("offsets"), arrays.pop("counts")
        values = tuple(arrays.pop(f"layer{index}") for index in range(len(arrays)))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise StoreError(
            f"expected replacement values in {path}, got {type(error).__name__}: {error}"
        ) from error
    observed = Observed(offsets=offsets, counts=counts, layers=())
    return ReplacementTable(intervention=intervention, values=values, observed=observed)
