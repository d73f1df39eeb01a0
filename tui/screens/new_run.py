"""New run: a form with one line a setting, made from the JSON schema of the settings."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.events import DescendantFocus
from textual.widgets import Input, Label, Select

from mecharule_ops.errors import UsageError
from tui.screens.common import CommandScreen, Line, hints
from tui.screens.run_screen import RunScreen
from tui.words import said

FORM_HELP = (
    "One setting a line, with its default. Tab goes to the next, Shift+Tab back; lists take commas; an empty "
    "phase or budget means none; task settings are KEY=VALUE; KEY=VALUE. ^S starts: the model is loaded, the "
    "price is measured, and you are asked before anything slow."
)
_DEFAULT_MODEL = "arith-tiny"
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
    is_object: bool = False
    """True when it takes KEY=VALUE; KEY=VALUE."""
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
        is_object=value.get("type") == "object",
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
    """What was typed; the settings themselves make numbers and truths of texts."""
    if not text and field.optional:
        return None
    if field.is_object:
        return dict(_pair(part) for part in text.split(";") if part.strip())
    if field.is_list:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    return text


def _pair(part: str) -> tuple[str, object]:
    from agent.verbs.options import key_value

    try:
        return key_value(part.strip())
    except ArgumentTypeError as error:
        raise UsageError(str(error)) from error


class FieldLine(Horizontal):
    """The name of a setting and its value."""

    def __init__(self, field: Field) -> None:
        super().__init__(classes="field")
        self.field = field

    def compose(self) -> ComposeResult:
        default = self.field.default or (_DEFAULT_MODEL if self.field.name == "model" else "")
        yield Label(said(self.field.name.replace("_", " ")), classes="name", markup=False)
        if self.field.choices and not self.field.is_list:
            options = [(said(choice), choice) for choice in self.field.choices]
            value = default if default in self.field.choices else Select.NULL
            yield Select(options, value=value, allow_blank=self.field.optional, compact=True, prompt="none")
        else:
            yield Input(default, compact=True)
        hint = ", ".join(self.field.choices) if self.field.is_list else self.field.hint
        yield Label(said(hint, "dim"), classes="hint", markup=False)

    @property
    def text(self) -> str:
        """What stands there now."""
        for select in self.query(Select):
            return "" if select.value is Select.NULL else str(select.value)
        return self.query_one(Input).value


class NewRunScreen(CommandScreen):
    """Settings of a run about to begin."""

    NAME = "new"
    about = FORM_HELP

    def __init__(self, fields: tuple[Field, ...]) -> None:
        super().__init__()
        self.fields = fields

    def compose(self) -> ComposeResult:
        yield Line(" New run · Tab to the next setting, ^S to measure the price and start", classes="title")
        with VerticalScroll(id="form", can_focus=False):
            for field in self.fields:
                yield FieldLine(field)
        yield Line(id="problem")
        yield Line(hints("new", ("start", "back", "help", "quit")), classes="status")

    def on_mount(self) -> None:
        self.query(Input).first().focus()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Say the whole hint of the setting at hand, which a narrow terminal cuts beside it."""
        line = next((each for each in event.widget.ancestors if isinstance(each, FieldLine)), None)
        if line is not None:
            self.query_one("#problem", Line).say(said(f" {line.field.hint}", "italic"))

    def do_start(self) -> None:
        texts = {line.field.name: line.text for line in self.query(FieldLine)}
        try:
            config = self.app.backend.config(settings_of(self.fields, texts))
        except UsageError as error:
            self.query_one("#problem", Line).say(said(f" {error}", "bold red"))
            return
        if self.close():
            self.app.push_screen(RunScreen(self.app.begin(partial(self.app.backend.start, config))))
