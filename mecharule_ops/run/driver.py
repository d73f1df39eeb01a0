"""Feeds searches from an engine: asks, ablates, tells, and yields what happened as events.

The searches know no model and the engine knows no search; this is the only place where they meet. Questions
of all layers are gathered into batches, so that an engine can share work between them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import starmap
from typing import Any

import numpy as np

from mecharule_ops import events, types
from mecharule_ops.cha.group_search import Search
from mecharule_ops.errors import AblationStopped
from mecharule_ops.store.stored_engine import StoredEngine


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSearch:
    """One layer's search and the name under which its events are known."""

    id: str
    search: Search
    layer: int


SEEN = 2
"""Flipped answers that are told of each τ-agonist as soon as it is found."""
Asked = tuple[NamedSearch, types.GroupQuery]
"""A question and whose it is."""


@dataclass(slots=True, kw_only=True)
class SearchDriver:
    """What every search of one regime shares."""

    engine: StoredEngine
    basis: types.Basis
    regime: types.Regime
    associated: Sequence[int]
    """Positions of D̃⁺ among the records."""
    unrelated: Sequence[int]
    batch: int = 64
    """Groups handed to the engine at once."""
    budget: int | None = None
    """Group evaluations of the whole run after which searches stop."""
    should_stop: Callable[[], bool] = lambda: False
    example: Callable[[types.Neuron, Sequence[int]], events.Event] | None = None
    """Says what the answers at some positions became without a τ-agonist; None where they may not be shown."""
    _opened: dict[tuple[str, int | None], tuple[int, ...]] = field(default_factory=dict, init=False)
    """The units of each group that was split, by search and node."""

    def run(self, searches: Sequence[NamedSearch]) -> Iterator[events.Event]:
        """Drive all searches to their end, a stop or the budget; yields events in order."""
        guided = list(searches)
        while pending := [(named, query) for named in searches for query in named.search.ask()]:
            reason = self._over()
            if reason is None:
                try:
                    yield from self._answered(self._batch(pending))
                except AblationStopped:
                    reason = types.SearchStatus.STOPPED
            if reason is not None:
                for named in searches:
                    named.search.stop(reason)
                break
            for named in list(guided):
                if fallback := named.search.fallback:
                    guided.remove(named)
                    node, units, why = fallback.node, fallback.units, fallback.sentence
                    yield events.PredictionsDropped(search=named.id, node=node, units=units, reason=why)
                    yield events.Notice(text=f"{named.id}: {why}", level="warning")
            yield events.CostChanged(**asdict(self.engine.cost))
        for named in searches:
            tree = named.search.tree
            assert tree.status is not None, named.id
            yield events.SearchFinished(
                search=named.id,
                status=tree.status.value,
                queries=tree.queries,
                example_forwards=tree.example_forwards,
                localized=len(tree.kept),
            )

    def _over(self) -> types.SearchStatus | None:
        """Why nothing more may be asked."""
        if self.should_stop():
            return types.SearchStatus.STOPPED
        return types.SearchStatus.BUDGET_SPENT if self._left() <= 0 else None

    def _left(self) -> int:
        """Groups that the next batch may hold: the budget is never passed, even if the store knows none."""
        spent = self.engine.cost.group_evaluations
        return self.batch if self.budget is None else min(self.batch, self.budget - spent)

    def _batch(self, pending: Sequence[Asked]) -> list[Asked]:
        """The most questions about the same examples: an engine can share work between them."""
        same: dict[tuple[range, range], list[Asked]] = defaultdict(list)
        for item in pending:
            same[item[1].associated, item[1].unrelated].append(item)
        return max(same.values(), key=len)[: self._left()]

    def _answered(self, items: Sequence[Asked]) -> Iterator[events.Event]:
        """Ablate what some questions ask for and tell the searches what was answered, then show answers that flip."""
        first = items[0][1]
        for named, query in items:
            yield asked_event(named.id, query, self.basis, self._opened.get((named.id, query.parent), ()))
        groups = [tuple(self._neuron(query.layer, each) for each in query.channels) for _, query in items]
        associated = [self.associated[place] for place in first.associated]
        positions = [*associated, *(self.unrelated[place] for place in first.unrelated)]
        strong: list[tuple[types.Neuron, list[int]]] = []
        labels = self.engine.labels(groups, positions)
        for (named, query), flips in zip(items, self.regime.flipped(labels), strict=True):
            split = len(associated)
            estimate = types.FlipEstimate(associated=count(flips[:split]), unrelated=count(flips[split:]))
            for node in named.search.tell(types.GroupAnswer(node=query.node, estimate=estimate)):
                yield from self._decided(named, node)
                if node.verdict is types.Verdict.KEPT and node.estimate.reaches(named.search.tree.tau):
                    some = [*np.flatnonzero(flips)[:SEEN], *np.flatnonzero(~flips)[:1]]
                    unit = self._neuron(node.layer, node.channels[0])
                    strong.append((unit, [positions[place] for place in some]))
        if self.example:
            yield from starmap(self.example, reversed(strong))

    def _decided(self, named: NamedSearch, node: types.ChaNode) -> Iterator[events.Event]:
        if node.verdict is types.Verdict.SPLIT:
            self._opened[named.id, node.node] = node.channels
        yield tested_event(named.id, node, self.basis, self._opened.get((named.id, node.parent), ()))
        if node.verdict is types.Verdict.KEPT:
            neuron = self._neuron(node.layer, node.channels[0])
            yield found_event(named.id, named.search.tree.agonist(neuron, node.estimate, node.ucb))

    def _neuron(self, layer: int, channel: int) -> types.Neuron:
        return types.Neuron(self.basis, layer, int(channel))


