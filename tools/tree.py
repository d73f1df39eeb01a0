"""The search trees of a run, from its events; an unfinished run has them too."""

from __future__ import annotations

from collections.abc import Iterator

from mecharule_ops.numbers import two_decimals
from mecharule_ops.pipeline.opening import opened
from mecharule_ops.report.document import Table
from mecharule_ops.state.search_id import OF_A_RUN, kind_of
from mecharule_ops.state.search_view import NodeView, SearchView
from tools._tables import shown
from tools.arguments import Tree
from tools.registry import Tell
from tools.result import ToolResult

HEADER = ("search", "node", "units", "size", "flips D+", "flips D-", "upper bound", "verdict")


def tree(given: Tree, tell: Tell) -> ToolResult:
    """A row a tested group, children under their parent, as far as the run has got."""
    with opened(given.run) as run:
        searches = run.told.searches
        identifier = run.id
    chosen = [view for view in searches.values() if _is_wanted(view, given)]
    rows = tuple(row for view in chosen for row in _rows(view))
    table = Table(header=HEADER, rows=rows, align="lllrrrrl")
    return shown(f"search trees of run {identifier}", table, given, run=identifier)


def _is_wanted(view: SearchView, given: Tree) -> bool:
    if given.search is not None:
        return view.search == given.search
    return kind_of(view.search) in OF_A_RUN and given.layer in (None, view.layer)


def _rows(view: SearchView) -> Iterator[tuple[str, ...]]:
    """Depth first; a stack, since a tree may be deeper than Python's own."""
    waiting = [(node, 0) for node in reversed(view.children())]
    while waiting:
        number, depth = waiting.pop()
        node = view.nodes[number]
        yield (view.search, f"{'· ' * depth}{number}", *_cells(node))
        waiting += [(child, depth + 1) for child in reversed(view.children(number))]


def _cells(node: NodeView) -> tuple[str, ...]:
    return (
        node.units,
        f"{node.size:,}",
        f"{node.associated_flips}/{node.associated_n}",
        f"{node.unrelated_flips}/{node.unrelated_n}",
        two_decimals(node.ucb),
        str(node.verdict),
    )
