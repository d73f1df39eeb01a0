"""On what a certificate is run again: a run file's own records, or the values that an exported folder carries."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.errors import ClaimNotSupported, StoreError
from mecharule_ops.loading.placement import AUTO, kept, this_machine
from mecharule_ops.loading.registry import load
from mecharule_ops.pipeline.run import Run
from mecharule_ops.pipeline.second_run import Bench, CannotRepeat
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.replacement.table_files import read_table
from mecharule_ops.types import Intervention
from tools.arguments import Verify
from tools.registry import Tell

CERTIFICATES, TABLES, CONFIG = "certificates", "replacement", "config.json"
"""Names inside an exported folder."""


def bench_of_run(run: Run, given: Verify, tell: Tell) -> Bench:
    """The run's model, by its recorded name or from elsewhere, and its replacement values measured anew.

    They are measured before anything else: TransformerLens changes how the model computes attention, and with it
    their last digits. On another kind of device, or in another type, the last digits differ, and the run's own
    values are used.
    """
    subject = load(
        given.model or run.config.model, given.device or run.device_here(), given.dtype or run.dtype, tell
    )
    made = run.placed
    alike = made is None or (made["dtype"], made["device"].split(":")[0]) == (
        subject.dtype_name,
        subject.device.type,
    )
    interventions = [run.intervention(basis) for basis in run.config.bases]
    tables = {
        how: run.measured_replacement(how, subject) if alike else run.replacement(how)
        for how in interventions
    }

    def table(intervention: Intervention, wanted: str) -> ReplacementTable:
        if intervention not in tables:
            raise CannotRepeat(
                f"expected an intervention of run {run.id}, got {intervention}; name its own run"
            )
        return tables[intervention]

    return Bench(subject=subject, table=table, task=run.task)


def bench_of_folder(folder: Path, certificates: Sequence[Certificate], given: Verify, tell: Tell) -> Bench:
    """The model that an exported folder names, as its certificates say, and the replacement values in it.

    Raises `StoreError`.
    """

    def table(intervention: Intervention, wanted: str) -> ReplacementTable:
        path = folder / TABLES / f"{wanted}.npz"
        if not path.is_file():
            raise CannotRepeat(
                f"expected replacement values {wanted} at {path}, there are none; export again"
            )
        return read_table(path, intervention)

    made = {(one.device, one.dtype) for one in certificates} or {("cpu", "float32")}
    device, dtype = min(made)
    where = given.device or kept(this_machine(), AUTO, device)
    subject = load(given.model or model_named(folder), where, given.dtype or dtype, tell)
    return Bench(subject=subject, table=table)


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
