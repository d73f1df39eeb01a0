"""What opens over a screen: the price to accept, the help of the focused widget, a line to type a search in."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from mecharule_ops.events import Price
from tui.commands import commands_of
from tui.keys import key_said
from tui.words import clock


class PricePopup(ModalScreen[bool]):
    """Asks before anything slow."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "dismiss(True)", "start", show=False),
        Binding("n,escape", "dismiss(False)", "do not start", show=False),
    ]

    def __init__(self, price: Price) -> None:
        super().__init__()
        self.price = price

    def compose(self) -> ComposeResult:
        said = (
            f"At most {self.price.evaluations:,} group ablations\n"
            f"({self.price.example_forwards:,} example-forwards),\n"
            f"about {clock(self.price.seconds)} at most; the search usually\n"
            "needs a small part of it.\n\n"
            "Start?  y yes   n no"
        )
        with Vertical(classes="popup"):
            yield Static(Text(said), markup=False)


class HelpPopup(ModalScreen[None]):
    """Explains the focused widget and lists the keys of its screen."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,f1,q,enter", "dismiss", "close", show=False)]

    def __init__(self, screen: str, about: str) -> None:
        super().__init__()
        self.about = about
        self.of_screen = screen

    def compose(self) -> ComposeResult:
        text = Text(f"{self.about}\n\n") if self.about else Text()
        for command in commands_of(self.of_screen):
            keys = ", ".join(map(key_said, command.keys)) or "–"
            text.append(f"{keys:>14}", "bold").append(f"  {command.help}\n")
        text.append("            ^P", "bold").append("  every command by name\n")
        text.append("\nIn the chat each is /its-name: ", "dim")
        text.append(", ".join(command.name for command in commands_of(self.of_screen)), "dim")
        with VerticalScroll(classes="popup tall"):
            yield Static(text, markup=False)

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()


class SearchPopup(ModalScreen[str | None]):
    """A line to type what to find."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "close", show=False)]

    def __init__(self, prompt: str, before: str = "") -> None:
        super().__init__()
        self.prompt = prompt
        self.before = before

    def compose(self) -> ComposeResult:
        with Vertical(classes="popup"):
            yield Static(Text(self.prompt), markup=False)
            yield Input(self.before, compact=True)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip())
