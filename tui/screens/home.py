"""Home: the stored runs, and the ways to begin one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.widgets import DataTable

from tui.commands import bindings_of
from tui.panes.table import RUNS_HELP, TextTable
from tui.screens.base import Line, hints
from tui.screens.tables import TableScreen
from tui.words import counted

if TYPE_CHECKING:
    from mecharule_ops.store.run_directory import RunSummary

HEADER = ("run", "status", "model", "task", "when (UTC)")


class HomeScreen(TableScreen):
    """Recent runs, resume, demo, new."""

    NAME = "home"
    BINDINGS = bindings_of("home")

    def __init__(self) -> None:
        super().__init__()
        self.summaries: tuple[RunSummary, ...] | None = None
        self.marked: list[str] = []

    def compose(self) -> ComposeResult:
        yield Line(
            " MechaRule · which units control a behaviour, by which rule, proved by ablation", classes="title"
        )
        yield Line(" d  demo: bundled model, no key, no download, under a minute")
        yield Line(" n  new run: choose task, model and settings; the price is asked first")
        yield Line(" reading the stored runs …", id="count")
        yield TextTable(HEADER, RUNS_HELP, id="runs")
        yield Line(id="status", classes="status")

    def on_mount(self) -> None:
        self._say_keys()

    def on_screen_resume(self) -> None:
        self.table.focus()
        self.do_refresh()

    def do_refresh(self) -> None:
        """Read the folder again, off the screen's thread."""
        self.run_worker(self._read, thread=True, exclusive=True, group="runs")

    def _read(self) -> None:
        summaries = self.owner.backend.runs()
        self.app.call_from_thread(self._list, summaries)

    def _list(self, summaries: tuple[RunSummary, ...]) -> None:
        self.summaries = summaries
        said = f"{counted(len(summaries), 'stored run')}; Enter opens one, ^R resumes one, Space marks one"
        self.query_one("#count", Line).say(f" {said if summaries else 'no runs yet: press d for the demo'}")
        self._show_rows()

    def _show_rows(self) -> None:
        rows = [
            (
                run.id + (" *" if run.id in self.marked else ""),
                run.status,
                run.model,
                run.task,
                time.strftime("%Y-%m-%d %H:%M", time.gmtime(run.created)) if run.created else "",
            )
            for run in self.summaries or ()
        ]
        self.table.show(rows)

    def _say_keys(self) -> None:
        keys = hints(
            "home", ("demo", "new", "resume", "compare-runs", "help", "quit"), {"compare-runs": "compare"}
        )
        self.query_one("#status", Line).say(f" {keys} · ^P palette")

    @property
    def selected(self) -> RunSummary | None:
        """The run under the cursor."""
        table = self.table
        return self.summaries[table.cursor_row] if self.summaries and table.selected else None

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        event.stop()
        self.do_open()

    def do_demo(self) -> None:
        self.owner.work_on(self.owner.backend.demo)

    def do_new(self) -> None:
        self.owner.open_form()

    def do_open(self) -> None:
        if self.selected is not None:
            self.owner.read_run(self.selected.id)

    def do_resume(self) -> None:
        if self.selected is not None:
            self.owner.resume_run(self.selected.id)

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
        if len(self.marked) == 2:
            self.owner.compare_runs(self.marked[0], self.marked[1])
        else:
            self.owner.tell("mark two runs with Space first")

    def do_back(self) -> None:
        self.owner.tell("this is the first screen; ^Q leaves")
