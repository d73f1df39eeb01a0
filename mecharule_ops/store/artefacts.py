"""Bytes of what a run keeps by name: JSON values, an array, or named arrays, each with a hash.

Arrays travel as `.npy` members of a deflated zip (an `.npz` file that any NumPy reads). The hash covers
names, types, shapes and values, not the compression. Nothing is ever pickled.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from mecharule_ops.codec import canonical_json
from mecharule_ops.errors import StoreError, UsageError

_SINGLE = "array"
_FORMS = ("json", "array", "arrays")
_EPOCH = (1980, 1, 1, 0, 0, 0)


class PackedArtefact(NamedTuple):
    """An artefact as it lies in the store."""

    form: str
    """`json`, `array` or `arrays`."""
    sha256: str
    """Of the content."""
    crc: int
    """Of the body: unzipping is tried on whole bytes only."""
    body: bytes


def pack(value: object) -> PackedArtefact:
    """The stored form. Raises `UsageError` on anything but a JSON value, an array or a mapping of arrays."""
    if isinstance(value, np.ndarray):
        return _pack_arrays("array", {_SINGLE: value})
    if isinstance(value, Mapping) and value and all(isinstance(v, np.ndarray) for v in value.values()):
        return _pack_arrays("arrays", value)
    body = canonical_json(value).encode("ascii")
    return PackedArtefact(
        form="json", sha256=hashlib.sha256(body).hexdigest(), crc=zlib.crc32(body), body=body
    )


def unpack(packed: PackedArtefact) -> object:
    """The value: JSON (tuples come back as lists), an array, or a dict of arrays.

    Raises `StoreError` when the content is not what was hashed.
    """
    whole = isinstance(packed.body, bytes) and packed.form in _FORMS
    if not whole or zlib.crc32(packed.body) != packed.crc:
        raise StoreError(
            "expected an artefact as it was written, its bytes are damaged; restore it from a copy"
        )
    members = {"": packed.body}
    if packed.form != "json":
        with zipfile.ZipFile(io.BytesIO(packed.body)) as archive:
            members = {name.removesuffix(".npy"): archive.read(name) for name in archive.namelist()}
    if _hash(members) != packed.sha256:
        raise StoreError(
            "expected an artefact as it was written, its content has changed; restore it from a copy"
        )
    if packed.form == "json":
        return json.loads(packed.body)
    arrays = {name: np.load(io.BytesIO(npy), allow_pickle=False) for name, npy in members.items()}
    return arrays[_SINGLE] if packed.form == "array" else arrays


def _pack_arrays(form: str, arrays: Mapping[str, np.ndarray]) -> PackedArtefact:
    members = {name: _npy(name, array) for name, array in arrays.items()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, npy in members.items():
            entry = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, npy)
    body = buffer.getvalue()
    return PackedArtefact(form=form, sha256=_hash(members), crc=zlib.crc32(body), body=body)


def _hash(members: Mapping[str, bytes]) -> str:
    if members.keys() == {""}:
        return hashlib.sha256(members[""]).hexdigest()
    digest = hashlib.sha256()
    for name, npy in sorted(members.items()):
        digest.update(f"{len(name)}:{name}:{len(npy)}:".encode())
        digest.update(npy)
    return digest.hexdigest()


def _npy(name: str, array: np.ndarray) -> bytes:
    if array.dtype.hasobject:
        raise UsageError(f"expected an array of numbers, bools or text, {name!r} holds Python objects")
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()
