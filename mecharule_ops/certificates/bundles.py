"""Folders that are written for others: certificates that verify on another machine, a JSON file each with an index."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.codec import parse_json
from mecharule_ops.errors import ClaimNotSupported, StoreError, system_errors

INDEX = "index.json"
_FORMAT = "mecharule certificates 1"


def write_bundle(folder: Path, certificates: Iterable[Certificate]) -> Path:
    """The folder, after writing `<id>.json` for each certificate and the index. Raises `StoreError`.

    The folder must be new or empty, so that no file of an older bundle stays behind.
    """
    texts = {certificate.id: certificate.to_json() for certificate in certificates}
    hashes = {name: _sha256(text) for name, text in texts.items()}
    index = json.dumps({"format": _FORMAT, "certificates": hashes}, indent=1, sort_keys=True) + "\n"
    make_empty(folder)
    with system_errors(f"to write a bundle to {folder}"):
        for name, text in texts.items():
            (folder / f"{name}.json").write_text(text, encoding="ascii")
        (folder / INDEX).write_text(index, encoding="ascii")
    return folder


def make_empty(folder: Path) -> None:
    """Make the folder where it is missing. Raises `StoreError` where it cannot be made, or has files already."""
    with system_errors(f"to make {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        has_files = any(folder.iterdir())
    if has_files:
        raise StoreError(f"expected a new or empty folder, {folder} has files; choose another")


def read_bundle(folder: Path) -> tuple[Certificate, ...]:
    """Every certificate of a bundle, by id.

    Raises `StoreError` when there is no bundle, `ClaimNotSupported` when a file is missing, added or changed.
    """
    hashes = _read_index(folder)
    present = {path.stem for path in folder.glob("*.json") if path.name != INDEX}
    if present != hashes.keys():
        odd = ", ".join(sorted(present ^ hashes.keys()))
        raise ClaimNotSupported(
            f"expected the files of the index in {folder}, these are missing or added: {odd}"
        )
    return tuple(_read_one(folder, name, hashes[name]) for name in sorted(hashes))


def _read_index(folder: Path) -> dict[str, str]:
    try:
        index = parse_json(_read(folder / INDEX))
    except ValueError as error:
        raise ClaimNotSupported(f"expected an index at {folder / INDEX}, it is not JSON: {error}") from error
    listed = index.get("certificates") if isinstance(index, dict) else None
    if not isinstance(listed, dict) or index != {"format": _FORMAT, "certificates": listed}:
        raise ClaimNotSupported(f"expected an index of {_FORMAT!r} at {folder / INDEX}, got another form")
    return listed


def _read_one(folder: Path, name: str, expected: str) -> Certificate:
    text = _read(folder / f"{name}.json")
    if _sha256(text) != expected:
        raise ClaimNotSupported(f"expected {name}.json as the index lists it, the file was changed")
    certificate = Certificate.from_json(text)
    if certificate.id != name:
        raise ClaimNotSupported(f"expected certificate {name}, its file holds {certificate.id}")
    return certificate


def _read(path: Path) -> str:
    try:
        with system_errors(f"a bundle file at {path}"):
            return path.read_text(encoding="ascii")
    except UnicodeDecodeError as error:
        raise ClaimNotSupported(f"expected ASCII text in {path}, the file was changed") from error


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("ascii")).hexdigest()
