"""A folder that holds gates: `gate.json` says which, of which model, and `values.safetensors` what units are set to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mecharule_ops.certificates.bundles import make_empty
from mecharule_ops.codec import decode, encode, parse_json
from mecharule_ops.errors import ClaimNotSupported, StoreError, UsageError, system_errors
from mecharule_ops.findings.repair_outcome import Gate, Policy
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.replacement.table_files import arrays_of, table_from
from mecharule_ops.types import Baseline, Basis, Intervention, Phase, Value

FORMAT = 2
"""Version of the folder's layout; another one is refused."""
GATE, VALUES = "gate.json", "values.safetensors"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateFile:
    """What `gate.json` says."""

    format: int
    run: str
    model: str
    """What the run called it."""
    model_hash: str
    tokenizer_hash: str
    task: Mapping[str, int | float | str | bool]
    """The task's own description."""
    basis: Basis
    baseline: Baseline
    phase: Phase
    values_hash: str
    """Of the table of replacement values."""
    gates: tuple[Gate, ...]
    """In the order in which they were chosen."""
    policy: Policy
    versions: Mapping[str, str]
    """Of the packages that made it."""

    @property
    def intervention(self) -> Intervention:
        """How a unit is ablated."""
        return Intervention(basis=self.basis, baseline=self.baseline, phase=self.phase)


def write_folder(folder: Path, stated: GateFile, table: ReplacementTable) -> None:
    """Both files. Raises `StoreError` when they cannot be written, `ClaimNotSupported` when the table is another."""
    from safetensors.numpy import save_file

    if table.hash != stated.values_hash:
        raise ClaimNotSupported(
            f"expected replacement values {stated.values_hash}, this machine computes {table.hash}; "
            "export where the run was made"
        )
    make_empty(folder)
    text = json.dumps(encode(stated), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    with system_errors(f"to write gates to {folder}"):
        (folder / GATE).write_text(text, encoding="utf-8")
        save_file(arrays_of(table), folder / VALUES)


def read_folder(folder: Path) -> tuple[GateFile, ReplacementTable]:
    """What was written. Raises `StoreError` on files that do not read, `ClaimNotSupported` on what they do not say."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        with system_errors(f"{GATE} in {folder}"):
            said: Any = parse_json((folder / GATE).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ClaimNotSupported(f"expected JSON in {folder / GATE}, it does not read: {error}") from error
    version = said.get("format") if isinstance(said, dict) else None
    if version != FORMAT:
        raise ClaimNotSupported(
            f"expected gates of format {FORMAT}, got {version!r}; export them again with this version"
        )
    try:
        stated = decode(GateFile, said)
    except UsageError as error:
        raise ClaimNotSupported(f"expected gates in {folder / GATE}: {error}") from error
    try:
        table = table_from(load_file(folder / VALUES), stated.intervention)
    except (OSError, KeyError, SafetensorError) as error:
        raise StoreError(f"expected replacement values in {folder / VALUES}: {error}") from error
    if table.hash != stated.values_hash:
        raise ClaimNotSupported(
            f"expected replacement values {stated.values_hash} in {folder / VALUES}, got {table.hash}; export again"
        )
    return stated, table


def described(task: Mapping[str, Value]) -> dict[str, Value]:
    """A task's description as JSON holds it."""
    return {name: value.value if hasattr(value, "value") else value for name, value in task.items()}
