"""One search as displays see it: its nodes by id, and running counts.

Nodes stand in a map that shares structure: a new version costs the chunk of its key and the list of chunks, old ones
never change.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Generic, TypeVar

from mecharule_ops import bases, events
from mecharule_ops.nodes import Node, Verdict
from mecharule_ops.thresholds import Thresholds

T = TypeVar("T")
CHUNK = 256
CHA, GUIDED, EXHAUSTIVE = "cha", "guided", "exhaustive"
"""The search of a run, the same by predictions, every unit singly."""
OF_A_RUN = (GUIDED, CHA)
"""What finds a run's agonists, as against what checks them."""


@dataclass(frozen=True, slots=True)
class SearchId:
    """One layer's search as events name it: `cha:1:m4` is CHA, regime 1, layer 4 of basis m."""

    kind: str
    regime: int
    basis: bases.Basis
    layer: int

    def __str__(self) -> str:
        return f"{self.kind}:{self.regime}:{self.basis.letter}{self.layer}"

    @classmethod
    @lru_cache(1024)
    def parse(cls, text: str) -> "SearchId":
        """The id that prints so."""
        kind, regime, place = text.split(":")
        basis = next(each for each in bases.Basis if each.letter == place[0])
        return cls(kind, int(regime), basis, int(place[1:]))


class IntMap(Mapping[int, T], Generic[T]):
    """A map from integers to values, in order of key; `set` copies one chunk of `CHUNK` keys and shares the others.

    Of pyrsistent, PMap keeps no order and PVector no gaps, and nodes are told in any order.
    """

    __slots__ = ("_chunks", "_size")

    def __init__(self, chunks: Mapping[int, Mapping[int, T]] | None = None, size: int = 0) -> None:
        self._chunks, self._size = chunks or {}, size

    def set(self, key: int, value: T) -> "IntMap[T]":
        """A map that also holds `value` at `key`."""
        place = key // CHUNK
        chunk = self._chunks.get(place, {})
        return IntMap({**self._chunks, place: {**chunk, key: value}}, self._size + (key not in chunk))

    def __getitem__(self, key: int) -> T:
        return self._chunks[key // CHUNK][key]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, int) and key in self._chunks.get(key // CHUNK, ())

    def __len__(self) -> int:
        return self._size

    def changed(self, before: "IntMap[T] | None") -> Iterator[T]:
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
class SearchView:
    """One search; `told` gives the next version."""

    search: str
    units: int
    """Candidate units of the search."""
    thresholds: Thresholds = field(default_factory=Thresholds)
    nodes: IntMap[Node] = field(default_factory=IntMap)
    tested: int = 0
    """Groups and units."""
    result: events.SearchFinished | None = None
    """None while the search runs."""

    @property
    def at(self) -> SearchId:
        """What is searched, and how."""
        return SearchId.parse(self.search)

    def told(self, node: Node) -> "SearchView":
        """The view after a node was asked or decided, for the first time or again; a verdict stays."""
        known = self.nodes.get(node.id)
        decided = known is not None and known.verdict is not None
        if decided and node.verdict is None:
            return self
        tested = self.tested + (not decided and node.verdict is not None)
        return replace(self, nodes=self.nodes.set(node.id, node), tested=tested)

    def settled(self, channel: int) -> Node | None:
        """The node that settled a unit: its own test if it had one, else the smallest decided group with it.

        None when the unit was no candidate, or the search ended before it was settled.
        """
        settling = (node for node in self.nodes.values() if node.verdict not in (None, Verdict.SPLIT))
        with_it = (node for node in settling if channel in node.channels)
        return min(with_it, key=lambda node: node.size, default=None)
