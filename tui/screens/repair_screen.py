"""Repair: what gates made of a run's answers, beside controls; one is made here when asked for."""

from __future__ import annotations

from functools import partialmethod

from rich.text import Text

from mecharule_ops.report.as_text import csv_of, markdown_of
from mecharule_ops.report.repairs import gates_table
from tui.commands import command_named
from tui.repair_text import REPAIR_HELP, HeldRepairs, empty_text, repair_text, title
from tui.screens.common import hint_parts
from tui.screens.made_here import MadeHereScreen
from tui.seconds import clock
from tui.session import Session
from tui.words import Activity, said

_DONE = {
    Activity.ENDED: "the repair is made",
    Activity.STOPPED: "stopped; nothing of this repair is kept",
}
"""What is said when making one is over, unless it failed."""


class RepairScreen(MadeHereScreen):
    """One repair of a run, the latest first."""

    NAME = "repair"
    ABOUT = REPAIR_HELP
    KEPT = "nothing of it is kept"

    def __init__(self, session: Session) -> None:
        super().__init__(session.run or "")
        self.session = session
        """The run, of which something is on file."""
        self.held: HeldRepairs | None = None
        """None until the file was read."""

    def take_in(self) -> None:
        self.held = self.app.backend.repairs(self.run_id)

    def made(self, making: Session) -> None:
        self.notice = _DONE.get(making.activity, making.failure)
        if making.activity is Activity.ENDED:
            self.place = 0
            self.read()

    @property
    def count(self) -> int:
        return len(self.held.repairs) if self.held is not None else 0

    @property
    def chosen(self) -> tuple[object, ...]:
        return ((self.held, self.place),)

    def text_of_chosen(self, width: int) -> Text:
        if self.held is None:
            return said("Reading the run's file.", "dim")
        if self.held.repairs:
            return repair_text(self.held, self.place, width)
        command = command_named("make-repair", self.NAME)
        assert command is not None
        return empty_text(self.held, width, command.key)

    @property
    def heading(self) -> str:
        return "Repairs" if self.held is None else title(self.held, self.place)

    def progress(self, making: Session) -> str:
        doing = making.turns[-1].text if making.turns else "reading the run"
        word = "stopping after this batch" if making.activity is Activity.STOPPING else "making a repair"
        return f"{word} · {clock(making.elapsed)} · {doing}"

    @property
    def keys(self) -> list[str]:
        words = {"next-repair": "next", "make-repair": "make one", "back": "stop" if self.making else "back"}
        several = ["next-repair"] if self.count > 1 else []
        return hint_parts(self.NAME, ("back", *several, "make-repair", "copy", "save", "help"), words)

    # commands ------------------------------------------------------------------------------------------

    do_next_repair = partialmethod(MadeHereScreen.turn, 1)
    do_previous_repair = partialmethod(MadeHereScreen.turn, -1)

    def do_make_repair(self) -> None:
        if self.making is not None:
            self.app.tell("a repair is being made; Esc twice stops it")
        elif self.session.busy:
            self.app.tell("the search is still running; make a repair when it has ended or was stopped")
        else:
            run, backend = self.run_id, self.app.backend
            self.notice = ""
            self.making = self.app.begin(lambda session: backend.make_repair(run, session))

    def do_save(self) -> None:
        if self.held is None or not self.held.repairs:
            self.app.tell("there is nothing to save here yet")
            return
        gates = gates_table(self.held.repairs[self.place])
        self.app.save(f"{self.run_id}-gates.csv", csv_of(gates.header, gates.rows))
        self.app.save(f"{self.run_id}-repair.md", markdown_of(self.held.document(self.place)))
