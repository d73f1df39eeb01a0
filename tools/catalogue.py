"""The tools as verbs of a command line: argparse settings derived from the models in `arguments`."""

from __future__ import annotations

from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from tools.arguments import Arguments
from tools.registry import TOOLS

Option = tuple[tuple[str, ...], dict[str, Any]]
"""The flags, or the name of a positional argument, and the keywords of `add_argument`."""


def options_of(arguments: type[Arguments]) -> Iterator[Option]:
    """The positional arguments in order, then a flag for every other field."""
    fields = arguments.model_fields
    for name in arguments.positional:
        optional = {} if fields[name].is_required() else {"nargs": "?"}
        yield (name,), {**_value(fields[name]), **optional}
    for name, field in fields.items():
        if name in arguments.positional:
            continue
        required = {"required": True} if field.is_required() else {}
        short = ("-m",) if name == "model" else ()
        yield (*short, f"--{name.replace('_', '-')}"), {**_value(field), **required}


def _value(field: FieldInfo) -> dict[str, Any]:
    """How one value is read; the type itself is checked by the model, so text passes."""
    described = {"help": (field.description or "").replace("%", "%%")}
    if field.annotation is bool:
        return {"action": "store_true", "default": None, **described}
    for kind in _members(field.annotation):
        if get_origin(kind) is Literal:
            return {"choices": get_args(kind), **described}
        if kind is int:
            return {"type": int, "metavar": "N", **described}
    return described


def _members(annotation: Any) -> tuple[Any, ...]:
    """The types of a union other than None, or the type itself."""
    if get_origin(annotation) in (Union, UnionType):
        return tuple(kind for kind in get_args(annotation) if kind is not NoneType)
    return (annotation,)


VERBS: tuple[tuple[str, str, tuple[Option, ...]], ...] = tuple(
    (tool.name, tool.help, tuple(options_of(tool.arguments))) for tool in TOOLS.values()
)
"""(name, help, options) of every tool."""
