"""On what a certificate of an exported folder is run again: the values that the folder carries."""

from __future__ import annotations

import json
from pathlib import Path

from mecharule_ops.errors import ClaimNotSupported, StoreError
from mecharule_ops.loading.registry import load
from mecharule_ops.pipeline.second_run import Bench, CannotRepeat
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.replacement.table_files import read_table
from mecharule_ops.types import Intervention

CERTIFICATES, TABLES, CONFIG = "certificates", "replacement", "config.json"
"""Names inside an exported folder."""


def bench_of_folder(folder: Path, model: str | None) -> Bench:
    """The model that an exported folder names and the replacement values in it. Raises `StoreError`."""

    def table(intervention: Intervention, wanted: str) -> ReplacementTable:
        path = folder / TABLES / f"{wanted}.npz"
        if not path.is_file():
            raise CannotRepeat(
                f"expected replacement values {wanted} at {path}, there are none; export again"
            )
        return read_table(path, intervention)

    return Bench(subject=load(model or model_named(folder)), table=table)


def model_named(folder: Path) -> str:
    """The model of an exported folder's config."""
    try:
        return str(json.loads((folder / CONFIG).read_text(encoding="utf-8"))["model"])
    except OSError as error:
        raise StoreError(f"expected an exported folder with {CONFIG}, {folder} has none") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ClaimNotSupported(
            f"expected settings in {folder / CONFIG}, they do not read: {error}"
        ) from error
