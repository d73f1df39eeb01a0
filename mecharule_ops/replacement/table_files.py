"""Replacement values as named arrays: in the run file, and as a file for machines where the run file is not."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from mecharule_ops.errors import StoreError, system_errors
from mecharule_ops.replacement import baselines, statistics
from mecharule_ops.types import Intervention

_STATISTICS = ("mean", "low", "high")


def arrays_of(table: baselines.ReplacementTable) -> dict[str, np.ndarray]:
    """Ids and offsets, and of every layer the values; offsets and counts of other records and what they hold."""
    arrays = {
        "records": np.array(table.records, dtype=np.int64),
        "offsets": table.offsets.numpy(),
        "range_offsets": table.others.offsets.numpy(),
        "counts": table.others.counts.numpy(),
    }
    for layer, (values, seen) in enumerate(zip(table.values, table.others.layers, strict=True)):
        arrays[f"value{layer}"] = values.numpy()
        arrays |= {f"{name}{layer}": getattr(seen, name).numpy() for name in _STATISTICS}
    return arrays


def table_from(arrays: Mapping[str, np.ndarray], intervention: Intervention) -> baselines.ReplacementTable:
    """The table that `arrays_of` took apart, equal in every bit. Raises `KeyError` when an array is missing."""
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    layers = range(sum(name.startswith("value") for name in tensors))
    return baselines.ReplacementTable(
        intervention=intervention,
        values=tuple(tensors[f"value{layer}"] for layer in layers),
        offsets=tensors["offsets"],
        records=tuple(tensors["records"].tolist()),
        others=statistics.Observed(
            offsets=tensors["range_offsets"],
            counts=tensors["counts"],
            layers=tuple(
                statistics.UnitStatistics(**{name: tensors[f"{name}{layer}"] for name in _STATISTICS})
                for layer in layers
            ),
        ),
    )


def write_table(path: Path, table: baselines.ReplacementTable) -> None:
    """Writes the table's arrays as `.npz`. Raises `StoreError`."""
    with system_errors(f"to write {path}"):
        np.savez_compressed(path, **arrays_of(table))  # type: ignore[arg-type]


def read_table(path: Path, intervention: Intervention) -> baselines.ReplacementTable:
    """The values of an intervention; its hash tells whether they are the ones that were written.

    Raises `StoreError` when the file does not read.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            return table_from({name: file[name] for name in file.files}, intervention)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise StoreError(f"expected replacement values in {path}, {type(error).__name__}: {error}") from error