def count(flips: np.ndarray) -> types.FlipCount:
    """Flips among some examples."""
    return types.FlipCount(flips=int(flips.sum()), n=len(flips))


def asked_event(
    search: str, query: types.GroupQuery, basis: types.Basis, above: tuple[int, ...]
) -> events.NodeAsked:
    """The event of a question being sent to the model; `above` as in `tested_event`."""
    return events.NodeAsked(
        search=search,
        node=query.node,
        size=len(query.channels),
        associated=len(query.associated),
        unrelated=len(query.unrelated),
        parent=query.parent,
        step=query.step,
        **_place(basis, query.layer, query.channels, above),
    )


def found_event(search: str, agonist: types.Agonist) -> events.AgonistFound:
    """The event of a unit being localized."""
    return events.AgonistFound(
        search=search,
        regime=agonist.regime.value,
        neuron=str(agonist.neuron),
        strength=agonist.estimate.strength,
        ucb=agonist.ucb,
        signed_selectivity=float(np.nan_to_num(agonist.estimate.signed_selectivity)),
        is_tau_agonist=agonist.is_tau_agonist,
    )


def tested_event(
    search: str, node: types.ChaNode, basis: types.Basis, above: tuple[int, ...]
) -> events.NodeTested:
    """The event of a node's verdict; `above` are the units of its parent, of which its own are a stretch."""
    return events.NodeTested(
        search=search,
        node=node.node,
        parent=node.parent,
        depth=node.depth,
        size=len(node.channels),
        associated_flips=node.estimate.associated.flips,
        associated_n=node.estimate.associated.n,
        unrelated_flips=node.estimate.unrelated.flips,
        unrelated_n=node.estimate.unrelated.n,
        ucb=node.ucb,
        verdict=node.verdict.value,
        **_place(basis, node.layer, node.channels, above),
    )


def _place(basis: types.Basis, layer: int, channels: Sequence[int], above: tuple[int, ...]) -> dict[str, Any]:
    """The units of a node, and where they stand among those of its parent."""
    begin = above.index(channels[0]) if above else 0
    return {
        "units": types.ends_printed(*(types.Neuron(basis, layer, int(channels[end])) for end in (0, -1))),
        "begin": begin,
        "end": begin + len(channels) if above else 0,
        "channels": () if above else tuple(map(int, channels)),
    }
