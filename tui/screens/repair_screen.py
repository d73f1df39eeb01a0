"""Repair: what gates made of a run's answers, beside controls; one is made here when asked for."""

from __future__ import annotations

from functools import partialmethod

from rich.text import Text
from textual.app import ComposeResult
from textual.events import Resize

from mecharule_ops.errors import MechaRuleError
from mecharule_ops.plain_text import plain
from mecharule_ops.report.as_text import csv_of, markdown_of
from mecharule_ops.report.repairs import gates_table
from tui.commands import command_named
from tui.repair_text import REPAIR_HELP, HeldRepairs, empty_text, repair_text, title
from tui.screens.common import CommandScreen, Line, PressedTwice, fitted, hint_parts
from tui.session import Session
from tui.text_panes import ReadingPane
from tui.words import Activity, clock, said

REFRESHES_A_SECOND = 8
_DONE = {
    Activity.ENDED: "the repair is made",
    Activity.STOPPED: "stopped; nothing of this repair is kept",
}
"""What is said when making one is over, unless it failed."""


class RepairScreen(CommandScreen):
    """One repair of a run, the latest first; what working threads publish is looked at a few times a second."""

    NAME = "repair"

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        """The run, of which something is on file."""
        self.place = 0
        self.held: HeldRepairs | None = None
        """None until the file was read."""
        self.making: Session | None = None
        """The work of making one, while it lasts."""
        self.notice = ""
        """What is said below the text: why nothing could be read or made, or that it was."""
        self._drawn: tuple[object, ...] = ()
        self._stopping = PressedTwice()

    def compose(self) -> ComposeResult:
        yield Line(" Repairs", id="repair-title", classes="title")
        yield ReadingPane(REPAIR_HELP, id="repair")
        yield Line(id="making")
        yield Line(id="status", classes="status")

    def on_mount(self) -> None:
        self.moved.focus()
        self.read()
        self.set_interval(1 / REFRESHES_A_SECOND, self.look)

    @property
    def moved(self) -> ReadingPane:
        return self.query_one(ReadingPane)

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.session.run or ""

    def read(self) -> None:
        """Read the run's file on a working thread."""
        self.run_worker(self._read, thread=True, exclusive=True, group="repairs")

    def _read(self) -> None:
        try:
            self.held = self.app.backend.repairs(self.run_id)
        except (MechaRuleError, OSError) as error:
            self.notice = str(error)

    def look(self) -> None:
        """Put the question of the work, take its end in, and draw."""
        making = self.making
        if making is not None:
            self.put_question(making)
        if making is not None and making.ended is not None:
            self.making = None
            self.notice = _DONE.get(making.activity, making.failure)
            if making.activity is Activity.ENDED:
                self.place = 0
                self.read()
        self.draw()

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(self.draw)

    def draw(self) -> None:
        """Show the chosen repair where it, or the width, is another than drawn; and the lines around it."""
        width = self.moved.scrollable_content_region.width
        latest = (self.held, self.place, width)
        if width > 0 and latest != self._drawn:
            if (self.held, self.place) != self._drawn[:2]:
                self.moved.scroll_home(animate=False)
            self._drawn = latest
            self.moved.show(self._text(width))
            if self.held is not None:
                self.query_one("#repair-title", Line).say(f" {title(self.held, self.place)}")
        line = self.query_one("#making", Line)
        line.display = bool(self.making or self.notice)
        line.say(f" {self._progress()}")
        self.query_one("#status", Line).say(fitted(self._keys(), self.app.size.width))

    def _text(self, width: int) -> Text:
        if self.held is None:
            return said("Reading the run's file.", "dim")
        if self.held.repairs:
            return repair_text(self.held, self.place, width)
        command = command_named("make-repair", self.NAME)
        assert command is not None
        return empty_text(self.held, width, command.key)

    def _progress(self) -> str:
        making = self.making
        if making is None:
            return plain(self.notice)
        doing = plain(making.turns[-1].text) if making.turns else "reading the run"
        word = "stopping after this batch" if making.activity is Activity.STOPPING else "making a repair"
        return f"{word} · {clock(making.elapsed)} · {doing}"

    def _keys(self) -> list[str]:
        words = {"next-repair": "next", "make-repair": "make one", "back": "stop" if self.making else "back"}
        several = ["next-repair"] if self.held is not None and len(self.held.repairs) > 1 else []
        names = ("back", *several, "make-repair", "copy", "save", "help")
        return hint_parts(self.NAME, names, words)

    # commands ------------------------------------------------------------------------------------------

    def do_back(self) -> None:
        if self.making is None:
            super().do_back()
        elif self._stopping.again():
            self.making.stop()
        else:
            self.app.tell("press Esc again to stop the repair (nothing of it is kept)")

    def _turn(self, step: int) -> None:
        if self.held is not None and self.held.repairs:
            self.place = (self.place + step) % len(self.held.repairs)
            self.draw()

    do_next_repair = partialmethod(_turn, 1)
    do_previous_repair = partialmethod(_turn, -1)

    def do_make_repair(self) -> None:
        if self.making is not None:
            self.app.tell("a repair is being made; Esc twice stops it")
        elif self.session.busy:
            self.app.tell("the search is still running; make a repair when it has ended or was stopped")
        else:
            run, backend = self.run_id, self.app.backend
            self.notice = ""
            self.making = self.app.begin(lambda session: backend.make_repair(run, session))

    def do_copy(self) -> None:
        self.app.copy("repair", self.moved.text.plain)

    def do_save(self) -> None:
        if self.held is None or not self.held.repairs:
            self.app.tell("there is nothing to save here yet")
            return
        gates = gates_table(self.held.repairs[self.place])
        self.app.save(f"{self.run_id}-gates.csv", csv_of(gates.header, gates.rows))
        self.app.save(f"{self.run_id}-repair.md", markdown_of(self.held.document(self.place)))
