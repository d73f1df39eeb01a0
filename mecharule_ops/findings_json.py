"""Findings as JSON text and back, strictly: unknown, missing or mistyped fields are refused by name.

The shape follows the dataclasses' own annotations, so a new field needs no code here. Units are written as
they print (`m4.1234`), enums by value, mappings and tuples as objects and arrays. NaN and infinity are
refused: JSON has neither, and a count never needs them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from mecharule_ops.errors import UsageError
from mecharule_ops.findings import Findings
from mecharule_ops.types import Neuron

FORMAT = "mecharule-findings/1"
"""Named in the text, so that an older reader refuses a newer shape in one line."""


def to_json(findings: Findings) -> str:
    """JSON text, keys sorted, two-space indent: equal findings give equal bytes.

    Raises `UsageError` for a number that is not finite or a value of a foreign type.
    """
    document = {"format": FORMAT, "findings": _encode(findings, "findings")}
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)


def from_json(text: str) -> Findings:
    """The findings that `to_json` wrote. Raises `UsageError` naming the field that does not fit."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"expected findings as JSON, got text that does not parse: {error}") from error
    if not isinstance(document, dict) or set(document) != {"format", "findings"}:
        raise UsageError("expected an object with the keys format and findings; export the run again")
    if document["format"] != FORMAT:
        raise UsageError(f"expected format {FORMAT}, got {document['format']!r}; export the run again")
    findings = _decode(Findings, document["findings"], "findings")
    assert isinstance(findings, Findings)
    return findings


def _encode(value: Any, path: str) -> Any:
    if isinstance(value, Neuron):
        return str(value)
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return {
            field.name: _encode(getattr(value, field.name), f"{path}.{field.name}") for field in fields(value)
        }
    if isinstance(value, tuple):
        return [_encode(item, f"{path}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, Mapping):
        return {str(key): _encode(item, f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"expected a finite number at {path}, got {value}")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise UsageError(f"expected a plain value at {path}, got {type(value).__name__}")


def _decode(kind: Any, value: Any, path: str) -> Any:
    if isinstance(kind, UnionType):
        return _decode_union(get_args(kind), value, path)
    if kind is Neuron:
        return Neuron.parse(_plain(str, value, path))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _decode_enum(kind, value, path)
    if is_dataclass(kind):
        return _decode_fields(kind, value, path)
    if get_origin(kind) is tuple:
        item_kind = get_args(kind)[0]
        items = _plain(list, value, path)
        return tuple(_decode(item_kind, item, f"{path}[{index}]") for index, item in enumerate(items))
    if get_origin(kind) is Mapping:
        item_kind = get_args(kind)[1]
        entries = _plain(dict, value, path)
        return {key: _decode(item_kind, item, f"{path}.{key}") for key, item in entries.items()}
    return _plain(kind, value, path)


def _decode_union(kinds: tuple[Any, ...], value: Any, path: str) -> Any:
    """A value of a union: `X | None`, or one of several plain types told apart by their exact type."""
    if value is None and type(None) in kinds:
        return None
    real = [kind for kind in kinds if kind is not type(None)]
    if len(real) == 1:
        return _decode(real[0], value, path)
    if type(value) not in real:
        names = ", ".join(kind.__name__ for kind in real)
        raise UsageError(f"expected one of {names} at {path}, got {type(value).__name__}")
    return value


def _decode_enum(kind: type[Enum], value: Any, path: str) -> Enum:
    for member in kind:
        if type(member.value) is type(value) and member.value == value:
            return member
    allowed = ", ".join(str(member.value) for member in kind)
    raise UsageError(f"expected one of {allowed} at {path}, got {value!r}")


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _decode_fields(kind: Any, value: Any, path: str) -> Any:
    entries = _plain(dict, value, path)
    known = {field.name: field for field in fields(kind)}
    if unknown := sorted(set(entries) - set(known)):
        raise UsageError(f"expected only known fields at {path}, got {', '.join(unknown)}")
    required = {name for name, field in known.items() if field.default is MISSING}
    if missing := sorted(required - set(entries)):
        raise UsageError(f"expected {', '.join(missing)} at {path}, got an object without")
    decoded = {name: _decode(_hints(kind)[name], item, f"{path}.{name}") for name, item in entries.items()}
    try:
        return kind(**decoded)
    except AssertionError as error:
        raise UsageError(f"expected counts that fit together at {path}, got {error}") from error


def _plain(kind: Any, value: Any, path: str) -> Any:
    """The value when it has exactly this JSON type; a whole number is a float too, a bool never."""
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind or (kind is float and not math.isfinite(value)):
        raise UsageError(f"expected {kind.__name__} at {path}, got {type(value).__name__} {value!r:.60}")
    return value
