"""The CHA tree of one search, drawn line by line from the latest snapshot.

Only the lines on the screen are formatted. The cursor stays on the same node while the tree grows; until it is
moved it follows the node tested last.
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

from mecharule_ops.state.search_view import SearchView
from tui.tree_rows import Branches, Judged, Key, Row, find_row, row_text, rows_of

WIDE_ENOUGH = 56
"""Columns from which a line also shows its interval."""


class TreePane(ScrollView, can_focus=True):
    """A tree whose lines are groups and units."""

    about = (
        "The search tree of one layer and regime. Every line is an ablated group or unit: E is the larger of "
        "its two flip rates, the brackets hold the bounds that the search decides by (of one unit named beforehand: "
        'of the strongest of many the lower one says too much; ask "how sure?"), the word says what became of it. '
        "Groups that were pruned are folded; Space unfolds them. The cursor follows the search until you move it; f "
        "follows again."
    )

    class Picked(Message):
        """The cursor stands on another node."""

        def __init__(self, node: int | None) -> None:
            self.node = node
            super().__init__()

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.view: SearchView | None = None
        self.rows: list[Row] = []
        self.cursor = 0
        self.following = True
        self._favourite: int | None = None
        self._judged: Judged = {}
        self._branches: Branches = {}
        self._toggled: dict[str, set[Key]] = {}

    @property
    def node(self) -> int | None:
        """The node under the cursor; None on an elided line or an empty tree."""
        key = self._key
        return key.node if key is not None and key.kind == "node" else None

    @property
    def _key(self) -> Key | None:
        return self.rows[self.cursor].key if self.cursor < len(self.rows) else None

    @property
    def _open(self) -> set[Key]:
        return self._toggled.setdefault(self.view.search, set()) if self.view else set()

    def show(self, view: SearchView | None, judged: Judged, favourite: int | None = None) -> None:
        """Draw a snapshot; nothing is done when it is the one on show.

        While nobody has moved the cursor it stands on the node tested last, or on the favourite if there is one.
        """
        if view is self.view and favourite == self._favourite and judged is self._judged:
            return
        self._favourite, self._judged = favourite, judged
        if view is None or self.view is None or view.search != self.view.search:
            self.cursor, self.rows, self._branches = 0, [], {}
        self.view = view
        self._rebuild()

    def _rebuild(self, key: Key | None = None) -> None:
        """Make the lines anew; the cursor stands on the key's afterwards, else where it stood."""
        key = key or self._key
        self.rows = rows_of(self.view, self._open, self._branches) if self.view else []
        self.virtual_size = Size(self.size.width, len(self.rows))
        self._point(self._newest() if self.following else self._position(key))

    def _newest(self) -> int:
        if self._favourite is not None:
            return self._position(Key("node", self._favourite))
        nodes = [row.key.node for row in self.rows if row.key.kind == "node"]
        return self._position(Key("node", max(nodes))) if nodes else 0

    def _position(self, key: Key | None) -> int:
        found = next((index for index, row in enumerate(self.rows) if row.key == key), None)
        return min(self.cursor, max(0, len(self.rows) - 1)) if found is None else found

    def move(self, lines: int) -> None:
        """Move the cursor; from now on it stays where it is."""
        self._place(self.cursor + lines)

    def _place(self, index: int) -> None:
        self.following = False
        self._point(min(max(index, 0), max(0, len(self.rows) - 1)))

    def _point(self, index: int) -> None:
        self.cursor = index
        self.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False, force=True)
        self.refresh()
        self.post_message(self.Picked(self.node))

    def follow(self) -> None:
        """Follow the search again."""
        self.following = True
        self._rebuild()

    def toggle(self) -> None:
        """Open or close the line under the cursor."""
        key = self._key
        if key is not None:
            self.following = False
            self._open.symmetric_difference_update({key})
            self._rebuild()

    def find(self, text: str) -> bool:
        """Go to the next node whose units contain a text, unfolding its group; False when there is none."""
        found = find_row(self.view, text, -1 if self.node is None else self.node) if self.view else None
        if found is None or self.view is None:
            return False
        self._reveal(self.view, found)
        self.following = False
        self._rebuild(Key("node", found))
        return True

    def _reveal(self, view: SearchView, number: int) -> None:
        node = view.nodes[number]
        if node.verdict in ("pruned", "dropped"):
            self._open.add(Key("elided", -1 if node.parent is None else node.parent))
        while node.parent is not None and node.parent in view.nodes:
            self._open.discard(Key("node", node.parent))
            node = view.nodes[node.parent]

    def line_text(self, index: int) -> str:
        """One line as text, for copying and for tests."""
        return self._text(index).plain

    def _text(self, index: int) -> Text:
        row = self.rows[index]
        assert self.view is not None
        is_open = (row.key in self._open) == (row.key.kind == "elided")
        wide = self.size.width >= WIDE_ENOUGH
        return row_text(self.view, row, judged=self._judged, wide=wide, is_open=is_open)

    def render_line(self, y: int) -> Strip:
        width, index = self.size.width, y + self.scroll_offset.y
        if index >= len(self.rows):
            return Strip.blank(width, self.rich_style)
        strip = Strip(list(self._text(index).render(self.app.console)))
        if index == self.cursor:
            strip = self._marked(strip, width)
        return strip.adjust_cell_length(width, self.rich_style).apply_style(self.rich_style)

    def _marked(self, strip: Strip, width: int) -> Strip:
        """The line of the cursor, in reverse to its end and of one colour; underlined while another pane is at work."""
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
