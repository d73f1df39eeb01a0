"""The terminal app: its screens, the work behind them, and what it says when it ends.

Nothing here imports torch or the engine: the `Backend` does, on a working thread, when work begins.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable
from typing import ClassVar
from weakref import WeakSet

from textual import events
from textual.app import SystemCommand
from textual.binding import BindingType
from textual.screen import Screen
from textual.worker import Worker, WorkerState

from mecharule_ops.errors import MechaRuleError
from mecharule_ops.plain_text import plain
from tui.ascii import AsciiFilter
from tui.backend import Backend
from tui.commands import COMMANDS, bindings_of, commands_of
from tui.comparison import Side
from tui.files import Outbox
from tui.keys import key_said
from tui.screens.base import CommandScreen
from tui.screens.home import HomeScreen
from tui.session import Session
from tui.style import STYLE
from tui.twice import Twice
from tui.writing import WritingApp

OUTPUT_LINES = 500
"""Lines of captured program output kept for reading."""


class MechaRuleApp(WritingApp):
    """Watch a search, read what it found, ask about it."""

    TITLE = "MechaRule"
    CSS = STYLE
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = bindings_of("home", only=("help", "interrupt", "quit"))

    def __init__(self, backend: Backend | None = None, *, outbox: Outbox | None = None) -> None:
        super().__init__(backend or Backend(), outbox)
        self.output: deque[str] = deque(maxlen=OUTPUT_LINES)
        """What programs printed while the app ran."""
        self._working: Session | None = None
        self._begun = WeakSet[Session]()
        """Sessions, held by their threads; one that works when another begins must end with the app too."""
        self._quitting = Twice()
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
            keys = ", ".join(map(key_said, command.keys))
            title = f"{command.name} ({keys})" if keys else command.name
            yield SystemCommand(title, command.help, lambda name=command.name: self.action_command(name))

    def action_command_palette(self) -> None:
        """The palette, unless it is open."""
        from tui.palette import Palette

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

    # work ---------------------------------------------------------------------------------------------

    def begin(self, job: Callable[[Session], None], *, reading: bool = False) -> Session:
        """A session whose job runs on a working thread from now on."""
        session = self._working = Session()
        self._begun.add(session)
        self.run_worker(
            lambda: session.work(job, reading=reading),
            thread=True,
            group="engine",
            exit_on_error=False,
            name="engine",
        )
        return session

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """An error that nobody named ends the work, not the app."""
        if event.state is WorkerState.ERROR and event.worker.name == "engine" and self._working:
            error = event.worker.error
            self._working.fail(f"{type(error).__name__}: {error}")

    def work_on(self, job: Callable[[Session], None], *, reading: bool = False) -> None:
        """Begin work and watch it."""
        from tui.screens.run import RunScreen

        self.push_screen(RunScreen(self.begin(job, reading=reading)))

    def resumed(self, run: str) -> Session:
        """A session that continues a run."""
        return self.begin(lambda session: self.backend.resume(run, session))

    def resume_run(self, run: str) -> None:
        self.work_on(lambda session: self.backend.resume(run, session))

    def read_run(self, run: str) -> None:
        """Show a stored run."""
        self.work_on(lambda session: self.backend.read(run, session), reading=True)

    # screens ------------------------------------------------------------------------------------------

    def open_form(self) -> None:
        """The form of a new run, once its schema is there."""
        from tui.form import fields_of
        from tui.screens.new_run import NewRunScreen

        def open_it() -> None:
            fields = fields_of(self.backend.schema())
            self.call_from_thread(self._push, NewRunScreen, fields)

        self.run_worker(open_it, thread=True, exclusive=True, group="form")

    def _push(self, screen: Callable[..., Screen[None]], *arguments: object) -> None:
        """Make a screen and show it, on the screen's thread."""
        self.push_screen(screen(*arguments))

    def open_replay(self, session: Session) -> None:
        from tui.screens.replay import ReplayScreen

        if session.busy:
            self.tell("the search is still running; replay when it has ended or was stopped")
        else:
            self.push_screen(ReplayScreen(session))

    def open_comparison(self, left: Side, right: Side) -> None:
        from tui.screens.compare import CompareScreen

        self.push_screen(CompareScreen(left, right))

    def compare_runs(self, first: str, second: str) -> None:
        """Read two stored runs and compare them."""

        def side(run: str) -> Side:
            session = Session()
            session.replay(self.backend.events(run))
            return Side(name=f"run {run}", state=session.state)

        def open_it() -> None:
            try:
                left, right = side(first), side(second)
            except MechaRuleError as error:
                self.call_from_thread(self.tell, str(error))
                return
            self.call_from_thread(self.open_comparison, left, right)

        self.run_worker(open_it, thread=True, exclusive=True, group="compare")

    # commands that every screen has -------------------------------------------------------------------

    def do_help(self) -> None:
        from tui.screens.popups import HelpPopup

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
        if self._working is not None and self._working.busy:
            self._working.stop()
            self.tell("stopping after this batch; the checkpoint is kept")
            return
        if self._quitting.again():
            self.do_quit()
        else:
            self.tell("press ^C again to quit")

    def do_quit(self) -> None:
        """End the work and leave."""
        self.end_work()
        self.exit(0)

    def end_work(self) -> None:
        """Ask all work to stop at its next event."""
        for session in set(self._begun):
            session.stop()


def run_app(backend: Backend | None = None) -> int:
    """The exit code of the app after it was left; what it wrote is named on stderr."""
    from tui.terminal import screen_kept

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
