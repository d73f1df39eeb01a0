"""What every screen shares: commands by name, and the one line of state at its foot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, cast

from rich.text import Text
from textual.screen import Screen
from textual.widgets import Static

from tui.commands import command_named, commands_of
from tui.keys import key_said
from tui.owner import Owner


class CommandScreen(Screen[None]):
    """A screen whose keys, palette entries and slash words come from the command table."""

    NAME: ClassVar[str] = ""
    """The screen's word in the command table."""

    @property
    def owner(self) -> Owner:
        """The app, as far as a screen asks anything of it."""
        return cast(Owner, self.app)

    def action_command(self, name: str) -> None:
        """Carry out the command of a key."""
        self.carry_out(name)

    def carry_out(self, name: str, argument: str = "") -> None:
        """Carry out a command of this screen by its name."""
        command = command_named(name, self.NAME)
        assert command is not None, (name, self.NAME)
        does = getattr(self, command.method, None) or getattr(self.owner, command.method)
        if command.takes:
            does(argument)
        else:
            does()

    def do_back(self) -> None:
        # A second key that came before the first one's screen was gone must not close the screen under it.
        if self.owner.screen is self:
            self.owner.pop_screen()


def hint_parts(screen: str, names: Sequence[str], words: Mapping[str, str] | None = None) -> list[str]:
    """`^R resume`, `F1 help`: the keys of some commands with a word each."""
    commands = {command.name: command for command in commands_of(screen)}
    shown = [commands[name] for name in names if commands[name].keys]
    return [f"{key_said(each.keys[0])} {(words or {}).get(each.name, each.name)}" for each in shown]


def hints(screen: str, names: Sequence[str], words: Mapping[str, str] | None = None) -> str:
    """`^R resume · F1 help`."""
    return " · ".join(hint_parts(screen, names, words))


def fitted(parts: Sequence[str], width: int, last: int = 2) -> str:
    """The parts in one line; where they do not fit, those before the `last` ones give way."""
    kept, end = list(parts[:-last]), list(parts[-last:])
    while kept and len(" · ".join([*kept, *end])) > width - 1:
        kept.pop()
    return f" {' · '.join([*kept, *end])}"


class Line(Static):
    """One line that never wraps; what does not fit is cut."""

    DEFAULT_CSS = "Line { height: 1; width: 1fr; text-wrap: nowrap; text-overflow: ellipsis; }"

    def __init__(self, text: str = "", *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(Text(text, no_wrap=True), markup=False, id=id, classes=classes)

    def say(self, text: Text | str) -> None:
        """Show another line."""
        self.update(Text(text, no_wrap=True) if isinstance(text, str) else text)
