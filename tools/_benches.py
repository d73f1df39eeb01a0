"""On what a certificate is run again: a run file's own records, or the values that an exported folder carries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.codec import parse_json
from mecharule_ops.errors import ClaimNotSupported, StoreError
from mecharule_ops.loading.placement import AUTO, kept, this_machine
from mecharule_ops.loading.registry import load
from mecharule_ops.pipeline.run import Run
from mecharule_ops.pipeline.second_run import Bench, CannotRepeat, bench_of_run
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.replacement.table_files import read_table
from mecharule_ops.types import Intervention
from tools.arguments import Verify
from tools.registry import Tell

CERTIFICATES, TABLES, CONFIG = "certificates", "replacement", "config.json"
"""Names inside an exported folder."""


def bench_as_asked(run: Run, given: Verify, tell: Tell) -> Bench:
    """The run's model, by its recorded name or from elsewhere, on its own device and type or on those asked for."""
    device, dtype = given.device or run.device_here(), given.dtype or run.dtype
    return bench_of_run(run, load(given.model or run.config.model, device, dtype, tell))


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
        return str(parse_json((folder / CONFIG).read_text(encoding="utf-8"))["model"])
    except OSError as error:
        raise StoreError(f"expected an exported folder with {CONFIG}, {folder} has none") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ClaimNotSupported(
            f"expected settings in {folder / CONFIG}, they do not read: {error}"
        ) from error
