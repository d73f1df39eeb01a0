"""The chat: questions, answers, and tool calls with what the tool printed."""

import re
from functools import partialmethod

from rich.console import Group
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.events import Paste
from textual.message import Message
from textual.widgets import Input, Static

from agent.consent import NO_QUESTION
from mecharule_ops.facts.fact import said
from mecharule_ops.plain_text import plain
from tui.session import Entry

_STYLES = {"you": "bold", "tool": "cyan", "agent": "", "note": "dim", "warn": "bold red", "error": "bold red"}
_ROW = re.compile(r"^ {24}|[^\s.!?:] {2,}\S.*[^\s.!?:] {2,}\S|^-+  -")
"""Of a printed table, whose cells stand apart more than once, or one far to the right; sentences do after their points
alone, and what hangs under a row stands to the left."""


def entry_lines(entry: Entry) -> list[Text]:
    """What a turn says, in plain lines; rows of a table end where the pane does."""
    lines = [(line, "bold red" if entry.who == "warn" else "") for line in entry.text.splitlines()]
    lines += [(line, "dim") for line in entry.detail.splitlines()]
    told = ((plain_columns(line), style, bool(_ROW.search(line))) for line, style in lines)
    return [Text(one, style, no_wrap=row, overflow="ellipsis" if row else None) for one, style, row in told]


def plain_columns(line: str) -> str:
    """A line of a printed table: plain, with its runs of spaces."""
    return " ".join(plain(word) for word in line.split(" "))


class ChatLine(Static):
    """One turn on the screen: the word of who speaks, and beside it the text."""

    def __init__(self, entry: Entry) -> None:
        super().__init__(markup=False)
        self.become(entry)

    def become(self, entry: Entry) -> None:
        """Show another version of the turn."""
        self.entry = entry
        grid = Table.grid(padding=(0, 1))
        grid.add_column(width=5, justify="right")
        grid.add_column(ratio=1)
        grid.add_row(Text(entry.who, _STYLES[entry.who]), Group(*entry_lines(entry)))
        self.update(grid)


class AskLine(Input):
    """The line to type in; several that are pasted become one."""

    def _on_paste(self, event: Paste) -> None:
        event.text = " ".join(line.strip() for line in event.text.splitlines())


class ChatPane(Vertical):
    """The log and the line to type in."""

    about = said("help.chat")

    class LineSaid(Message):
        """The person has sent a line."""

        def __init__(self, line: str) -> None:
            self.line = line
            super().__init__()

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.history: list[str] = []
        self._recalled = 0

    def compose(self) -> ComposeResult:
        yield VerticalScroll(id="log")
        with Horizontal(id="prompt"):
            yield Static("❯ ", markup=False)
            yield AskLine(placeholder="ask, or / for commands", id="ask", compact=True, select_on_focus=False)

    def add(self, entry: Entry) -> ChatLine:
        """Add a turn and scroll to it."""
        line = ChatLine(entry)
        self.query_one("#log").mount(line)
        self.to_end()
        return line

    def to_end(self) -> None:
        """Scroll to the last turn."""
        self.query_one("#log").scroll_end(animate=False)

    def to_last(self, who: str = "") -> None:
        """Scroll to the last turn, of one who speaks or of all: a longer one is read from its first line."""
        turns = [one for one in self.query(ChatLine) if who in ("", one.entry.who)]
        if turns:
            self.call_after_refresh(
                self.query_one("#log").scroll_to_widget, turns[-1], top=True, animate=False
            )

    # The pane may shrink to a line, which is then of the last turn.
    on_descendant_blur = partialmethod(to_last)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        suggests = any(line.entry.text.startswith(NO_QUESTION) for line in list(self.query(ChatLine))[-1:])
        line = event.value.strip() or "1" * suggests
        event.input.value = ""
        if line:
            self.history.append(line)
            self._recalled = 0
            self.post_message(self.LineSaid(line))

    def key_pageup(self) -> None:
        self.query_one("#log").scroll_page_up(animate=False)

    def key_pagedown(self) -> None:
        self.query_one("#log").scroll_page_down(animate=False)

    def _recall(self, step: int) -> None:
        self._recalled = min(max(self._recalled + step, 0), len(self.history))
        self.begin_line(self.history[-self._recalled] if self._recalled else "")

    key_up = partialmethod(_recall, 1)
    key_down = partialmethod(_recall, -1)

    def begin_line(self, text: str) -> None:
        """Put a text where lines are typed, to go on with."""
        field = self.query_one(Input)
        field.value = text
        field.cursor_position = len(text)
