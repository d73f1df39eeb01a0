"""Typed JSON of frozen dataclasses: what is read back equals what was written, and nothing else is read.

Fields may be str, int, float, bool, `X | None`, a union of those scalars or of dataclasses, an enum (by its value),
what is `Printed` (as it prints), `tuple[X, ...]`, `Mapping[str, X]` or another dataclass. A field typed `float` is
written as a finite number or as "nan", "inf", "-inf", so the text is JSON for every reader; -0.0 is written as
0.0, so equal values have equal text.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, Self, TypeVar, Union, get_args, get_origin, get_type_hints

from mecharule_ops.errors import UsageError

T = TypeVar("T")
_Convert = Callable[[Any], Any]
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_ACCEPTED: dict[type, tuple[type, ...]] = {str: (str,), bool: (bool,), int: (int,), float: (float, int)}


class Printed:
    """A value whose JSON form is the text that it prints as."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a printed value. Raises `UsageError` on anything else."""
        raise NotImplementedError


def canonical_json(value: object) -> str:
    """The one text of a JSON value: sorted keys, no spaces, ASCII. Raises `UsageError` on anything else."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UsageError(f"expected a JSON value with finite numbers, got {error}") from error


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text. Raises `ValueError` on anything else, nesting too deep for the reader included."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def encode(value: Any) -> dict[str, Any]:
    """The JSON object of a dataclass. Raises `UsageError` naming a field of a wrong type."""
    cls: Any = type(value)
    return {name: _at(cls, name, write, getattr(value, name)) for name, write, _, _ in _plan(cls)}


def decode(cls: type[T], data: object) -> T:
    """The dataclass in a JSON object; a missing field takes its default.

    Raises `UsageError` on an unknown field, a missing field without default, a wrong type, or values that break
    an invariant of the dataclass.
    """
    key: Any = cls
    plan = _plan(key)
    if not isinstance(data, dict):
        raise UsageError(f"expected an object with the fields of {cls.__name__}, got {data!r}")
    unknown = data.keys() - {name for name, *_ in plan}
    missing = [name for name, _, _, required in plan if required and name not in data]
    if unknown or missing:
        raise UsageError(f"{cls.__name__}: unknown fields {sorted(unknown)}, missing fields {missing}")
    return cls(**{name: _at(cls, name, read, data[name]) for name, _, read, _ in plan if name in data})


def _at(owner: type, name: str, convert: _Convert, value: Any) -> Any:
    """The converted value of a field, which an error names."""
    try:
        return convert(value)
    except (UsageError, OverflowError) as error:
        raise UsageError(f"{owner.__name__}.{name}: {error}") from error


@cache
def _plan(cls: Any) -> tuple[tuple[str, _Convert, _Convert, bool], ...]:
    """(field, writer, reader, required) for each field of a dataclass."""
    hints = get_type_hints(cls)
    return tuple(
        (
            field.name,
            *_converters(hints[field.name]),
            field.default is MISSING and field.default_factory is MISSING,
        )
        for field in fields(cls)
    )


@cache
def _converters(hint: Any) -> tuple[_Convert, _Convert]:
    """(writer, reader) of one type hint."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in _ACCEPTED:
        return _scalar_converters(hint)
    if origin in (Union, UnionType):
        return _union_converters(arguments)
    if isinstance(hint, type) and issubclass(hint, Printed):
        return lambda value: str(_instance(hint, value)), lambda text: hint.parse(_instance(str, text))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _enum_converters(hint)
    if origin is tuple:
        assert arguments[1:] == (Ellipsis,), f"no JSON form for {hint}"
        write, read = _converters(arguments[0])
        return _each(write, (tuple, list), list), _each(read, (list,), tuple)
    if origin is Mapping:
        write, read = _converters(arguments[1])
        return _each_value(write), _each_value(read)
    assert isinstance(hint, type), f"no JSON form for {hint}"
    assert is_dataclass(hint), f"no JSON form for {hint}"
    return encode, partial(decode, hint)


def _scalar_converters(hint: type) -> tuple[_Convert, _Convert]:
    accepted = _ACCEPTED[hint]

    def checked(value: Any) -> Any:
        plain = isinstance(value, accepted) and (hint is bool or not isinstance(value, bool))
        if not plain and not isinstance(value, _of_numpy(hint)):
            raise UsageError(f"expected {hint.__name__}, got {value!r}")
        return hint(value)

    def write_float(value: Any) -> Any:
        number = checked(value) + 0.0
        return number if math.isfinite(number) else str(number)

    def read_float(value: Any) -> Any:
        return _NOT_FINITE[value] if isinstance(value, str) and value in _NOT_FINITE else checked(value)

    return (write_float, read_float) if hint is float else (checked, checked)


@cache
def _of_numpy(hint: type) -> tuple[type, ...]:
    """The scalars of numpy that stand for a type; none is ever read from JSON, and so reading loads no numpy."""
    import numpy as np

    return {bool: (np.bool_,), int: (np.integer,), float: (np.floating, np.integer)}.get(hint, ())


def _enum_converters(hint: type[Enum]) -> tuple[_Convert, _Convert]:
    """An enum by its value; 1 and True are different values."""

    def read(value: Any) -> Enum:
        for member in hint:
            if type(member.value) is type(value) and member.value == value:
                return member
        allowed = ", ".join(repr(member.value) for member in hint)
        raise UsageError(f"expected one of {allowed}, got {value!r}")

    return lambda member: _instance(hint, member).value, read


def _instance(cls: type, value: Any) -> Any:
    if not isinstance(value, cls):
        raise UsageError(f"expected {cls.__name__}, got {value!r}")
    return value


def _union_converters(members: tuple[Any, ...]) -> tuple[_Convert, _Convert]:
    inner = tuple(member for member in members if member is not NoneType)
    if len(inner) == 1:
        write, read = _converters(inner[0])
    elif all(map(is_dataclass, inner)):
        write, read = encode, _record_of(inner)
    else:
        write, read = _one_of(inner), _one_of(inner)
    if len(inner) == len(members):
        return write, read
    return (lambda value: None if value is None else write(value)), (
        lambda value: None if value is None else read(value)
    )


def _one_of(members: tuple[type, ...]) -> _Convert:
    def checked(value: Any) -> Any:
        if type(value) not in members or (isinstance(value, float) and not math.isfinite(value)):
            raise UsageError(f"expected a finite {' or '.join(m.__name__ for m in members)}, got {value!r}")
        return value

    return checked


def _record_of(members: tuple[type, ...]) -> _Convert:
    """Reads the first of several dataclasses whose fields are those of the object."""

    def read(data: Any) -> Any:
        names = data.keys() if isinstance(data, dict) else ()
        fits = (one for one in members if all(name in names for name, _, _, needed in _plan(one) if needed))
        return decode(next(fits, members[0]), data)

    return read


def _each(convert: _Convert, accepted: tuple[type, ...], build: _Convert) -> _Convert:
    def converted(values: Any) -> Any:
        if not isinstance(values, accepted):
            raise UsageError(f"expected a list, got {values!r}")
        items: Any = values
        return build(convert(value) for value in items)

    return converted


def _each_value(convert: _Convert) -> _Convert:
    def converted(values: Any) -> dict[str, Any]:
        if not isinstance(values, Mapping) or not all(isinstance(key, str) for key in values):
            raise UsageError(f"expected an object with text keys, got {values!r}")
        return {key: convert(value) for key, value in values.items()}

    return converted
