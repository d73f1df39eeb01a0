"""Folders that are written for others: certificates that verify on another machine, a JSON file each with an index."""

from collections.abc import Iterable
from pathlib import Path

from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.codec import canonical_json, parse_json
from mecharule_ops.errors import ClaimNotSupported, UsageError, system_errors

INDEX = "index.json"
"""The names of the other files, so that none is missing or added."""


def write_bundle(folder: Path, certificates: Iterable[Certificate]) -> Path:
    """The folder, after writing `<id>.json` for each certificate and the index. Raises `StoreError`.

    The folder must be new or empty, so that no file of an older bundle stays behind.
    """
    texts = {f"{certificate.id}.json": certificate.to_json() for certificate in certificates}
    make_empty(folder)
    with system_errors(f"to write a bundle to {folder}"):
        for name, text in {**texts, INDEX: canonical_json(sorted(texts))}.items():
            (folder / name).write_text(text, encoding="ascii")
    return folder


def make_empty(folder: Path) -> None:
    """Make the folder where it is missing.

    Raises `StoreError` where it cannot be made, `UsageError` where it has files.
    """
    with system_errors(f"to make {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        has_files = any(folder.iterdir())
    if has_files:
        raise UsageError(f"expected a new or empty folder, {folder} has files; choose another")


def read_bundle(folder: Path) -> tuple[Certificate, ...]:
    """Every certificate of a bundle, by id.

    Raises `StoreError` when there is no bundle, `ClaimNotSupported` when a file is missing, added or changed.
    """
    try:
        listed = parse_json(_read(folder / INDEX))
    except ValueError as error:
        raise ClaimNotSupported(f"expected an index at {folder / INDEX}, it is not JSON: {error}") from error
    # Earlier versions wrote the files' hashes beside their ids; each file holds its own.
    if isinstance(listed, dict) and isinstance(known := listed.get("certificates"), dict):
        listed = sorted(f"{name}.json" for name in known)
    present = {path.name for path in folder.glob("*.json")} - {INDEX}
    if listed != sorted(present):
        odd = ", ".join(sorted(present ^ set(map(str, listed if isinstance(listed, list) else ()))))
        raise ClaimNotSupported(f"expected the files of the index in {folder}, missing or added: {odd}")
    read = {name: Certificate.from_json(_read(folder / name)) for name in listed}
    if changed := [name for name, certificate in read.items() if name != f"{certificate.id}.json"]:
        raise ClaimNotSupported(f"expected each certificate of {folder} in its own file, not in {changed[0]}")
    return tuple(read.values())


def _read(path: Path) -> str:
    try:
        with system_errors(f"a bundle file at {path}"):
            return path.read_text(encoding="ascii")
    except UnicodeDecodeError as error:
        raise ClaimNotSupported(f"expected ASCII text in {path}, the file was changed") from error
