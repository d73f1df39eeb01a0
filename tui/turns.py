"""The turns of a chat: who speaks, what is said, and what opens under it."""

from __future__ import annotations

from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from mecharule_ops.events import (
    Event,
    HypothesisDecided,
    HypothesisRegistered,
    LlmCost,
    LlmMessage,
    Notice,
    Price,
    QuestionAnswered,
    RefinementFinished,
    RunFinished,
    StageFinished,
    ToolCalled,
)
from mecharule_ops.plain_text import plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One turn."""

    who: str
    """`you`, `tool`, `agent`, `note` or `error`."""
    text: str
    detail: str = ""
    """What opens under the line."""
    is_open: bool = False


_STYLES = {"you": "bold", "tool": "cyan", "agent": "", "note": "dim", "error": "bold red"}


_SPEAKERS: tuple[tuple[tuple[type[Event], ...], str], ...] = (
    ((LlmMessage,), "agent"),
    ((ToolCalled,), "tool"),
    ((LlmCost, QuestionAnswered, HypothesisRegistered, HypothesisDecided, RefinementFinished), "note"),
    ((StageFinished, Notice, Price, RunFinished), "note"),
)
"""Who says what each event tells."""


def entry_text(entry: Entry) -> Text:
    """What a turn says, in plain lines."""
    text = Text("▾ " if entry.is_open else "▸ ") if entry.who == "tool" else Text()
    text.append("\n".join(map(plain, entry.text.splitlines())))
    if entry.is_open:
        text.append("".join(f"\n{plain_columns(line)}" for line in entry.detail.splitlines()), "dim")
    return text


def entry_view(entry: Entry) -> Table:
    """The turn as drawn: the word of who speaks, and beside it the text."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=5, justify="right")
    grid.add_column(ratio=1)
    grid.add_row(Text(entry.who, _STYLES[entry.who]), entry_text(entry))
    return grid


def plain_columns(line: str) -> str:
    """A line of a printed table: plain, with its runs of spaces."""
    return " ".join(plain(word) for word in line.split(" "))


def narrated(event: Event) -> Entry | None:
    """The turn in which the work itself says something; None for events that the other panes show."""
    from tui.display import narrate

    who = next((name for kinds, name in _SPEAKERS if isinstance(event, kinds)), None)
    sentence = narrate(event) if who else None
    return Entry(who=who, text=sentence) if who and sentence else None
