"""The form of a new run, made from the JSON schema of its settings: one line a setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mecharule_ops.codec import parse_json
from mecharule_ops.errors import UsageError

FIRST = ("task", "model", "bases", "baseline", "phase", "regimes", "tau", "records", "budget")
"""Settings that people change most stand first, the rest as the schema has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One setting."""

    name: str
    default: str
    """As typed; empty stands for none."""
    choices: tuple[str, ...] = ()
    """What one value may be; empty when it is free."""
    is_list: bool = False
    optional: bool = False
    """True when empty means none."""
    kind: str = "string"
    """JSON type of one value."""
    hint: str = ""
    """Its description and its limits."""


def fields_of(schema: Mapping[str, Any]) -> tuple[Field, ...]:
    """A field for every setting of the schema."""
    properties = schema["properties"]
    names = [
        *(name for name in FIRST if name in properties),
        *(name for name in properties if name not in FIRST),
    ]
    return tuple(_field(name, properties[name], schema) for name in names)


def _field(name: str, given: Mapping[str, Any], schema: Mapping[str, Any]) -> Field:
    options = given.get("anyOf", [given])
    optional = any(option.get("type") == "null" for option in options)
    value = next(option for option in options if option.get("type") != "null")
    is_list = value.get("type") == "array"
    one = _resolved(value["items"] if is_list else value, schema)
    return Field(
        name=name,
        default=_typed(given.get("default")),
        choices=("true", "false") if one.get("type") == "boolean" else tuple(map(str, one.get("enum", ()))),
        is_list=is_list,
        optional=optional,
        kind="object" if value.get("type") == "object" else one.get("type", "string"),
        hint=_hint(given.get("description", ""), _limits(one)),
    )


def _resolved(value: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = value.get("$ref", "")
    return schema["$defs"][reference.rsplit("/", 1)[-1]] if reference else value


def _typed(default: Any) -> str:
    if default is None or default == {}:
        return ""
    if isinstance(default, bool):
        return str(default).lower()
    return ",".join(map(str, default)) if isinstance(default, list | tuple) else str(default)


_SIGNS = {"exclusiveMinimum": "above", "minimum": "from", "exclusiveMaximum": "below", "maximum": "to"}


def _hint(description: str, limits: str) -> str:
    """`Strength threshold (above 0, below 1)`: the first line of a description, with the limits."""
    line = description.split("\n")[0].rstrip(".")
    return f"{line} ({limits})" if line and limits else line or limits


def _limits(value: Mapping[str, Any]) -> str:
    words = [f"{word} {value[key]}" for key, word in _SIGNS.items() if key in value]
    return " ".join(words)


def settings_of(fields: Sequence[Field], texts: Mapping[str, str]) -> dict[str, object]:
    """What was typed as settings, those left at their default omitted. Raises `UsageError`."""
    changed = [(field, texts.get(field.name, field.default).strip()) for field in fields]
    return {field.name: _value(field, text) for field, text in changed if text != field.default}


def _value(field: Field, text: str) -> object:
    if not text and field.optional:
        return None
    if field.kind == "object":
        return dict(_pair(part) for part in text.split(";") if part.strip())
    if field.is_list:
        return tuple(_scalar(field, part.strip()) for part in text.split(",") if part.strip())
    return _scalar(field, text)


def _pair(part: str) -> tuple[str, object]:
    key, sign, value = part.partition("=")
    if not sign:
        raise UsageError(f"expected KEY=VALUE; KEY=VALUE, got {part.strip()!r}")
    try:
        return key.strip(), parse_json(value)
    except ValueError:
        return key.strip(), value.strip()


def _scalar(field: Field, text: str) -> object:
    if field.kind == "integer" and text.lstrip("+-").isdigit():
        return int(text)
    return text == "true" if field.kind == "boolean" and text in ("true", "false") else text
