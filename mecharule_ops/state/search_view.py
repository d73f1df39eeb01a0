"""The tree of one search as displays see it: nodes by id, their children, and running counts.

Nodes stand in a map that shares structure: a new version costs the chunk of its key and the list of chunks, old ones
never change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Generic, TypeVar

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
        node = self.nodes.get(event.node)
        return self._asked(node, event) if isinstance(event, NodeAsked) else self._tested(node, event)

    def _asked(self, node: NodeView | None, event: NodeAsked) -> SearchView:
        if node is not None and node.verdict is not None:
            after = replace(node, asked=True)
        else:
            place = {name: getattr(event, name) for name in _PLACE}
            tried = (node.tried if node else 0) + event.associated + event.unrelated
            after = NodeView(asked=True, tried=tried, **place)
        return replace(self, nodes=self.nodes.set(event.node, after))

    def _tested(self, node: NodeView | None, event: NodeTested) -> SearchView:
        before = node or NodeView(node=event.node, size=event.size)
        again = before.verdict is not None
        linked = self if again else self._with_link(event)
        previous = before.previous_sibling if again else self._siblings_end(event.parent)
        after = replace(_with_test(before, event), previous_sibling=previous)
        return replace(linked, nodes=linked.nodes.set(event.node, after), tested=self.tested + (not again))

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

    def _siblings_end(self, parent: int | None) -> int | None:
        """The last child so far; a node whose parent was never seen hangs at the root."""
        known = self.nodes.get(parent) if parent is not None else None
        return known.last_child if known else self.last_root

    def _with_link(self, event: NodeTested) -> SearchView:
        known = self.nodes.get(event.parent) if event.parent is not None else None
        if known is None:
            return replace(self, last_root=event.node)
        parent = replace(known, last_child=event.node)
        return replace(self, nodes=self.nodes.set(known.node, parent))


_TOLD = {field.name for field in fields(NodeView)} & {field.name for field in fields(NodeTested)}
"""What a test says of a node, under the same names."""


_PLACE = {"step"} | _TOLD & {field.name for field in fields(NodeAsked)}
"""What a question says of a node, likewise."""


def _with_test(node: NodeView, event: NodeTested) -> NodeView:
    told: dict[str, Any] = {name: getattr(event, name) for name in _TOLD}
    return replace(node, **told)
