"""The joined tree of all searches, drawn line by line from the latest snapshot.

A run has one tree for each kind of unit and direction: the steps of the guided search, or Algorithm 1's layers, then
groups and units. What is at work, opened or found has lines; the rest is folded away and counted. Only the lines on
the screen are formatted. The cursor stays on the same branch while the tree grows; until it is moved it follows the
node that was asked or decided last.
"""

from collections.abc import Collection, Sequence
from functools import partialmethod
from typing import NamedTuple

from rich.text import Text
from textual.events import Click
from textual.geometry import Region
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from mecharule_ops import nodes, numbers
from mecharule_ops.facts.fact import said as told
from mecharule_ops.state.board import Board, Key, Place
from mecharule_ops.state.run_state import RunState
from tui.found import judged_units, shown_units
from tui.text_panes import drawn, hold
from tui.words import SPINNER, arrow, bar, look_of, noun_of

MOST = 200
"""Lines under one branch; ^F finds what is behind them."""
_STEPS = ("confirm", "sweep", "part", "fallback", "exhaustive", "again")


Name = tuple[Key | None, bool]
"""A line as a person opens and closes it: its branch, and whether it folds others away."""


class Row(NamedTuple):
    """One line."""

    key: Key | None
    """None of the first line; of a folded line what it hangs under."""
    guides: str = ""
    folded: tuple[Key, ...] = ()
    """What the line folds away; empty of any other."""

    @property
    def name(self) -> Name:
        """What a person opens and closes."""
        return self.key, bool(self.folded)


def rows_of(
    state: RunState, board: Board, place: Place, toggled: Collection[Name], focus: Sequence[Key] = ()
) -> list[Row]:
    """The lines from top to bottom: branches on the way to the focus, and those toggled, are open; the surest units
    stand first.
    """
    rows, on_way = [Row(None)], frozenset(focus)
    judged = enumerate(judged_units(state, place))
    order = {board.decided(place, nodes.Neuron.parse(one.neuron)): number for number, one in judged}

    def add(parent: Key | None, guides: str) -> None:
        under = board.under(place, parent)
        if parent is None:
            under.sort(key=lambda key: [*_STEPS, key.step].index(key.step))
            if under and not under[0].step:  # The layers of Algorithm 1.
                under = [*board.under(place, under[0]), *under[1:]]
        is_folded = (parent, True) not in toggled
        quiet = [key for key in under if is_folded and key not in on_way and _is_quiet(board, place, key)]
        hidden = frozenset(quiet)
        seen = [key for key in under if key not in hidden]
        lines: list[tuple[Key | None, tuple[Key, ...]]] = [
            *((key, ()) for key in sorted(seen, key=lambda key: order.get(key, len(order)))[:MOST]),
            *([(parent, tuple(quiet))] if quiet else []),
        ]
        for number, (key, behind) in enumerate(lines, 1):
            last = number == len(lines)
            rows.append(Row(key, guides + ("└─" if last else "├─"), behind))
            if not behind and ((key in on_way) != ((key, False) in toggled)):
                add(key, guides + ("  " if last else "│ "))

    add(None, "")
    return rows


def _is_quiet(board: Board, place: Place, key: Key) -> bool:
    """Whether it was ruled out with all that hangs under it."""
    if key.node < 0:
        tally = board.tallies[place, key]
        return bool(key.search) and not (tally.reach or tally.open or tally.waiting)
    return board.node(key).verdict in ("pruned", "dropped")


def row_text(state: RunState, board: Board, place: Place, row: Row, width: int, tick: int) -> Text:
    """One line, as a bar with its bound and a word for what became of it."""
    most, guides, key = width // 3, row.guides, row.key
    # What is too deep begins at the left edge again.
    text = Text(no_wrap=True).append(guides if len(guides) <= most else f"…{guides[1 - most :]}", "dim")
    if row.folded:
        return text.append(f" {_folded(board, row.folded)}", "dim")
    if key is None:
        units = sum(len(layer.fates) for layer in board.places.get(place, {}).values())
        return text.append(f"{numbers.plural(units, noun_of(place.letter))}, {arrow(place.regime)}", "bold")
    if key.node >= 0:
        return _node_text(state, board, key, text, width, tick)
    if key.search:
        layer = board.view(key.search).at.layer
        text.append(f" layer {layer} ")
        whole = state.whole.get((place.regime, f"{place.letter}{layer}"))
        if whole is not None:
            text.append(f"{bar(whole, 10).rstrip()} {numbers.percent(whole)} as a whole ", "dim")
    else:
        what = f"{told(f'step.{key.step}')} " if key.step in _STEPS else ""
        text.append(f" {key.step or 'groups'} ", "bold").append(what, "dim")
    tally = board.tallies[place, key]
    said = [f"{tally.tested:,} tested"]
    if tally.reach:
        said.append(f"{tally.reach} reached {numbers.percent(state.thresholds.tau)} of a half")
        shown = [board.decided(place, nodes.Neuron.parse(one.neuron)) for one in shown_units(state, place)]
        many = sum(each is not None and key in (Key(each.step), Key(*each[:2])) for each in shown)
        said.append(f"{many} shown" if judged_units(state, place) else "answers kept aside to come")
    said += [f"{tally.waiting} under test"] if tally.waiting else []
    return text.append(f"· {' · '.join(said)}", "dim")


def _folded(board: Board, keys: tuple[Key, ...]) -> str:
    if keys[0].node < 0:
        return f"{numbers.plural(len(keys), 'layer')} ruled out"
    # Groups of different parts share units.
    units = len(set().union(*(board.node(key).channels for key in keys)))
    groups = sum(board.node(key).size > 1 for key in keys)
    among = f", {numbers.plural(groups, 'group')} among them" if groups else ""
    return f"{numbers.plural(units, 'unit')} ruled out{among}"


