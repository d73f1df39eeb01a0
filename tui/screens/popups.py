"""What opens over a screen: the price to accept, the help of the focused widget, a line to type a search in."""

from __future__ import annotations

from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from mecharule_ops.events import Price
from tui.commands import commands_of, key_said
from tui.words import clock


class PricePopup(ModalScreen[bool]):
    """Asks before anything slow."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "dismiss(True)", "start", show=False),
        Binding("n,escape", "dismiss(False)", "do not start", show=False),
    ]

    def __init__(self, price: Price | str) -> None:
        super().__init__()
        self.price = price

    def compose(self) -> ComposeResult:
        price = self.price if isinstance(self.price, str) else _search_price(self.price)
        with Vertical(classes="popup"):
            yield Static(Text(f"{price}\n\nStart?  y yes   n no"), markup=False)


def _search_price(price: Price) -> str:
    """What a search costs."""
    return (
        f"{price.ablations.capitalize()},\n{price.time(clock)}; the search usually\n"
        "needs a small part of the most."
    )


class HelpPopup(ModalScreen[None]):
    """Explains the focused widget and lists the keys of its screen."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,f1,q,enter", "dismiss", "close", show=False)]

    def __init__(self, screen: str, about: str) -> None:
        super().__init__()
        self.about = about
        self.of_screen = screen

    def compose(self) -> ComposeResult:
        commands = commands_of(self.of_screen)
        grid = Table.grid(padding=(0, 2))
        grid.add_column(justify="right", no_wrap=True)
        grid.add_column(ratio=1)
        for command in commands:
            grid.add_row(Text(", ".join(map(key_said, command.keys)), "bold"), Text(command.help))
        grid.add_row(Text("^P", "bold"), Text("every command by name"))
        names = f"\nIn the chat of a run each is /its-name: {', '.join(command.name for command in commands)}"
        with VerticalScroll(classes="popup tall"):
            if self.about:
                yield Static(Text(f"{self.about}\n"), markup=False)
            yield Static(grid)
            yield Static(Text(names, "dim"), markup=False)

    def on_mount(self) -> None:
        for text in self.query(VerticalScroll):  # None where a key has closed it before it was drawn.
            text.focus()


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
