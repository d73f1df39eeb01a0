"""New run: the settings that people choose, the others after one key, made from the JSON schema of the settings.

The price is said and agreed to here, once for all directions, before the run ablates anything.
"""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.events import DescendantFocus
from textual.suggester import SuggestFromList
from textual.widgets import Collapsible, Input, Label

from mecharule_ops.errors import UsageError
from tui.screens.common import CommandScreen, Line, PricePopup, fitted, hint_parts
from tui.screens.run_screen import RunScreen
from tui.words import said

FORM_HELP = (
    "One setting a line, with its default. Tab goes to the next, Shift+Tab back; lists take commas; an empty "
    "phase or budget means none; task settings are KEY=VALUE; KEY=VALUE. ^O shows the other settings. ^S loads the "
    "model, says what the run costs at most and asks; only a yes starts it."
)
_DEFAULT_MODEL = "arith-tiny"


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
    """Its description."""
    is_shown: bool = True


def fields_of(schema: Mapping[str, Any]) -> tuple[Field, ...]:
    """A field for every setting of the schema."""
    from agent.verbs.options import SETTINGS_SHOWN

    return tuple(
        _field(name, given, schema, is_shown=name in SETTINGS_SHOWN)
        for name, given in schema["properties"].items()
    )


def _field(name: str, given: Mapping[str, Any], schema: Mapping[str, Any], *, is_shown: bool) -> Field:
    options = given.get("anyOf", [given])
    value = next(option for option in options if option.get("type") != "null")
    is_list, default = value.get("type") == "array", given.get("default")
    one = value["items"] if is_list else value
    one = schema["$defs"][one["$ref"].rsplit("/", 1)[-1]] if "$ref" in one else one
    typed = (
        "" if default in (None, {}) else str(default).lower() if isinstance(default, bool) else str(default)
    )
    return Field(
        name=name,
        default=",".join(map(str, default)) if isinstance(default, list) else typed,
        choices=("true", "false") if one.get("type") == "boolean" else tuple(map(str, one.get("enum", ()))),
        is_list=is_list,
        optional=len(options) > 1,
        is_object=value.get("type") == "object",
        hint=given.get("description", "").split("\n")[0].rstrip("."),
        is_shown=is_shown,
    )


def settings_of(fields: Sequence[Field], texts: Mapping[str, str]) -> dict[str, object]:
    """What was typed as settings, those left at their default omitted. Raises `UsageError`."""
    changed = [(field, texts.get(field.name, field.default).strip()) for field in fields]
    return {field.name: _value(field, text) for field, text in changed if text != field.default}


def _value(field: Field, text: str) -> object:
    """What was typed; the settings themselves make numbers and truths of texts. Raises `UsageError`."""
    from agent.verbs.options import key_value

    if not text and field.optional:
        return None
    if not (field.is_object or field.is_list):
        return text
    parts = [part.strip() for part in text.split(";" if field.is_object else ",") if part.strip()]
    try:
        return dict(map(key_value, parts)) if field.is_object else tuple(parts)
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
        yield Input(default, compact=True, suggester=SuggestFromList(self.field.choices))
        hint = ", ".join(self.field.choices) or self.field.hint
        yield Label(said(hint, "dim"), classes="hint", markup=False)


class NewRunScreen(CommandScreen):
    """Settings of a run about to begin."""

    NAME = "new"
    about = FORM_HELP

    def __init__(self, fields: tuple[Field, ...]) -> None:
        super().__init__()
        self.fields = fields

    def compose(self) -> ComposeResult:
        others = [field for field in self.fields if not field.is_shown]
        yield Line(" New run · ^S says the price and asks before anything is ablated", classes="title")
        with VerticalScroll(id="form", can_focus=False):
            yield from (FieldLine(field) for field in self.fields if field.is_shown)
            with Collapsible(title=f"{len(others)} other settings"):
                yield from map(FieldLine, others)
        yield Line(id="problem")
        yield Line(fitted(hint_parts("new", ("start", "more", "back", "help", "quit"))), classes="status")

    def on_mount(self) -> None:
        self.query(Input).first().focus()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Say the whole hint of the setting at hand, which a narrow terminal cuts beside it."""
        line = next((each for each in event.widget.ancestors if isinstance(each, FieldLine)), None)
        if line is not None:
            self.query_one("#problem", Line).say(said(f" {line.field.hint}", "italic"))

    def do_more(self) -> None:
        others = self.query_one(Collapsible)
        others.collapsed = not others.collapsed

    def do_start(self) -> None:
        texts = {line.field.name: line.query_one(Input).value for line in self.query(FieldLine)}
        problem = self.query_one("#problem", Line)
        try:
            config = self.app.backend.config(settings_of(self.fields, texts))
        except UsageError as error:
            problem.say(said(f" {error}", "bold red"))
            return

        def start(yes: bool | None) -> None:
            if yes and self.close():
                self.app.push_screen(RunScreen(self.app.begin(partial(self.app.backend.start, config))))

        def ask(price: str) -> None:
            if self.is_current:
                problem.say("")
                self.app.push_screen(PricePopup(price), start)

        problem.say(" measuring what it costs …")
        self.app.fetch(self, "price", partial(self.app.backend.price, config), ask)
