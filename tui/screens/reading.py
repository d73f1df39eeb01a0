"""Reading: what a tool says of a run, its rows as a table with the one under the cursor in full, or its text.

Claims, rules, comparisons, gates and the whole report are read here; nothing is worded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from rich.text import Text
from textual.app import ComposeResult
from textual.widgets import DataTable

from mecharule_ops import errors, plain_text
from mecharule_ops.events import UnitJudged
from mecharule_ops.facts.fact import said as told
from tui import chat_pane, text_panes, words
from tui.screens.common import CommandScreen, Line, fitted, hint_parts

if TYPE_CHECKING:
    from tools.result import ToolResult


def rules_text(rows: Sequence[Mapping[str, Any]], judged: Mapping[tuple[int, str], UnitJudged]) -> Text:
    """A row a unit, with its mark: its exception where that is shown, else its first rule, in words, with the flips
    where it holds and elsewhere.

    Units that are shown go before the others, then rules that answers kept aside bear out; the others are counted.
    """
    from mecharule_ops.facts.rules import in_brief, short

    text, named = Text(), itemgetter("search", "unit")
    first = {named(row): row for row in (*rows, *rows[::-1])}
    first |= {named(row): row for row in rows if row["family"] == "exception" and row["rule"]}
    units = [(row, judged.get((int(row["regime"] == words.arrow(1)), row["unit"]))) for row in first.values()]
    looks = [(row, words.JUDGED[unit.certainty] if unit else words.NOT_RULED_OUT) for row, unit in units]
    for row, look in sorted(looks, key=lambda one: (one[1] != words.JUDGED["shown"], one[0]["rule"] is None)):
        text.append(f"{look.glyph} ", look.style)
        text.append(f"{plain_text.plain(row['unit'])}  {row['regime']}", "bold")
        text.append(f"  unit {look.word}", look.style)
        if row["n_where"] is None:
            text.append(f"  {plain_text.plain(row['learned'] or row['absent'])}\n\n")
            continue
        mcc = "" if row["mcc"] is None else f", MCC {short(row['mcc'])}"
        holds, _, why = row["shown"].partition(", ")
        text.append(f"  {told(f'rule.told.{holds}', family=row['family'], why=f'{why}{mcc}')}\n", "dim")
        text.append(f"{plain_text.plain(in_brief(row['in_words']) or row['learned'])}\n")
        counts = [(row[f"flips_{where}"], row[f"n_{where}"]) for where in ("where", "elsewhere")]
        text.append_text(words.where_bars(counts, look.style if row["rule"] else "dim")).append("\n")
    others = len(rows) - len(first)
    return text.append(told("rule.told.others", others=others) if others else "", "dim")


class ReadingScreen(CommandScreen):
    """One answer of one tool."""

    NAME = "reading"

    def __init__(
        self, line: str, run: str, judged: Mapping[tuple[int, str], UnitJudged] | None = None
    ) -> None:
        super().__init__()
        self.line, self.run, self.judged = line, run, judged or {}
        self.rows: list[dict[str, str]] = []

    def compose(self) -> ComposeResult:
        yield Line(f" {plain_text.plain(self.line)} · reading …", id="headline", classes="title")
        yield text_panes.TextTable(told("help.reading"), id="rows")
        yield text_panes.ReadingPane(told("help.reading"), id="reading")
        yield Line(fitted(hint_parts("reading", ("refresh", "save", "back", "help"))), classes="status")

    def on_mount(self) -> None:
        self.query_one(text_panes.ReadingPane).focus()
        self.do_refresh()

    def do_refresh(self) -> None:
        """Ask the tool, off the screen's thread."""
        from tools.result import ToolResult

        def ask() -> ToolResult:
            try:
                return self.app.backend.call(self.line, self.run, lambda doing: None)
            except errors.MechaRuleError as error:
                return ToolResult(text=str(error))

        self.app.fetch(self, "reading", ask, self._show)

    def _show(self, result: ToolResult) -> None:
        header, rows = (result.table.header, result.table.rows) if result.table else ((), ())
        self.rows = [dict(zip(header, map(plain_text.plain, row), strict=True)) for row in rows]
        title, _, body = result.text.partition("\n")
        if not (self.rows or self.line.startswith("compare ")):
            title, body = self.line, result.text
        self.query_one("#headline", Line).say(f" {plain_text.plain(title)}")
        values: Any = result.data.get("rows") or [{}]
        listed = bool(self.rows) and "n_where" not in values[0]
        self.set_class(listed, "with-rows")
        if listed:
            table = self.query_one(text_panes.TextTable)
            table.show(header, [tuple(row.values()) for row in self.rows])
            table.focus()
        else:
            text = Text("\n".join(map(chat_pane.plain_columns, body.splitlines())))
            shown = rules_text(values, self.judged) if self.rows else text
            self.query_one(text_panes.ReadingPane).show(shown)

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        if self.has_class("with-rows"):
            text = Text()
            for name, value in self.rows[event.cursor_row].items():
                text.append(f"{name}  ", "bold").append(f"{value}\n")
            self.query_one(text_panes.ReadingPane).show(text)

    def do_save(self) -> None:
        name = f"{self.run} {self.line.removeprefix('show --table ').partition(' --limit')[0]}"
        if self.rows:
            from mecharule_ops.pages.as_text import csv_of

            self.app.save(f"{name}.csv", csv_of([*self.rows[0]], [tuple(row.values()) for row in self.rows]))
        else:
            self.app.save(f"{name}.txt", self.query_one(text_panes.ReadingPane).text.plain + "\n")
