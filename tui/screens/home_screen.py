"""Home: the stored runs, and the ways to begin one."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.widgets import DataTable

from mecharule_ops.numbers import plural
from tui.screens.common import CommandScreen, Line, PricePopup, fitted, hint_parts
from tui.screens.new_run import NewRunScreen, fields_of
from tui.screens.reading import ReadingScreen
from tui.screens.run_screen import RunScreen
from tui.session import Session
from tui.text_panes import TextTable

if TYPE_CHECKING:
    from mecharule_ops.store.run_directory import RunSummary

RUNS_HELP = (
    "Stored runs, the one that ended last first. Enter opens one, ^R continues one that was stopped, Space "
    "marks two to be compared with c."
)
DEMO = "demo: bundled model, no key, no download, under a minute"
HEADER = ("run", "status", "model", "task", "when (UTC)")


class HomeScreen(CommandScreen):
    """Recent runs, resume, demo, new."""

    NAME = "home"

    def __init__(self) -> None:
        super().__init__()
        self.summaries: tuple[RunSummary, ...] = ()
        self.marked: list[str] = []

    def compose(self) -> ComposeResult:
        yield Line(
            " MechaRule · which units control a behaviour, by which rule, proved by ablation", classes="title"
        )
        yield Line(f" d  {DEMO}")
        yield Line(" n  new run: choose task, model and settings; the price is asked first")
        yield Line(" reading the stored runs …", id="count")
        yield TextTable(RUNS_HELP, id="runs")
        keys = hint_parts("home", ("demo", "new", "resume", "compare-runs", "help", "quit"))
        yield Line(fitted(keys), id="status", classes="status")

    def on_screen_resume(self) -> None:
        self.query_one(TextTable).focus()
        self.do_refresh()

    def do_refresh(self) -> None:
        """Read the folder again, off the screen's thread."""
        self.app.fetch(self, "runs", self.app.backend.runs, self._list)

    def _list(self, summaries: tuple[RunSummary, ...]) -> None:
        self.summaries = summaries
        said = f"{plural(len(summaries), 'stored run')}; Enter opens one, ^R resumes one, Space marks one"
        self.query_one("#count", Line).say(f" {said if summaries else 'no runs yet: press d for the demo'}")
        self._show_rows()

    def _show_rows(self) -> None:
        rows = []
        for run in self.summaries:
            when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(run.when)) if run.when else ""
            rows.append((run.id + " *" * (run.id in self.marked), run.status, run.model, run.task, when))
        self.query_one(TextTable).show(HEADER, rows)

    @property
    def selected(self) -> RunSummary | None:
        """The run under the cursor."""
        table = self.query_one(TextTable)
        return self.summaries[table.cursor_row] if table.selected else None

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        event.stop()
        self.do_open()

    def _watch(self, job: Callable[[Session], None], *, reading: bool = False) -> None:
        """Begin work and watch it."""
        self.app.push_screen(RunScreen(self.app.begin(job, reading=reading)))

    def do_demo(self) -> None:
        """The demo, once a person has said yes."""

        def start(yes: bool | None) -> None:
            if yes:
                self._watch(self.app.backend.demo)

        self.app.push_screen(PricePopup(DEMO), start)

    def do_new(self) -> None:
        """The form of a new run."""
        self.app.fetch(self, "form", fields_of, lambda fields: self.app.push_screen(NewRunScreen(fields)))

    def do_open(self) -> None:
        if self.selected is not None:
            self._watch(partial(self.app.backend.read, self.selected.id), reading=True)

    def do_resume(self) -> None:
        if self.selected is not None:
            self._watch(partial(self.app.backend.resume, self.selected.id))

    def do_mark(self) -> None:
        run = self.selected
        if run is None:
            return
        if run.id in self.marked:
            self.marked.remove(run.id)
        else:
            self.marked = [*self.marked[-1:], run.id]
        self._show_rows()

    def do_compare_runs(self) -> None:
        if len(self.marked) != 2:
            self.app.tell("mark two runs with Space first")
            return
        first, second = self.marked
        self.app.push_screen(ReadingScreen(f"compare {first}", second))

    def do_back(self) -> None:
        self.app.tell("this is the first screen; ^Q leaves")
