"""The tree of one search as displays see it: nodes by id, their children, and running counts.

Nodes stand in a map that shares structure: a new version costs the chunk of its key and the list of chunks, old ones
never change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Generic, TypeVar

from mecharule_ops.events import NodeAsked, NodeTested, PredictionsDropped, SearchFinished
from mecharule_ops.thresholds import Thresholds

T = TypeVar("T")
CHUNK = 256


class IntMap(Mapping[int, T], Generic[T]):
    """A map from integers to values, in order of key; `set` copies one chunk of `CHUNK` keys and shares the others.

    Of pyrsistent, PMap keeps no order and PVector no gaps, and nodes are told in any order.
    """

    __slots__ = ("_chunks", "_size")

    def __init__(self, chunks: Mapping[int, Mapping[int, T]] | None = None, size: int = 0) -> None:
        self._chunks, self._size = chunks or {}, size

    def set(self, key: int, value: T) -> IntMap[T]:
        """A map that also holds `value` at `key`."""
        place = key // CHUNK
        chunk = self._chunks.get(place, {})
        chunks = {**self._chunks, place: {**chunk, key: value}}
        return IntMap(chunks, self._size + (key not in chunk))

    def __getitem__(self, key: int) -> T:
        return self._chunks[key // CHUNK][key]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, int) and key in self._chunks.get(key // CHUNK, ())

    def __len__(self) -> int:
        return self._size

    def changed(self, before: IntMap[T] | None) -> Iterator[T]:
        """The values that an earlier version had not, or had otherwise, in order of key."""
        known = before._chunks if before else {}
        for place in sorted(self._chunks):
            chunk, old = self._chunks[place], known.get(place, {})
            if chunk is not old:
                yield from (chunk[key] for key in sorted(k for k, v in chunk.items() if old.get(k) is not v))

    def __iter__(self) -> Iterator[int]:
        for place in sorted(self._chunks):
            yield from sorted(self._chunks[place])


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """One node; its place in the tree is known once it was tested."""

    node: int
    size: int
    """Units of the group."""
    parent: int | None = None
    depth: int = 0
    step: str = ""
    """Of a guided search: `confirm`, `sweep`, `part` or `fallback`."""
    asked: bool = False
    """Whether it was sent to the model, and not only told as tested."""
    tried: int = 0
    """Answers on which it was asked before its verdict."""
    units: str = ""
    associated_flips: int = 0
    associated_n: int = 0
    unrelated_flips: int = 0
    unrelated_n: int = 0
    ucb: float | None = None
    verdict: str | None = None
    begin: int = 0
    """Its units are those of its parent from here on, …"""
    end: int = 0
    """… up to here; a root's are its `channels`."""
    channels: tuple[int, ...] = ()
    last_child: int | None = None
    previous_sibling: int | None = None
    """With `last_child` a linked list, so that a child costs the same at any number of siblings."""

    @property
    def strength(self) -> float | None:
        """Ê, the larger of the two flip rates; None before the test (paper, definition 3.1)."""
        counts = (self.associated_flips, self.associated_n), (self.unrelated_flips, self.unrelated_n)
        return max((k / n for k, n in counts if n), default=0.0) if self.verdict else None

    @property
    def flips(self) -> str:
        """`28/64 of D+ and 3/64 of D-`."""
        return f"{self.associated_flips}/{self.associated_n} of D+ and {self.unrelated_flips}/{self.unrelated_n} of D-"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchView:
    """One search; `apply` gives the next version."""

    search: str
    regime: int
    layer: int
    units: int
    """Candidate units of the search."""
    thresholds: Thresholds = field(default_factory=Thresholds)
    nodes: IntMap[NodeView] = field(default_factory=IntMap)
    last_root: int | None = None
    tested: int = 0
    """Groups and units."""
    result: SearchFinished | None = None
    """None while the search runs."""
    dropped: PredictionsDropped | None = None
    """From which node on it went without predictions; None when it had none or kept them."""

    def apply(self, event: NodeAsked | NodeTested) -> SearchView:
        """The view after a node was asked or tested, for the first time or again."""
        known = self.nodes.get(event.node)
        told = {name: getattr(event, name) for name in _TOLD[type(event)]}
        if isinstance(event, NodeAsked):
            if known is None or known.verdict is None:
                tried = (known.tried if known else 0) + event.associated + event.unrelated
                known = NodeView(tried=tried, **told)
            return replace(self, nodes=self.nodes.set(event.node, replace(known, asked=True)))
        before = known or NodeView(node=event.node, size=event.size)
        if before.verdict is not None:
            return replace(self, nodes=self.nodes.set(event.node, replace(before, **told)))
        linked, previous = self._linked(event)
        after = replace(before, previous_sibling=previous, **told)
        return replace(linked, nodes=linked.nodes.set(event.node, after), tested=self.tested + 1)

    def _linked(self, event: NodeTested) -> tuple[SearchView, int | None]:
        """The view with the node as its parent's last child, or the last root where none was seen; the one before."""
        above = None if event.parent is None else self.nodes.get(event.parent)
        if above is None:
            return replace(self, last_root=event.node), self.last_root
        parent = replace(above, last_child=event.node)
        return replace(self, nodes=self.nodes.set(above.node, parent)), above.last_child

    def settled(self, channel: int) -> NodeView | None:
        """The node that settled a unit: its own test if it had one, else the smallest decided group with it.

        None when the unit was no candidate, or the search ended before it was settled.
        """
        members: dict[int, tuple[int, ...]] = {}
        best: NodeView | None = None
        for number, node in self.nodes.items():
            if node.verdict is None:
                continue
            above = () if node.parent is None else members.get(node.parent, ())
            members[number] = node.channels or above[node.begin : node.end]
            if channel in members[number] and node.verdict != "split":
                best = node if best is None or node.size < best.size else best
        return best

    def children(self, node: int | None = None) -> tuple[int, ...]:
        """Ids of a node's tested children in order of test; of the roots for None."""
        found: list[int] = []
        child = self.last_root if node is None else self.nodes[node].last_child
        while child is not None:
            found.append(child)
            child = self.nodes[child].previous_sibling
        return tuple(reversed(found))


_TOLD: Mapping[type, tuple[str, ...]] = {
    cls: tuple(each.name for each in fields(cls) if each.name in {own.name for own in fields(NodeView)})
    for cls in (NodeAsked, NodeTested)
}
"""What a question, and a test, says of a node, under the same names."""
