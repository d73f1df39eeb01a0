"""New run: a form with one line a setting, made from the schema of the settings."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.events import DescendantFocus
from textual.widgets import Input, Label, Select

from mecharule_ops.errors import UsageError
from tui.commands import bindings_of
from tui.form import Field, settings_of
from tui.screens.base import CommandScreen, Line, hints
from tui.words import said

FORM_HELP = (
    "One setting a line, with its default. Tab goes to the next, Shift+Tab back; lists take commas; an empty "
    "phase or budget means none; task settings are KEY=VALUE; KEY=VALUE. ^S starts: the model is loaded, the "
    "price is measured, and you are asked before anything slow."
)
_DEFAULT_MODEL = "arith-tiny"


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
    BINDINGS = bindings_of("new")
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
        yield Line(f" {hints('new', ('start', 'back', 'help', 'quit'))} · ^P palette", classes="status")

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
            config = self.owner.backend.config(settings_of(self.fields, texts))
        except UsageError as error:
            self.query_one("#problem", Line).say(said(f" {error}", "bold red"))
            return
        self.app.pop_screen()
        start = self.owner.backend.start
        self.owner.work_on(lambda session: start(config, session))
