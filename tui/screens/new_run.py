"""New run: the options of `mecharule run` as a form, those that people choose first, the others after one key.

The price is said and agreed to here, once for all directions, before the run ablates anything.
"""

from __future__ import annotations

import re
import shlex
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.events import DescendantFocus
from textual.suggester import SuggestFromList
from textual.widgets import Collapsible, Input, Label

from tui.screens.common import CommandScreen, Line, PricePopup, fitted, hint_parts
from tui.screens.run_screen import RunScreen
from tui.words import said

if TYPE_CHECKING:
    from mecharule_ops.config import RunConfig

FORM_HELP = (
    "An option of `mecharule run` a line; an empty one keeps its default. Tab goes to the next, Shift+Tab back; the "
    "right arrow completes a word of the hint. ^O shows the other options; `set` takes any other setting as KEY=VALUE, "
    "with spaces between them (`mecharule run --help all` lists them). ^S loads the model, says what the run costs at "
    "most and asks; only a yes starts it."
)
_GIVEN = {"model": "arith-tiny"}
_ELSEWHERE = ("from", "yes", "dry_run", "llm_budget")
"""Options that no form needs."""


class Field(NamedTuple):
    """One option."""

    name: str
    flag: str
    """Empty of the task."""
    action: str
    """`store_true` takes no value, `append` several."""
    hint: str
    is_shown: bool

    def option(self, text: str) -> str:
        """What was typed, as on a command line; nothing where nothing was."""
        if not text or self.action == "store_true":
            return self.flag if text else ""
        if self.action == "append":
            return " ".join(f"{self.flag} {each}" for each in text.split())
        return f"{self.flag}={shlex.quote(text)}" if self.flag else shlex.quote(text)


def fields_of() -> tuple[Field, ...]:
    """A field for every option of `run`."""
    from agent.verbs.options import SETTINGS_SHOWN, RunOptions
    from tools.arguments import options_of

    names = {field.alias or name: name for name, field in RunOptions.model_fields.items()}
    fields = []
    for flags, given in options_of(RunOptions):
        name = flags[-1].removeprefix("--").replace("-", "_")
        flag = flags[-1] if flags[-1].startswith("--") else ""
        is_shown = names[name] in SETTINGS_SHOWN
        fields.append(Field(name, flag, given.get("action", ""), given["help"].replace("%%", "%"), is_shown))
    return tuple(field for field in fields if field.name not in _ELSEWHERE)


class FieldLine(Horizontal):
    """The name of an option and its value."""

    def __init__(self, field: Field) -> None:
        super().__init__(classes="field")
        self.field = field

    def compose(self) -> ComposeResult:
        words = re.findall(r"[\w-]{3,}", self.field.hint)
        yield Label(said(self.field.name.replace("_", " ")), classes="name", markup=False)
        yield Input(_GIVEN.get(self.field.name, ""), compact=True, suggester=SuggestFromList(words))
        yield Label(said(self.field.hint, "dim"), classes="hint", markup=False)


class NewRunScreen(CommandScreen):
    """Settings of a run about to begin."""

    NAME = "new"
    about = FORM_HELP

    def __init__(self, fields: tuple[Field, ...], task: str) -> None:
        super().__init__()
        self.fields, self.begins = fields, task

    def compose(self) -> ComposeResult:
        others = [field for field in self.fields if not field.is_shown]
        yield Line(" New run · ^S says the price and asks before anything is ablated", classes="title")
        with VerticalScroll(id="form", can_focus=False):
            yield from (FieldLine(field) for field in self.fields if field.is_shown)
            with Collapsible(title=f"{len(others)} other options"):
                yield from map(FieldLine, others)
        yield Line(id="hint")
        yield Line(fitted(hint_parts("new", ("start", "more", "back", "help", "quit"))), classes="status")

    def on_mount(self) -> None:
        self.query(Input).first().value = self.begins
        self.query(Input).first().focus()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Say the whole hint of the option at hand, which a narrow terminal cuts beside it."""
        line = event.widget.parent
        if isinstance(line, FieldLine):
            self.query_one("#hint", Line).say(said(f" {line.field.hint}", "italic"))

    def do_more(self) -> None:
        others = self.query_one(Collapsible)
        others.collapsed = not others.collapsed

    def do_start(self) -> None:
        typed = [line.field.option(line.query_one(Input).value.strip()) for line in self.query(FieldLine)]

        def priced() -> tuple[RunConfig, str]:
            config = self.app.backend.config(" ".join(typed))
            return config, self.app.backend.price(config)

        def ask(told: tuple[RunConfig, str]) -> None:
            config, price = told

            def start(yes: bool | None) -> None:
                if yes and self.close():
                    self.app.push_screen(RunScreen(self.app.begin(partial(self.app.backend.start, config))))

            if self.is_current:
                self.app.push_screen(PricePopup(price), start)

        self.app.tell("measuring what it costs …")
        self.app.fetch(self, "price", priced, ask)
