"""What is known of every unit and of every branch of the searches, brought up to a snapshot by what changed since.

Snapshots share the chunks of their nodes, so a chunk seen before is passed over: what it costs to catch up depends on
what was told since, and not on the size of the search.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from mecharule_ops.nodes import Neuron, Node, Verdict
from mecharule_ops.state.run_state import RunState
from mecharule_ops.state.search_view import EXHAUSTIVE, SearchId, SearchView

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


@dataclass(slots=True)
class Layer:
    """The units of one layer."""

    fates: bytearray = field(default_factory=bytearray)
    strengths: bytearray = field(default_factory=bytearray)
    """Of the units that reach τ, in halves of a per cent; 0 of the others."""
    alone: dict[int, Key] = field(default_factory=dict)
    """Of a unit the node that was first asked of it alone."""

    def fill(self, units: int) -> None:
        """Make room for so many units."""
        more = bytes(max(0, units - len(self.fates)))
        for column in (self.fates, self.strengths):
            column.extend(more)


class Board:
    """All units and branches, as of the snapshot that it caught up to."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._views: dict[str, SearchView] = {}
        self._branches: defaultdict[Place, defaultdict[Key | None, list[Key | int]]] = defaultdict(
            lambda: defaultdict(list)
        )
        """What hangs under each, in the order first told, nodes by their number; under None the steps."""
        self.places: dict[Place, dict[int, Layer]] = {}
        self.tallies: defaultdict[tuple[Place, Key], Tally] = defaultdict(Tally)
        """Of steps and layers."""

    def catch_up(self, state: RunState) -> None:
        """Read what a snapshot holds that the last one did not; one from before begins anew."""
        for name, view in self._views.items():
            now = state.searches.get(name)
            if now is None or len(now.nodes) < len(view.nodes) or now.tested < view.tested:
                self._begin()
                break
        for name, view in state.searches.items():
            if self._views.get(name) is not view:
                self._read(view)

    def key_of(self, search: str, node: int) -> Key:
        """The branch of a node."""
        view = self._views[search]
        return Key(view.nodes[node].step or (EXHAUSTIVE if view.at.kind == EXHAUSTIVE else ""), search, node)

    def place_of(self, search: str) -> Place:
        """Where the units of a search are."""
        at = SearchId.parse(search)
        return Place(at.regime, at.basis.letter)

    def node(self, key: Key) -> Node:
        """What the snapshot says of a node."""
        return self._views[key.search].nodes[key.node]

    def view(self, search: str) -> SearchView:
        """A search as the snapshot has it."""
        return self._views[search]

    def path(self, key: Key) -> list[Key]:
        """From its step to a branch."""
        up = [key]
        while (above := self._parent(up[-1])) is not None:
            up.append(above)
        return up[::-1]

    def _parent(self, key: Key) -> Key | None:
        if key.node < 0:
            return Key(key.step) if key.search else None
        above = self.node(key).parent
        return Key(key.step, key.search) if above is None else key._replace(node=above)

    def decided(self, place: Place, unit: Neuron) -> Key | None:
        """The node that was first asked of a unit alone, else the smallest group with which it was decided."""
        if alone := self.places.get(place, {}).get(unit.layer, Layer()).alone.get(unit.channel):
            return alone
        views = (view for view in self._views.values() if self.place_of(view.search) == place)
        found = ((view.search, view.settled(unit.channel)) for view in views if view.at.layer == unit.layer)
        return next((self.key_of(search, node.id) for search, node in found if node), None)

    def under(self, place: Place, key: Key | None) -> list[Key]:
        """What hangs under a branch; under None the steps."""
        below = self._branches[place].get(key, ())
        return [Key(*key[:2], each) if key and isinstance(each, int) else each for each in below]  # type: ignore[misc]

    def _read(self, view: SearchView) -> None:
        place, earlier = self.place_of(view.search), self._views.get(view.search)
        self._views[view.search] = view
        layer = self.places.setdefault(place, {}).setdefault(view.at.layer, Layer())
        layer.fill(view.units)
        for node in view.nodes.changed(earlier.nodes if earlier else None):
            before = earlier.nodes.get(node.id) if earlier else None
            key = self.key_of(view.search, node.id)
            if before is None:
                self._hang(place, key, layer, view, node)
            if node.verdict and not (before and before.verdict):
                self._decide(place, key, layer, view, node)

    def _hang(self, place: Place, key: Key, layer: Layer, view: SearchView, node: Node) -> None:
        """Enter a node under its branch, as asked."""
        layer.fill(max(node.channels) + 1)
        branch: Key | None = key
        while branch:
            above = self._parent(branch)
            under = self._branches[place][above]
            under.append(branch if branch.node < 0 else branch.node)
            # A group is also a branch of any other step in which its parts are asked.
            if len(under) > 1 or (above and above.node >= 0 and above == self.key_of(*above[1:])):
                break
            branch = above
        if node.size == 1:
            layer.alone.setdefault(node.channels[0], key)
        for tally in self._tallies(place, key):
            tally.waiting += 1

    def _tallies(self, place: Place, key: Key) -> tuple[Tally, Tally]:
        """Of the step and of the layer in it."""
        return self.tallies[place, Key(key.step)], self.tallies[place, Key(key.step, key.search)]

    def _decide(self, place: Place, key: Key, layer: Layer, view: SearchView, node: Node) -> None:
        strength, kept = node.estimate.strength, node.verdict is Verdict.KEPT
        reaches = kept and view.thresholds.reached_by(strength)
        fate = REACHES if reaches else OPEN if kept or node.verdict is Verdict.SPLIT else RULED_OUT
        for tally in self._tallies(place, key):
            tally.waiting -= 1
            tally.tested += 1
            tally.reach += reaches
            tally.open += kept and not reaches
        for unit in node.channels:
            # What was decided alone stays, and a group that may hold something says nothing of what was ruled out.
            if (
                node.size == 1
                or layer.fates[unit] == TO_COME
                or (fate, layer.fates[unit]) == (RULED_OUT, OPEN)
            ):
                layer.fates[unit] = fate
            if reaches:
                layer.strengths[unit] = max(1, round(200 * strength))
