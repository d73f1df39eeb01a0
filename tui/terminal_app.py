"""The terminal app: its first screen, the commands that every screen has, and what lies between it and the terminal.

The ASCII glyph set is a filter over finished lines, so no screen needs to know of it; everything drawn, borders and
scroll bars included, gets characters of the same width. `MECHARULE_ASCII=1` turns it on.
"""

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.app import SystemCommand
from textual.binding import BindingType
from textual.color import Color
from textual.filter import LineFilter
from textual.screen import Screen
from textual.theme import ThemeProvider

from tui import commands, session, working_app
from tui.backend import Backend
from tui.screens import common, home_screen

_SIGNS = {pair[0]: pair[1] for pair in Path(__file__).with_name("ascii.txt").read_text("utf-8").split()}


@lru_cache(4096)
def ascii_only(text: str) -> str:
    """The text in ASCII, as wide as before; a sign without a likeness becomes `?`, an arrow takes a blank before it."""
    parted = text.replace(" →", "->").replace(" ↔ ", "<->").replace("'⏎'", r" \n")
    return text if text.isascii() else "".join(map(_likeness, parted))


def _likeness(char: str) -> str:
    blocks = "+" if "\u2500" <= char <= "\u257f" else "#" if "\u2580" <= char <= "\u259f" else ""
    return char if char.isascii() else _SIGNS.get(char) or blocks or "?" * cell_len(char)


class AsciiFilter(LineFilter):
    """Turns every drawn line into ASCII."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(ascii_only(text), style, control) for text, style, control in segments]


class MechaRuleApp(working_app.WorkingApp):
    """Watch a search, read what it found, ask about it."""

    TITLE = "MechaRule"
    CSS_PATH = Path(__file__).with_name("app.tcss")
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = commands.bindings_of("home", only=("help", "interrupt", "quit"))

    def __init__(self, backend: Backend | None = None, *, exports: Path | None = None) -> None:
        super().__init__(backend or Backend(), exports)
        self.HORIZONTAL_BREAKPOINTS = [(0, "-slim"), (76, "-side"), (100, "-wide")]
        self.VERTICAL_BREAKPOINTS = [(0, "-low"), (28, "-tall")]
        if os.environ.get("MECHARULE_ASCII"):
            self._filters.append(AsciiFilter())

    def on_mount(self) -> None:
        self.begin_capture_print(self)
        self.push_screen(home_screen.HomeScreen())
        self.run_worker(self.backend.warm, thread=True, group="warm")

    def on_unmount(self) -> None:
        """Whatever ended the app, a signal or a closed page too, ends the work."""
        self.end_work()

    def on_print(self, event: events.Print) -> None:
        """What libraries print goes where `screen_kept` leads it, and not over the screen."""
        os.write(2, event.text.encode(errors="replace"))

    def get_system_commands(self, screen: Screen) -> Iterable[SystemCommand]:
        """The palette: every command of the screen under it, and of Textual's own the theme and a picture."""
        name = screen.NAME if isinstance(screen, common.CommandScreen) else "home"
        for command in commands.commands_of(name):
            title = f"{command.name} ({', '.join(map(commands.key_said, command.keys))})"
            yield SystemCommand(title, command.help, lambda name=command.name: self.action_command(name))
        own = super().get_system_commands(screen)
        yield from (each for each in own if each.title in ("Theme", "Screenshot"))

    def action_command_palette(self) -> None:
        """The palette, unless it is open."""
        if not isinstance(self.screen, commands.Palette):
            self.push_screen(commands.Palette(id=commands.Palette.ID))

    def search_themes(self) -> None:
        """The themes, in a palette that keys at any time do not end."""
        self.push_screen(commands.Palette([ThemeProvider], placeholder="Search for themes…"))

    def action_command(self, name: str) -> None:
        """Carry out a command on the screen at hand, or on the app over a popup; one that neither has does nothing."""
        screen = self.screen
        if isinstance(screen, common.CommandScreen) and commands.command_named(name, screen.NAME):
            screen.carry_out(name)
        else:
            getattr(self, f"do_{name}", lambda: None)()

    def do_help(self) -> None:
        """Explain the focused widget, or the nearest one around it that has a help, and list the keys."""
        screen = self.screen
        if isinstance(screen, common.CommandScreen):
            around = screen.focused.ancestors_with_self if screen.focused else (screen,)
            about = next(filter(None, (getattr(each, "about", "") for each in around)), "")
            self.push_screen(common.HelpPopup(screen.NAME, about))


@contextmanager
def screen_kept() -> Iterator[Path]:
    """Descriptors 1 and 2 write to a file while the app draws on copies of them; gives the file's path.

    Textual draws on `sys.__stderr__` and asks `sys.__stdout__` for the size of the terminal.
    """
    descriptor, name = tempfile.mkstemp(prefix="mecharule-", suffix=".log")
    before = sys.__stdout__, sys.__stderr__
    with (
        os.fdopen(os.dup(1), "w", encoding="utf-8") as out,
        os.fdopen(os.dup(2), "w", encoding="utf-8") as err,
    ):
        sys.__stdout__, sys.__stderr__ = out, err  # type: ignore[misc]
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        try:
            yield Path(name)
        finally:
            sys.__stdout__, sys.__stderr__ = before  # type: ignore[misc]
            for number, stream in ((1, out), (2, err)):
                stream.flush()
                os.dup2(stream.fileno(), number)
            os.close(descriptor)


def run_app() -> int:
    """The exit code of the app after it was left; what it wrote is named on stderr."""
    app = MechaRuleApp()
    with screen_kept() as log:
        session.Session.kept_in = str(log)
        app.run()
    for path in app.written:
        sys.stderr.write(f"written: {path}\n")
    if log.stat().st_size:
        sys.stderr.write(f"output of libraries, and faults: {log}\n")
    else:
        log.unlink()
    return app.return_code or 0
