"""The terminal app: its first screen, the commands that every screen has, and what it says when it ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import ClassVar

from textual import events
from textual.app import SystemCommand
from textual.binding import BindingType
from textual.screen import Screen

from mecharule_ops.plain_text import plain
from tui.backend import Backend
from tui.commands import COMMANDS, Palette, bindings_of, commands_of, key_said
from tui.screens.common import CommandScreen, PressedTwice
from tui.screens.home_screen import HomeScreen
from tui.screens.popups import HelpPopup
from tui.terminal import AsciiFilter, screen_kept
from tui.working_app import Outbox, WorkingApp


class MechaRuleApp(WorkingApp):
    """Watch a search, read what it found, ask about it."""

    TITLE = "MechaRule"
    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = bindings_of("home", only=("help", "interrupt", "quit"))

    def __init__(self, backend: Backend | None = None, *, outbox: Outbox | None = None) -> None:
        super().__init__(backend or Backend(), outbox)
        self._quitting = PressedTwice()
        if os.environ.get("MECHARULE_ASCII"):
            self._filters.append(AsciiFilter())

    def on_mount(self) -> None:
        self.begin_capture_print(self)
        self.push_screen(HomeScreen())
        self.run_worker(self.backend.warm, thread=True, group="warm")

    def on_unmount(self) -> None:
        """Whatever ended the app, a signal or a closed page too, ends the work."""
        self.end_work()

    def on_print(self, event: events.Print) -> None:
        lines = [plain(line) for line in event.text.replace("\r", "\n").splitlines()]
        self.output.extend(line for line in lines if line)

    def get_system_commands(self, screen: Screen) -> Iterable[SystemCommand]:
        """The palette: every command of the screen under it."""
        name = screen.NAME if isinstance(screen, CommandScreen) else "home"
        for command in commands_of(name):
            title = f"{command.name} ({', '.join(map(key_said, command.keys))})"
            yield SystemCommand(title, command.help, lambda name=command.name: self.action_command(name))

    def action_command_palette(self) -> None:
        """The palette, unless it is open."""
        if not isinstance(self.screen, Palette):
            self.push_screen(Palette(id=Palette.ID))

    def action_command(self, name: str) -> None:
        """Carry out a command on the screen at hand, or on the app over a popup; one that neither has does nothing."""
        screen = self.screen
        if isinstance(screen, CommandScreen) and name in {each.name for each in commands_of(screen.NAME)}:
            screen.carry_out(name)
        else:
            command = next(each for each in COMMANDS if each.name == name)
            getattr(self, command.method, lambda: None)()

    def do_help(self) -> None:
        screen = self.screen
        if isinstance(screen, CommandScreen):
            self.push_screen(HelpPopup(screen.NAME, self._about_focused(screen)))

    def _about_focused(self, screen: CommandScreen) -> str:
        """The help of the focused widget, or of the nearest one around it that has any."""
        around = screen.focused.ancestors_with_self if screen.focused else (screen,)
        texts = [getattr(each, "about", None) for each in around]
        return next((text for text in texts if isinstance(text, str) and text), "")

    def do_interrupt(self) -> None:
        """Stop the work; when there is none, quit at the second time."""
        if self.working is not None and self.working.busy:
            self.working.stop()
            self.tell("stopping after this batch; the checkpoint is kept")
        elif self._quitting.again():
            self.do_quit()
        else:
            self.tell("press ^C again to quit")

    def do_quit(self) -> None:
        """End the work and leave."""
        self.end_work()
        self.exit(0)


def run_app(backend: Backend | None = None) -> int:
    """The exit code of the app after it was left; what it wrote is named on stderr."""
    app = MechaRuleApp(backend)
    with screen_kept() as log:
        app.run()
    for path in app.outbox.written if app.outbox else ():
        sys.stderr.write(f"written: {path}\n")
    if log.stat().st_size:
        sys.stderr.write(f"output of libraries: {log}\n")
    else:
        log.unlink()
    return app.return_code or 0
