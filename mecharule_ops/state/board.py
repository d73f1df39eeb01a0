"""What is known of every unit and of every branch of the searches, brought up to a snapshot by what changed since.

Snapshots share the chunks of their nodes, so a chunk seen before is passed over: what it costs to catch up depends on
what was told since, and not on the size of the search.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

from mecharule_ops.state.run_state import RunState
from mecharule_ops.state.search_id import CHA, GUIDED, SearchId
from mecharule_ops.state.search_view import NodeView, SearchView

TO_COME, RULED_OUT, OPEN, REACHES = range(4)
"""What became of a unit: nothing yet, its upper bound lies below τ, it may reach τ, it does on one half."""


class Place(NamedTuple):
    """Units of one basis in one direction: what one map shows."""

    regime: int
    letter: str


class Key(NamedTuple):
    """A branch of the tree: a step, a layer in a step, a node. What it has not is empty or −1."""

    step: str
    search: str = ""
    node: int = -1


@dataclass(slots=True)
class Tally:
    """What stands under a branch."""

    tested: int = 0
    reach: int = 0
    open: int = 0
    """Single units that are not ruled out, those that reach τ aside."""
    waiting: int = 0
    """Nodes asked and not decided."""

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is left under it but what was ruled out."""
        return not (self.reach or self.open or self.waiting)


@dataclass(slots=True)
class Layer:
    """The units of one layer."""

    fates: bytearray
    at_work: bytearray
    """1 where a unit is in a group that was asked and is not decided."""
    strengths: bytearray
    """Of the units that reach τ, in halves of a per cent; 0 of the others."""

    def fill(self, units: int) -> None:
        """Make room for so many units."""
        more = units - len(self.fates)
        if more > 0:
            self.fates.extend(bytes(more))
            self.at_work.extend(bytes(more))
            self.strengths.extend(bytes(more))


@dataclass(slots=True)
class _Known:
    """A node as it was read: its units are a stretch of its root's."""

    root: tuple[int, ...]
    begin: int
    end: int
    step: str
    verdict: str | None = None