def _node_text(state: RunState, board: Board, key: Key, text: Text, width: int, tick: int) -> Text:
    node, view = board.node(key), board.view(key.search)
    name, strength, tau = node.printed(view.at.basis), node.estimate.strength, view.thresholds.tau
    judged = state.judged.get((view.at.regime, name))
    look = look_of(node, view.thresholds, judged)
    text.append(f" {look.glyph} ", look.style).append(f"{name:<7}" if width >= 60 else name)
    if node.size > 1:
        text.append(f" ({node.size:,})", "dim")
    if node.verdict is None:
        spin = SPINNER[tick % len(SPINNER)] if (key.search, key.node) == state.latest else ""
        return text.append(f" {spin}", "bold")
    # What answers kept aside say, once they were asked, goes before what chose the unit.
    share = judged.flips / judged.n if judged else strength
    figure = round(100 * share) - (share < tau <= round(100 * share) / 100)
    text.append(f" {bar(share, 10)}" if width >= 60 else "").append(f" {figure:>3} %")
    text.append(f" {look.word}", look.style)
    if judged is not None:
        text.append(f", {judged.flips} of {judged.n} kept aside", "dim")
    elif node.ucb < 1:
        text.append(f", at most {numbers.percent_at_most(node.ucb)} of a half", "dim")
    return text


class TreePane(ScrollView, can_focus=True):
    """A tree whose lines are steps, layers, groups and units."""

    about = told("help.tree")

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
        self._toggled: set[Name] = set()

    @property
    def _row(self) -> Row | None:
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    @property
    def key(self) -> Key | None:
        """The branch under the cursor; None on the first line, a folded one or an empty tree."""
        row = self._row
        return row.key if row and not row.folded else None

    def show(
        self, state: RunState, board: Board, place: Place | None, tick: int = 0, best: Key | None = None
    ) -> None:
        """Draw a snapshot; while nobody has moved the cursor it stands on the node asked last, or on the best one."""
        if place != self.place:
            self.cursor, self.following, self._focus = 0, True, []
        is_new = state is not self.state or place != self.place
        turns = tick != self.tick
        self.state, self.board, self.place, self.tick = state, board, place, tick
        at = (best.search, best.node) if best else state.latest
        if self.following and at and place == board.place_of(at[0]):
            before, self._focus = self._focus, board.path(board.key_of(*at))
            is_new = is_new or before != self._focus
        if is_new:
            self._rebuild()
        elif turns:
            self.refresh()

    def _rebuild(self, key: Key | None = None) -> None:
        """Make the lines anew; the cursor stands on the key's afterwards, else where it stood."""
        wanted = self._row.name if self._row else None
        if key or (self.following and self._focus):
            wanted = key or self._focus[-1], False
        self.rows = []
        if self.place:
            self.rows = rows_of(self.state, self.board, self.place, self._toggled, self._focus)
        hold(self, len(self.rows))
        self._point(next((index for index, row in enumerate(self.rows) if row.name == wanted), self.cursor))
        self.refresh()

    def _point(self, index: int) -> None:
        before, self.cursor = self.cursor, min(max(index, 0), max(0, len(self.rows) - 1))
        for line in (before, self.cursor, self.scroll_offset.y):
            self.refresh_line(line)
        below = min(2, max(0, self.size.height - 2))
        region = Region(0, max(0, self.cursor - 1), 1, min(2 + below, self.size.height))
        self.scroll_to_region(region, animate=False, force=True)

    def move(self, lines: int) -> None:
        """Move the cursor; from now on it stays where it is."""
        self._place(self.cursor + lines)

    def _place(self, index: int) -> None:
        self.following = False
        self._point(index)
        self.post_message(self.Picked())

    def follow(self) -> None:
        """Follow the search again, from the next drawing on."""
        self._toggled.clear()
        self.place, self.rows = None, []

    def toggle(self) -> None:
        """Open or close the line under the cursor."""
        if self._row and self._row.name != (None, False):
            self.following = False
            self._toggled.symmetric_difference_update({self._row.name})
            self._rebuild()

    def go_to(self, key: Key) -> None:
        """Go to a node, opening the way to it."""
        self.following, self._focus = False, self.board.path(key)
        self._rebuild(key)
        self.post_message(self.Picked())

    def _text(self, index: int) -> Text:
        assert self.place is not None
        width = self.scrollable_content_region.width
        text = row_text(self.state, self.board, self.place, self.rows[index], width, self.tick)
        while text.cell_len > width and (cut := max(map(text.plain.rfind, (" · ", ", ")))) > 0:
            text = text[:cut]
        return text

    def render_line(self, y: int) -> Strip:
        index = y + self.scroll_offset.y
        if index >= len(self.rows):
            return drawn(self, Text("" if y or self.rows else told("tree.begins"), "dim"))
        text = self._text(index)
        if index == self.cursor:
            # In reverse to its end; underlined while another pane is at work.
            text.append(" " * max(0, self.size.width - text.cell_len))
            text = Text(text.plain, "reverse" if self.has_focus else "underline")
        return drawn(self, text)

    def on_click(self, event: Click) -> None:
        self._place(event.y + self.scroll_offset.y)

    key_ctrl_home = partialmethod(move, -1_000_000)
    key_ctrl_end = partialmethod(move, 1_000_000)
    key_down = partialmethod(move, 1)
    key_up = partialmethod(move, -1)

    key_pagedown = partialmethod(move, 10)
    key_pageup = partialmethod(move, -10)
