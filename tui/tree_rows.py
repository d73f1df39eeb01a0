"""The lines of the joined tree of all searches: what is at work, opened or found; the rest folded away and counted.

A run has one tree for each kind of unit and direction: the steps of the guided search, or Algorithm 1's layers, then
groups and units. Pure: the same board and the same choice of open lines give the same rows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from rich.text import Text

from mecharule_ops.plain_text import plain
from mecharule_ops.state.board import Board, Key, Place
from mecharule_ops.state.run_state import RunState
from mecharule_ops.state.search_view import NodeView, SearchView
from tui.character_charts import bar
from tui.words import SPINNER, arrow, counted, look_of, noun_of, percent

MOST = 200
"""Lines under one branch; `/` finds what is behind them."""
_STEPS = {
    "confirm": "one by one, most promising first",
    "sweep": "the rest, in groups",
    "part": "what was ruled out together, in other groups",
    "fallback": "without predictions",
    "exhaustive": "every unit alone",
    "again": "searched again later",
}


class Row(NamedTuple):
    """One line."""

    key: Key | None
    """None of the first line; of a folded line what it hangs under."""
    guides: str = ""
    folded: tuple[Key, ...] = ()
    """What the line folds away; empty of any other."""

    @property
    def name(self) -> tuple[Key | None, bool]:
        """What a person opens and closes."""
        return self.key, bool(self.folded)


def rows_of(
    board: Board, place: Place, toggled: Collection[tuple[Key | None, bool]], focus: Sequence[Key] = ()
) -> list[Row]:
    """The lines from top to bottom: branches on the way to the focus, and those toggled, are open."""
    rows, on_way = [Row(None)], frozenset(focus)

    def add(parent: Key | None, guides: str) -> None:
        under = board.under(place, parent)
        if parent is None:
            under.sort(key=lambda key: [*_STEPS, key.step].index(key.step))
        if parent is None and under and not under[0].step:
            under = [key for each in under for key in (board.under(place, each) if not each.step else [each])]
        quiet = {key for key in under if key not in on_way and _is_quiet(board, place, key)}
        shown, rest = [key for key in under if key not in quiet], tuple(filter(quiet.__contains__, under))
        behind = [Row(parent, folded=rest)] if rest else []
        if rest and (parent, True) in toggled:
            behind, shown = [], under
        lines = [*map(Row, shown[:MOST]), *behind]
        for number, row in enumerate(lines):
            last = number == len(lines) - 1
            rows.append(row._replace(guides=guides + ("└─" if last else "├─")))
            if not row.folded and ((row.key in on_way) != ((row.key, False) in toggled)):
                add(row.key, guides + ("  " if last else "│ "))

    add(None, "")
    return rows


def _is_quiet(board: Board, place: Place, key: Key) -> bool:
    """Whether it was ruled out with all that hangs under it."""
    if key.node < 0:
        return bool(key.search) and board.tallies[place, key].is_quiet
    return board.node(key).verdict in ("pruned", "dropped")


def row_text(state: RunState, board: Board, place: Place, row: Row, width: int, tick: int) -> Text:
    """One line, as a bar with its bound and a word for what became of it."""
    text = Text(no_wrap=True).append(_near(row.guides, width // 3), "dim")
    if row.folded:
        return text.append(f" {_folded(board, row.folded)}", "dim")
    key = row.key
    if key is None:
        units = sum(len(layer.fates) for layer in board.places.get(place, {}).values())
        return text.append(f"{counted(units, noun_of(place.letter))}, {arrow(place.regime)}", "bold")
    if key.node < 0:
        return _branch_text(state, board, place, key, text, width)
    return _node_text(state, board, key, text, width, tick)


def _near(guides: str, most: int) -> str:
    """The guides nearest to a line; what is too deep begins at the left edge again."""
    return guides if len(guides) <= most else f"…{guides[1 - most :]}"


def _folded(board: Board, keys: tuple[Key, ...]) -> str:
    if keys[0].node < 0:
        return f"{counted(len(keys), 'layer')} ruled out"
    units = sum(board.node(key).size for key in keys)
    groups = sum(board.node(key).size > 1 for key in keys)
    what = counted(units, "unit")
    return f"{what} ruled out, {counted(groups, 'group')} among them" if groups else f"{what} ruled out"


def _branch_text(state: RunState, board: Board, place: Place, key: Key, text: Text, width: int) -> Text:
    tally = board.tallies[place, key]
    tau = percent(state.thresholds.tau)
    if key.search:
        view = board.view(key.search)
        text.append(f" layer {view.layer} ")
        whole = state.whole.get((place.regime, f"{place.letter}{view.layer}"))
        if whole is not None and width >= 70:
            text.append(f"{bar(whole, 10).rstrip()} {percent(whole)} as a whole ", "dim")
    else:
        text.append(f" {key.step or 'groups'} ", "bold")
        text.append(f"{_STEPS.get(key.step, '')} ", "dim")
    said = [f"{tally.tested:,} tested"]
    said += [f"{tally.reach} reach {tau}"] if tally.reach else []
    said += [f"{tally.waiting} asked"] if tally.waiting else []
    return text.append(f"· {' · '.join(said)}", "dim")


def _node_text(state: RunState, board: Board, key: Key, text: Text, width: int, tick: int) -> Text:
    node, view = board.node(key), board.view(key.search)
    judged, tau = state.judged.get((view.regime, node.units)), view.thresholds.tau
    look = look_of(node, view.thresholds, judged)
    text.append(f" {look.glyph} ", look.style).append(plain(node.units) or f"node {node.node}")
    if node.size > 1:
        text.append(f" ({node.size:,})", "dim")
    if node.verdict is None:
        spin = SPINNER[tick % len(SPINNER)] if (key.search, key.node) == state.latest else ""
        return text.append(f" {spin} on {counted(node.tried, 'answer')}", "bold")
    if width >= 60:
        text.append(f" {bar(node.strength or 0.0, 10)}".rstrip())
    text.append(f" {percent(node.strength or 0.0, tau)}")
    text.append(f" {look.word}", look.style)
    if judged is not None and width >= 70:
        text.append(f", {judged.flips} of {judged.n} kept aside", "dim")
    elif node.ucb is not None and node.ucb < 1 and width >= 70:
        text.append(f", at most {percent(node.ucb, tau)} of a half", "dim")
    return text


def find_row(board: Board, place: Place, text: str, after: Key | None) -> Key | None:
    """The next node whose units contain a text, behind one and around the end."""
    wanted = text.casefold()
    ids = [
        board.key_of(name, number)
        for name in board.searches_of(place)
        for number, node in board.view(name).nodes.items()
        if wanted in node.units.casefold()
    ]
    place_after = ids.index(after) + 1 if after in ids else 0
    return next(iter(ids[place_after:] + ids[:place_after]), None)


def why_opened(view: SearchView, node: NodeView) -> str:
    """The sentence of a node's verdict: what it flipped and which numbers decided it."""
    if node.verdict is None:
        return f"{plain(node.units)} was asked and is not decided yet"
    return (
        f"{plain(node.units)} ({counted(node.size, 'unit')}) flipped {node.flips}; {why_decided(view, node)}"
    )


def why_decided(view: SearchView, node: NodeView) -> str:
    """Which numbers decided a node's verdict."""
    tau = view.thresholds.tau
    bound, least = f"at most {percent(node.ucb or 0.0, tau)} of a half", percent(tau)
    return {
        "split": f"{bound}, which reaches {least}: it may hold a unit that does, and was opened",
        "pruned": f"{bound}, below {least}: ruled out with all its units",
        "kept": f"{bound}, which reaches {least}: not ruled out",
        "dropped": f"{bound}, below {least}: ruled out",
    }[node.verdict or ""]