class Board:
    """All units and branches, as of the snapshot that it caught up to."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._views: dict[str, SearchView] = {}
        self._known: dict[str, dict[int, _Known]] = {}
        self._waiting: dict[str, dict[int, None]] = {}
        """Nodes asked and not decided, in order of the first question."""
        self._branches: defaultdict[tuple[Place, Key | None], dict[Key, None]] = defaultdict(dict)
        self.places: dict[Place, dict[int, Layer]] = {}
        self.tallies: defaultdict[tuple[Place, Key], Tally] = defaultdict(Tally)
        """Of steps and layers."""
        self.alone: dict[tuple[int, str], Key] = {}
        """By (regime, unit): the node that was first asked of it alone."""

    def catch_up(self, state: RunState) -> None:
        """Read what a snapshot holds that the last one did not; one from before begins anew."""
        for name, view in self._views.items():
            now = state.searches.get(name)
            if now is None or len(now.nodes) < len(view.nodes) or now.tested < view.tested:
                self._begin()
                break
        for name, view in state.searches.items():
            if self._views.get(name) is not view:
                self._read(SearchId.parse(name), view)

    def key_of(self, search: str, node: int) -> Key:
        """The branch of a node."""
        return Key(self._known[search][node].step, search, node)

    def place_of(self, search: str) -> Place:
        """Where the units of a search are."""
        at = SearchId.parse(search)
        return Place(at.regime, at.place.rstrip("0123456789"))

    def node(self, key: Key) -> NodeView:
        """What the snapshot says of a node."""
        return self._views[key.search].nodes[key.node]

    def view(self, search: str) -> SearchView:
        """A search as the snapshot has it."""
        return self._views[search]

    def searches_of(self, place: Place) -> list[str]:
        """The searches of a place."""
        return [name for name in self._views if self.place_of(name) == place]

    def units_of(self, key: Key) -> tuple[int, ...]:
        """The units of a node by number; none where the run does not say."""
        known = self._known[key.search][key.node]
        return known.root[known.begin : known.end]

    def path(self, key: Key) -> list[Key]:
        """From its step to a branch."""
        up = [key]
        while (above := self._parent(up[-1])) is not None:
            up.append(above)
        return up[::-1]

    def _parent(self, key: Key) -> Key | None:
        above = self.node(key).parent if key.node >= 0 else None
        if above is None or above not in self._known[key.search]:
            return Key(key.step, key.search) if key.node >= 0 else Key(key.step) if key.search else None
        return key._replace(node=above)

    def under(self, place: Place, key: Key | None) -> list[Key]:
        """What hangs under a branch, the decided first; under None the steps."""
        if key is None or key.node < 0:
            return list(self._branches.get((place, key), ()))
        view = self._views[key.search]
        waiting = [each for each in self._waiting[key.search] if view.nodes[each].parent == key.node]
        return [key._replace(node=each) for each in (*view.children(key.node), *waiting)]

    def _read(self, at: SearchId, view: SearchView) -> None:
        place, earlier = self.place_of(view.search), self._views.get(view.search)
        self._views[view.search] = view
        self._known.setdefault(view.search, {})
        self._waiting.setdefault(view.search, {})
        layer = self.places.setdefault(place, {}).setdefault(
            view.layer, Layer(bytearray(), bytearray(), bytearray())
        )
        layer.fill(view.units)
        for node in view.nodes.changed(earlier.nodes if earlier else None):
            known = self._known[view.search].get(node.node) or self._hang(at, place, layer, node, view.search)
            if known.verdict is None and node.verdict:
                self._decide(place, layer, view, node, known)

    def _hang(self, at: SearchId, place: Place, layer: Layer, node: NodeView, search: str) -> _Known:
        """Enter a node under its branch, as asked."""
        of_search = self._known[search]
        above = None if node.parent is None else of_search.get(node.parent)
        if above is not None and not node.channels:
            known = _Known(above.root, above.begin + node.begin, above.begin + node.end, above.step)
        else:
            step = node.step or ("" if at.kind in (CHA, GUIDED) else at.kind)
            known = _Known(node.channels, 0, len(node.channels), above.step if above else step)
            layer.fill(max((0, *node.channels)) + 1)
        of_search[node.node] = known
        of_step, of_layer = Key(known.step), Key(known.step, search)
        self._branches[place, None].setdefault(of_step)
        self._branches[place, of_step].setdefault(of_layer)
        if above is None:
            self._branches[place, of_layer].setdefault(Key(known.step, search, node.node))
        if node.size == 1:
            self.alone.setdefault((place.regime, node.units), Key(known.step, search, node.node))
        self._waiting[search][node.node] = None
        for key in (of_step, of_layer):
            self.tallies[place, key].waiting += 1
        for unit in known.root[known.begin : known.end]:
            layer.at_work[unit] = 1
        return known

    def _decide(self, place: Place, layer: Layer, view: SearchView, node: NodeView, known: _Known) -> None:
        known.verdict = node.verdict
        self._waiting[view.search].pop(node.node, None)
        reaches = node.verdict == "kept" and view.thresholds.reached_by(node.strength)
        fate = {"kept": REACHES if reaches else OPEN, "split": OPEN}.get(node.verdict or "", RULED_OUT)
        for key in (Key(known.step), Key(known.step, view.search)):
            tally = self.tallies[place, key]
            tally.waiting -= 1
            tally.tested += 1
            tally.reach += reaches
            tally.open += node.verdict == "kept" and not reaches
        for unit in known.root[known.begin : known.end]:
            layer.at_work[unit] = 0
            # What was decided alone stays, and a group that may hold something says nothing of what was ruled out.
            if (
                node.size == 1
                or layer.fates[unit] == TO_COME
                or (fate, layer.fates[unit]) == (RULED_OUT, OPEN)
            ):
                layer.fates[unit] = fate
            if reaches:
                layer.strengths[unit] = max(1, round(200 * (node.strength or 0.0)))
