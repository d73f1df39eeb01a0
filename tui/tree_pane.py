"""The joined tree of a run, drawn line by line from the latest snapshot.

Only the lines on the screen are formatted. The cursor stays on the same branch while the tree grows; until it is moved
it follows the node that was asked or decided last, and the way to it stands in the first line.
"""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from mecharule_ops.plain_text import plain
from mecharule_ops.state.board import Board, Key, Place
from mecharule_ops.state.run_state import RunState
from tui.tree_rows import Row, find_row, row_text, rows_of
from tui.words import noun_of

TREE_HELP = (
    "The search as one tree: its steps, the layers in them, groups and units. A bar is the share of answers that "
    "change without the group (the larger of two halves); 'at most' is the bound that the search decides by. What was "
    "ruled out is folded and counted; Space opens and closes. The cursor follows the group under test until you move "
    "it; f follows again."
)


class TreePane(ScrollView, can_focus=True):
    """A tree whose lines are steps, layers, groups and units."""

    about = TREE_HELP

    class Picked(Message):
        """The cursor was moved to another branch."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.state = RunState()
        self.board = Board()
        self.place: Place | None = None
        self.rows: list[Row] = []
        self.cursor = 0
        self.tick = 0
        self.following = True
        self._focus: list[Key] = []
        self._toggled: set[tuple[Key | None, bool]] = set()

    @property
    def key(self) -> Key | None:
        """The branch under the cursor; None on the first line, a folded one or an empty tree."""
        return (
            self.rows[self.cursor].key
            if self.cursor < len(self.rows) and not self.rows[self.cursor].folded
            else None
        )

    def show(
        self, state: RunState, board: Board, place: Place | None, tick: int = 0, best: Key | None = None
    ) -> None:
        """Draw a snapshot; while nobody has moved the cursor it stands on the node asked last, or on the best one."""
        if place != self.place:
            self.cursor, self.following, self._focus = 0, True, []
        self.state, self.board, self.place, self.tick = state, board, place, tick
        at = (best.search, best.node) if best else state.latest
        if self.following and at and place == board.place_of(at[0]):
            self._focus = board.path(board.key_of(*at))
        self._rebuild()

    def _rebuild(self, key: Key | None = None) -> None:
        """Make the lines anew; the cursor stands on the key's afterwards, else where it stood."""
        before = self.rows[self.cursor].name if self.cursor < len(self.rows) else None
        wanted = (
            (self._focus[-1], False) if self.following and self._focus else (key, False) if key else before
        )
        self.rows = rows_of(self.board, self.place, self._toggled, self._focus) if self.place else []
        self.virtual_size = Size(self.size.width, len(self.rows))
        found = next((index for index, row in enumerate(self.rows) if row.name == wanted), self.cursor)
        self._point(min(found, max(0, len(self.rows) - 1)))

    def _point(self, index: int) -> None:
        self.cursor = index
        below = min(2, max(0, self.size.height - 2))
        region = Region(0, max(0, index - 1), 1, min(2 + below, self.size.height))
        self.scroll_to_region(region, animate=False, force=True)
        self.refresh()

    def move(self, lines: int) -> None:
        """Move the cursor; from now on it stays where it is."""
        self._place(self.cursor + lines)

    def _place(self, index: int) -> None:
        self.following = False
        self._point(min(max(index, 0), max(0, len(self.rows) - 1)))
        self.post_message(self.Picked())

    def follow(self) -> None:
        """Follow the search again."""
        self.following = True
        self._toggled.clear()
        self._rebuild()

    def toggle(self) -> None:
        """Open or close the line under the cursor."""
        if self.cursor < len(self.rows) and self.rows[self.cursor].name != (None, False):
            self.following = False
            self._toggled.symmetric_difference_update({self.rows[self.cursor].name})
            self._rebuild()

    def find(self, text: str) -> bool:
        """Go to the next node whose units contain a text, opening the way to it; False when there is none."""
        found = find_row(self.board, self.place, text, self.key) if self.place else None
        if found is None:
            return False
        self.go_to(found)
        return True

    def go_to(self, key: Key) -> None:
        """Put the cursor on a branch, opening the way to it."""
        self.following, self._focus = False, self.board.path(key)
        self._rebuild(key)
        self.post_message(self.Picked())

    def line_text(self, index: int) -> str:
        """One line as text, for copying and for tests."""
        return self._text(index).plain

    def _text(self, index: int) -> Text:
        assert self.place is not None
        return row_text(self.state, self.board, self.place, self.rows[index], self.size.width, self.tick)

    def _way(self) -> Text:
        """The way to the cursor, where its beginning has scrolled off the first line."""
        assert self.place is not None
        names = [f"{noun_of(self.place.letter)}s"]
        for key in self.board.path(self.key) if self.key else ():
            layer = f"layer {self.board.view(key.search).layer}" if key.search and key.node < 0 else key.step
            names.append(plain(self.board.node(key).units) if key.node >= 0 else layer)
        return Text(" ▸ ".join(filter(None, names)), "dim italic", no_wrap=True)

    def render_line(self, y: int) -> Strip:
        width, index = self.size.width, y + self.scroll_offset.y
        if index >= len(self.rows):
            return Strip.blank(width, self.rich_style)
        hidden = y == 0 and self.scroll_offset.y > 0 and index != self.cursor
        text = self._way() if hidden else self._text(index)
        strip = Strip(list(text.render(self.app.console)))
        if index == self.cursor:
            strip = self._marked(strip, width)
        return strip.adjust_cell_length(width, self.rich_style).apply_style(self.rich_style)

    def _marked(self, strip: Strip, width: int) -> Strip:
        """The line of the cursor, in reverse to its end; underlined while another pane is at work."""
        padding = " " * max(0, width - strip.cell_length)
        if self.has_focus:
            return Strip([Segment(strip.text + padding, Style(reverse=True))])
        return Strip(Segment.apply_style([*strip, Segment(padding)], post_style=Style(underline=True)))

    def on_click(self, event: Click) -> None:
        self._place(event.y + self.scroll_offset.y)

    def key_down(self) -> None:
        self.move(1)

    def key_up(self) -> None:
        self.move(-1)

    def key_pagedown(self) -> None:
        self.move(self.size.height)

    def key_pageup(self) -> None:
        self.move(-self.size.height)
