"""The lines of one CHA tree as it is shown: opened groups and found units, the rest folded away and counted.

A group whose children were pruned or dropped keeps them in one elided line that says how many and how to see
them. Pure: the same view and the same choice of open lines give the same rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from rich.text import Text

from mecharule_ops.events import UnitJudged
from mecharule_ops.plain_text import plain
from mecharule_ops.state.search_view import NodeView, SearchView
from mecharule_ops.thresholds import Thresholds
from tui.words import counted, look_of, node_lower_bound, rate, threshold

MOST_ELIDED = 200
"""Folded children listed at once; a search by name finds the others."""


Judged = Mapping[tuple[int, str], UnitJudged]
"""By (regime, neuron)."""


class Key(NamedTuple):
    """Names a line for as long as the search lives."""

    kind: str
    """`node`, or `elided` for the folded children of a node."""
    node: int
    """Node id; −1 for the folded roots."""


class Row(NamedTuple):
    """One line."""

    key: Key
    depth: int
    groups: int = 0
    """Elided: folded groups."""
    units: int = 0
    """Elided: units in what is folded."""
    singles: int = 0
    """Elided: folded single units."""


class Branch(NamedTuple):
    """What stands under one node, before anything is toggled."""

    mark: NodeView | int | None
    """The parent as it was, or the last root; another one means that children have come."""
    shown: tuple[Row, ...]
    folded: tuple[NodeView, ...]
    elided: Row | None


Branches = dict[int, Branch]
"""Branches by parent, −1 for the roots: kept between two snapshots of one search, so that only what has grown
is looked at again."""


def rows_of(
    view: SearchView, toggled: Collection[Key] = frozenset(), branches: Branches | None = None
) -> list[Row]:
    """The lines from top to bottom. `toggled` nodes are closed and `toggled` elisions are open."""
    rows: list[Row] = []
    _add_children(view, None, 0, toggled, {} if branches is None else branches, rows)
    return rows


def _add_children(
    view: SearchView,
    parent: int | None,
    depth: int,
    toggled: Collection[Key],
    branches: Branches,
    rows: list[Row],
) -> None:
    branch = _branch(view, parent, depth, branches)
    nodes = view.nodes
    for row in branch.shown:
        rows.append(row)
        if nodes[row.key.node].last_child is not None and row.key not in toggled:
            _add_children(view, row.key.node, depth + 1, toggled, branches, rows)
    if branch.elided is not None:
        rows.append(branch.elided)
        if branch.elided.key in toggled:
            rows.extend(Row(Key("node", node.node), depth + 1) for node in branch.folded[:MOST_ELIDED])


def _branch(view: SearchView, parent: int | None, depth: int, branches: Branches) -> Branch:
    """The branch of a parent, made again only when the parent has more children than before."""
    mark = view.last_root if parent is None else view.nodes[parent]
    key = -1 if parent is None else parent
    known = branches.get(key)
    if known is not None and known.mark is mark:
        return known
    children = [view.nodes[child] for child in view.children(parent)]
    folded = tuple(node for node in children if _is_folded(node))
    shown = tuple(Row(Key("node", node.node), depth) for node in children if not _is_folded(node))
    branches[key] = Branch(mark, shown, folded, _elision(folded, Key("elided", key), depth))
    return branches[key]


def _is_folded(node: NodeView) -> bool:
    """Pruned and dropped; a pruned root is all that its tree has, so it is shown."""
    return node.verdict == "dropped" or (node.verdict == "pruned" and node.parent is not None)


def _elision(folded: tuple[NodeView, ...], key: Key, depth: int) -> Row | None:
    if not folded:
        return None
    singles = sum(node.size == 1 for node in folded)
    return Row(key, depth, len(folded) - singles, sum(node.size for node in folded), singles)


def row_text(view: SearchView, row: Row, *, judged: Judged, wide: bool, is_open: bool) -> Text:
    """One line: `▾ m4.1 … m4.99 U=803 E .88 [.78,.95] OPEN`; `judged` are the units that were."""
    text = Text("  " * row.depth, no_wrap=True)
    if row.key.kind == "elided":
        return text.append(_elided(row, view.thresholds, is_open), "dim")
    node = view.nodes[row.key.node]
    look = look_of(node, view.thresholds, judged.get((view.regime, node.units)))
    glyph = ("▾" if is_open else "▸") if node.last_child is not None else look.glyph
    text.append(f"{glyph} ", look.style)
    text.append(plain(node.units) or f"node {node.node}")
    if node.size > 1:
        text.append(f" U={node.size:,}", "dim")
    text.append(f" E {rate(node.strength)}")
    if wide and node.ucb is not None:
        text.append(f" [{rate(node_lower_bound(node, view.thresholds))},{rate(node.ucb)}]", "dim")
    return text.append(f" {look.word}", look.style)


def _elided(row: Row, thresholds: Thresholds, is_open: bool) -> str:
    glyph = "▾" if is_open else "▸"
    parts = []
    if row.groups:
        parts.append(counted(row.groups, "pruned group"))
    if row.singles:
        parts.append(counted(row.singles, "dropped unit"))
    tail = "" if is_open else " · Space shows"
    if is_open and row.groups + row.singles > MOST_ELIDED:
        tail = f" · first {MOST_ELIDED} shown, / finds others"
    return f"{glyph} {', '.join(parts)} ({counted(row.units, 'unit')}, UCB<{threshold(thresholds)}){tail}"


def find_row(view: SearchView, text: str, after: int) -> int | None:
    """The next tested node after `after`, in order of id and around the end, whose units have that text."""
    wanted = text.casefold()
    ids = [number for number, node in view.nodes.items() if wanted in node.units.casefold()]
    return next((number for number in ids if number > after), ids[0] if ids else None)


def why_opened(view: SearchView, node: int) -> str:
    """The sentence of a node's verdict: which numbers decided it."""
    seen = view.nodes[node]
    if seen.verdict is None:
        return f"node {node} was asked and is not decided yet"
    what = f"{plain(seen.units)} ({counted(seen.size, 'unit')}) flipped {seen.flips}"
    bound, least = f"its upper bound {rate(seen.ucb)}", threshold(view.thresholds)
    reasons = {
        "split": f"{bound} reaches τ {least}, so it may hold an agonist and was opened",
        "pruned": f"{bound} is below τ {least}, so it was pruned with all its units",
        "kept": f"it is a single unit and {bound} reaches τ {least}, so it is localized",
        "dropped": f"it is a single unit and {bound} is below τ {least}, so it was dropped",
    }
    return f"{what}; {reasons[seen.verdict]}"
