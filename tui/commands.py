"""Every command once: the palette, the slash commands, the keys and the help are made from commands.txt.

A command `name` is carried out by the method `do_name` of the screen (dashes as underscores), or of the app.
"""

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textual import work
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.command import CommandPalette
from textual.css.query import NoMatches

EVERYWHERE = frozenset({"home", "new", "run", "replay", "reading"})
_SAID = {
    **{"right_square_bracket": "]", "slash": "/", "escape": "Esc", "question_mark": "?", "enter": "Enter"},
    **{"left": "←", "right": "→", "greater_than_sign": ">", "less_than_sign": "<"},
    **{"full_stop": ".", "comma": ","},
}
_AS_IN_VI = {"j": "down", "k": "up", "g": "ctrl+home", "G": "ctrl+end"}
_TYPED = "question_mark"
"""A key that is also typed."""


@dataclass(frozen=True, slots=True)
class Command:
    """One thing a person can do."""

    name: str
    """The word after the slash."""
    help: str
    """One line, as an order."""
    binding: str
    """Its keys, with commas."""
    screens: frozenset[str]
    takes: str = ""
    """What follows the slash command; empty when it takes nothing."""
    first: bool = False
    """True when the key works while text is typed, and before a key pressed right after it is handed out."""

    @property
    def method(self) -> str:
        return f"do_{self.name.replace('-', '_')}"

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self.binding.split(","))

    @property
    def key(self) -> str:
        """Its first key as a person reads it."""
        return key_said(self.keys[-1] if self.keys[-1] == _TYPED else self.keys[0])


def key_said(key: str) -> str:
    """A key as a person reads it: `^R`, `F3`, `]`, `Shift+Left`."""
    if key.startswith("ctrl+"):
        return f"^{key[5:].upper()}"
    return _SAID.get(key) or (key if len(key) == 1 else key.title())


def _read(line: str) -> Command:
    """A line of commands.txt."""
    name, keys, screens, takes, does = (part.strip() for part in line.split("|"))
    where = EVERYWHERE if screens == "everywhere" else frozenset(screens.split(","))
    return Command(name.rstrip("!"), does, keys, where, takes, first=name.endswith("!"))


COMMANDS = tuple(map(_read, Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()[1:]))


def commands_of(screen: str) -> tuple[Command, ...]:
    """The commands of a screen, in the order of the table."""
    return tuple(command for command in COMMANDS if screen in command.screens)


def command_named(name: str, screen: str) -> Command | None:
    """The command of a screen by its slash word."""
    return next((command for command in commands_of(screen) if command.name == name), None)


def bindings_of(screen: str, only: Collection[str] | None = None) -> list[BindingType]:
    """The key bindings of a screen's commands, or of some of them; and keys that move as in vi."""
    moves: list[BindingType] = [
        Binding(key, f"app.simulate_key('{to}')", show=False) for key, to in _AS_IN_VI.items()
    ]
    return moves + [
        Binding(key, f"command('{each.name}')", show=False, priority=each.first and key != _TYPED)
        for each in commands_of(screen)
        for key in each.keys
        if only is None or each.name in only
    ]


class ClosesOnce:
    """A screen over another one that several keys at once close once; they never close the one under it."""

    app: App[Any]

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Close it with a result, where it is still the one on top."""
        return super().dismiss(result) if self.app.screen_stack[-1:] == [self] else AwaitComplete.nothing()  # type: ignore[misc]


class Palette(ClosesOnce, CommandPalette):
    """Textual's own, whose list has no lines until it is drawn and which may be closed while it is filled."""

    ID = "--command-palette"

    @work(exclusive=True, group=CommandPalette._GATHER_COMMANDS_GROUP)
    async def _gather_commands(self, search_value: str) -> None:
        with suppress(NoMatches):
            await CommandPalette._gather_commands.__wrapped__(self, search_value)  # type: ignore[attr-defined]

    def _action_command_list(self, action: str) -> None:
        with suppress(KeyError):
            super()._action_command_list(action)
