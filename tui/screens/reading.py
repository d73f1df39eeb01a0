"""Reading: what a tool says of a run, its rows as a table with the one under the cursor in full, or its text.

Claims, rules, comparisons, gates and the whole report are read here; nothing is worded.
"""

from rich.text import Text
from textual.app import ComposeResult
from textual.widgets import DataTable

from mecharule_ops.errors import MechaRuleError
from mecharule_ops.plain_text import plain
from tools.result import ToolResult
from tui.chat_pane import plain_columns
from tui.screens.common import CommandScreen, Line, fitted, hint_parts
from tui.text_panes import ReadingPane, TextTable

READING_HELP = (
    "What a tool says of the run, as `mecharule` prints it. In a table the row under the cursor stands below in full. "
    "r reads again, for more of a run at work; e writes CSV, or the text."
)


class ReadingScreen(CommandScreen):
    """One answer of one tool."""

    NAME = "reading"

    def __init__(self, line: str, run: str) -> None:
        super().__init__()
        self.line, self.run = line, run
        self.rows: list[dict[str, str]] = []

    def compose(self) -> ComposeResult:
        yield Line(f" {plain(self.line)} · reading …", id="headline", classes="title")
        yield TextTable(READING_HELP, id="rows")
        yield ReadingPane(READING_HELP, id="reading")
        yield Line(fitted(hint_parts("reading", ("refresh", "save", "back", "help"))), classes="status")

    def on_mount(self) -> None:
        self.query_one(ReadingPane).focus()
        self.do_refresh()

    def do_refresh(self) -> None:
        """Ask the tool, off the screen's thread."""

        def ask() -> ToolResult:
            try:
                return self.app.backend.call(self.line, self.run, lambda doing: None)
            except MechaRuleError as error:
                return ToolResult(text=str(error))

        self.app.fetch(self, "reading", ask, self._show)

    def _show(self, result: ToolResult) -> None:
        header, told = (result.table.header, result.table.rows) if result.table else ((), ())
        self.rows = [dict(zip(header, map(plain, row), strict=True)) for row in told]
        title = result.text.partition("\n")[0] if self.rows else self.line
        self.query_one("#headline", Line).say(f" {plain(title)}")
        self.set_class(bool(self.rows), "with-rows")
        table = self.query_one(TextTable)
        table.show(header, [tuple(row.values()) for row in self.rows])
        if self.rows:
            table.focus()
        else:
            text = "\n".join(map(plain_columns, result.text.splitlines()))
            self.query_one(ReadingPane).show(Text(text))

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        if self.rows:
            text = Text()
            for name, value in self.rows[event.cursor_row].items():
                text.append(f"{name}  ", "bold").append(f"{value}\n")
            self.query_one(ReadingPane).show(text)

    def do_save(self) -> None:
        name = f"{self.run} {self.line.removeprefix('show --table ').partition(' --limit')[0]}"
        if self.rows:
            from mecharule_ops.pages.as_text import csv_of

            self.app.save(f"{name}.csv", csv_of([*self.rows[0]], [tuple(row.values()) for row in self.rows]))
        else:
            self.app.save(f"{name}.txt", self.query_one(ReadingPane).text.plain + "\n")
