"""Ledger: every hypothesis of a run, registered before its test ran, and what came out.

A prediction is asserted until its test has run; what decides it was fixed before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from rich.text import Text
from textual.app import ComposeResult
from textual.widgets import DataTable

from mecharule_ops.plain_text import plain
from mecharule_ops.state.run_state import HypothesisView, RunState
from tui.screens.common import CommandScreen, Line, hints
from tui.text_panes import ReadingPane, TextTable
from tui.words import PREDICTION_LOOKS, counted, rate, said

LEDGER_HELP = (
    "One line a hypothesis. It was registered with the condition, the deciding test and the threshold before "
    "anything was measured, and cannot be changed since; it is decided once. Underpowered means that too few "
    "held-out records flip, or too few do not, to decide."
)
REFRESHES_A_SECOND = 4
HEADER = ("id", "state", "unit", "measured", "needs", "n", "holds where", "hypothesis")


def hypothesis_rows(state: RunState) -> list[tuple[str, ...]]:
    """Every entry in the order registered, as printed under `HEADER`."""
    rows: list[tuple[str, ...]] = []
    for entry in state.hypotheses.values():
        told, decided, look = entry.registered, entry.decided, PREDICTION_LOOKS[entry.state]
        cells = (
            plain(told.hypothesis),
            f"{look.glyph} {look.word}",
            plain(told.subject),
            rate(decided.value if decided else None),
            rate(told.threshold),
            f"{decided.n:,}" if decided else "–",
            plain(told.condition),
            plain(told.statement),
        )
        rows.append(cells)
    return rows


def ledger_sentence(state: RunState) -> str:
    """`3 hypotheses: 1 open, 2 refuted`."""
    counts = Counter(entry.state for entry in state.hypotheses.values())
    if not counts:
        return "no hypothesis is registered; i on the screen of a run registers claims, each before its test"
    parts = [f"{counts[name]} {name}" for name in PREDICTION_LOOKS if counts[name]]
    total = counts.total()
    return f"{total} {'hypothesis' if total == 1 else 'hypotheses'}: {', '.join(parts)}"


def hypothesis_text(entry: HypothesisView) -> Text:
    """One entry: the prediction, what decides it, and what came out."""
    told, decided, look = entry.registered, entry.decided, PREDICTION_LOOKS[entry.state]
    text = Text().append(f"{look.glyph} {look.word}", look.style)
    text.append(f"  {plain(told.subject)}  {plain(told.hypothesis)}\n", "bold")
    text.append(f"grade: {'asserted' if decided is None else 'held-out'}\n", "dim")
    text.append(f"{plain(told.statement)}\n")
    text.append("flips where  ", "bold").append(f"{plain(told.condition)}\n")
    text.append("decided by   ", "bold").append(f"{plain(told.test)}, at least {rate(told.threshold)}\n")
    if decided is None:
        return text.append("its test has not run", "dim")
    value = "could not be decided: too few of one side" if decided.value is None else rate(decided.value)
    text.append("measured     ", "bold").append(f"{value} on {counted(decided.n, 'record')}")
    return text.append(f", {decided.positives:,} of them flips")


class LedgerScreen(CommandScreen):
    """The table of hypotheses and the one under the cursor in full; it grows while the work goes on."""

    NAME = "ledger"

    def __init__(self, latest: Callable[[], RunState]) -> None:
        super().__init__()
        self.latest = latest
        """Gives the snapshot to show."""
        self._drawn: Mapping[str, HypothesisView] | None = None

    def compose(self) -> ComposeResult:
        yield Line(id="ledger-title", classes="title")
        yield TextTable(HEADER, LEDGER_HELP, id="ledger")
        yield ReadingPane(LEDGER_HELP, id="hypothesis")
        yield Line(hints("ledger", ("copy", "save", "back", "help")), classes="status")

    def on_mount(self) -> None:
        self.query_one(TextTable).focus()
        self.call_after_refresh(self.draw)
        self.set_interval(1 / REFRESHES_A_SECOND, self.draw)

    def draw(self) -> None:
        """Show the latest snapshot when it holds another ledger."""
        state = self.latest()
        if state.hypotheses is self._drawn or not self.app.holds(self):
            return
        self._drawn = state.hypotheses
        run = f"run {plain(state.header.run)} · " if state.header else ""
        self.query_one("#ledger-title", Line).say(f" Ledger · {run}{ledger_sentence(state)}")
        self.query_one(TextTable).show(hypothesis_rows(state))
        self._show_selected()

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        self._show_selected()

    def _show_selected(self) -> None:
        row = self.query_one(TextTable).selected
        entry = self.latest().hypotheses.get(row[0]) if row else None
        text = said("Nothing to read yet.", "dim") if entry is None else hypothesis_text(entry)
        self.query_one("#hypothesis", ReadingPane).show(text)

    def do_copy(self) -> None:
        self.app.copy("hypothesis", self.query_one(ReadingPane).text.plain)

    def do_save(self) -> None:
        self.app.save_table("ledger", HEADER, hypothesis_rows(self.latest()))
