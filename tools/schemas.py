"""The arguments of verbs and tools as argparse settings."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import isfunction
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from tools.arguments import Arguments

Option = tuple[tuple[str, ...], dict[str, Any]]
"""The flags, or the name of a positional argument, and the keywords of `add_argument`."""

_SHORT = {"model": ("-m",), "n": ("-n",)}


def options_of(arguments: type[Arguments]) -> Iterator[Option]:
    """The positional arguments in order, then a flag for every other field."""
    fields = arguments.model_fields
    for name in arguments.positional:
        value = _value(fields[name])
        several = value.pop("action", None) == "append"
        optional = {} if fields[name].is_required() else {"nargs": "*" if several else "?"}
        yield (name,), {**value, **optional}
    for name, field in fields.items():
        if name in arguments.positional:
            continue
        required = {"required": True} if field.is_required() else {}
        yield (
            (*_SHORT.get(name, ()), f"--{(field.alias or name).replace('_', '-')}"),
            {**_value(field), **required},
        )


def _value(field: FieldInfo) -> dict[str, Any]:
    """How one value is read; the type itself is checked by the model, so text passes.

    A function beside the type reads the text instead; a title is the name of the value in the help.
    """
    option: dict[str, Any] = {"help": (field.description or "").replace("%", "%%")}
    if field.annotation is bool:
        return {**option, "action": "store_true", "default": None}
    beside = list(field.metadata)
    for member in _members(field.annotation):
        kind, *more = get_args(member) if get_origin(member) is Annotated else (member,)
        beside += more
        if get_origin(kind) is Literal:
            option["choices"] = get_args(kind)
        elif get_origin(kind) is list:
            option["action"] = "append"
        elif kind in (int, float):
            option["type"] = kind
            option |= {"metavar": "N"} if kind is int else {}
    read = next(filter(isfunction, beside), None)
    return option | ({"type": read} if read else {}) | ({"metavar": field.title} if field.title else {})


def _members(annotation: Any) -> tuple[Any, ...]:
    """The types of a union other than None, or the type itself."""
    if get_origin(annotation) in (Union, UnionType):
        return tuple(kind for kind in get_args(annotation) if kind is not NoneType)
    return (annotation,)
