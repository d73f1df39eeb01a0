"""Bytes of what a run keeps by name: JSON values, an array, or named arrays, each with a hash.

Arrays are an `.npz` file that any NumPy reads; its members bear no time, so equal content has equal bytes. Nothing is
ever pickled.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from mecharule_ops.codec import canonical_json
from mecharule_ops.errors import StoreError, UsageError

_SINGLE = "array"


class PackedArtefact(NamedTuple):
    """An artefact as it lies in the store."""

    form: str
    """`json`, `array` or `arrays`."""
    sha256: str
    """Of the form and the body."""
    body: bytes


def pack_artefact(value: object) -> PackedArtefact:
    """The stored form. Raises `UsageError` on anything but a JSON value, an array or a mapping of arrays."""
    if isinstance(value, np.ndarray):
        form, body = "array", _npz({_SINGLE: value})
    elif isinstance(value, Mapping) and value and all(isinstance(v, np.ndarray) for v in value.values()):
        form, body = "arrays", _npz(value)
    else:
        form, body = "json", canonical_json(value).encode("ascii")
    return PackedArtefact(form=form, sha256=_hash(form, body), body=body)


def unpack(packed: PackedArtefact) -> object:
    """The value: JSON (tuples come back as lists), an array, or a dict of arrays.

    Raises `StoreError` when the content is not what was hashed.
    """
    whole = isinstance(packed.body, bytes) and isinstance(packed.form, str)
    if not whole or _hash(packed.form, packed.body) != packed.sha256:
        raise StoreError(
            "expected an artefact as it was written, its bytes are damaged; restore it from a copy"
        )
    if packed.form == "json":
        return json.loads(packed.body)
    with np.load(io.BytesIO(packed.body), allow_pickle=False) as file:
        arrays = dict(file)
    return arrays[_SINGLE] if packed.form == "array" else arrays


def _npz(arrays: Mapping[str, np.ndarray]) -> bytes:
    buffer = io.BytesIO()
    try:
        np.savez_compressed(buffer, allow_pickle=False, **dict(sorted(arrays.items())))
    except ValueError as error:
        raise UsageError(f"expected arrays of numbers, bools or text, got {error}") from error
    return buffer.getvalue()


def _hash(form: str, body: bytes) -> str:
    return hashlib.sha256(form.encode() + body).hexdigest()
