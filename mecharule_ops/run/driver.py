"""Feeds searches from an engine: asks, ablates, tells, and yields what happened as events.

The searches know no model and the engine knows no search; this is the only place where they meet. Questions
of all layers are gathered into batches, so that an engine can share work between them.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import starmap

import numpy as np

from mecharule_ops import errors, events, nodes, types
from mecharule_ops.cha.group_search import GroupSearch
from mecharule_ops.store.stored_engine import StoredEngine

SEEN = 2
"""Flipped answers that are told of each τ-agonist as soon as it is found."""
Searches = Mapping[str, GroupSearch]
"""One layer's search each, by the name under which its events are known."""
Asked = tuple[str, types.GroupQuery]
"""A question, with the name of the search that asks it."""


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

    def run(self, searches: Searches) -> Iterator[events.Event]:
        """Drive all searches to their end, a stop or the budget; yields events in order."""
        for name, search in searches.items():
            yield events.SearchStarted(search=name, units=search.tree.units)
        guided = set(searches)
        while pending := [(name, query) for name, search in searches.items() for query in search.ask()]:
            reason = types.SearchStatus.STOPPED if self.should_stop() else None
            if reason is None and self._left <= 0:
                reason = types.SearchStatus.BUDGET_SPENT
            try:
                if reason is None:
                    yield from self._answered(searches, self._batch(pending))
            except errors.AblationStopped:
                reason = types.SearchStatus.STOPPED
            if reason is not None:
                for search in searches.values():
                    search.stop(reason)
                break
            for name, search in searches.items():
                if name in guided and (fallback := search.fallback):
                    guided.remove(name)
                    node, units, why = fallback.node, fallback.units, fallback.sentence
                    yield events.PredictionsDropped(search=name, node=node, units=units, reason=why)
                    yield events.Notice(text=f"{name}: {why}", level="warning")
            yield events.CostChanged(**asdict(self.engine.cost))
        for name, search in searches.items():
            tree = search.tree
            assert tree.status is not None, name
            yield events.SearchFinished(
                search=name,
                status=tree.status.value,
                queries=tree.queries,
                example_forwards=tree.example_forwards,
                localized=len(tree.kept),
            )

    @property
    def _left(self) -> int:
        """Groups that the next batch may hold: the budget is never passed, even if the store knows none."""
        spent = self.engine.cost.group_evaluations
        return self.batch if self.budget is None else min(self.batch, self.budget - spent)

    def _batch(self, pending: Sequence[Asked]) -> list[Asked]:
        """The most questions about the same examples: an engine can share work between them."""
        same: dict[tuple[range, range], list[Asked]] = defaultdict(list)
        for item in pending:
            same[item[1].associated, item[1].unrelated].append(item)
        return max(same.values(), key=len)[: self._left]

    def _answered(self, searches: Searches, items: Sequence[Asked]) -> Iterator[events.Event]:
        """Ablate what some questions ask for and tell the searches what was answered, then show answers that flip."""
        for name, query in items:
            node = nodes.Node(
                id=query.node,
                parent=query.parent,
                layer=query.layer,
                channels=query.channels,
                step=query.step,
            )
            yield events.NodeAsked(search=name, node=node)
        first, groups = items[0][1], [self._group(query) for _, query in items]
        associated = [self.associated[place] for place in first.associated]
        positions = [*associated, *(self.unrelated[place] for place in first.unrelated)]
        strong: list[tuple[types.Neuron, list[int]]] = []
        labels = self.engine.labels(groups, positions)
        for (name, query), flips in zip(items, self.regime.flipped(labels), strict=True):
            answer = types.GroupAnswer(node=query.node, estimate=estimate_of(flips, len(associated)))
            for node in searches[name].tell(answer):
                yield events.NodeTested(search=name, node=node)
                if node.verdict is not nodes.Verdict.KEPT:
                    continue
                (unit,) = self._group(node)
                agonist = searches[name].tree.agonist(unit, node.estimate, node.ucb)
                yield found_event(name, agonist)
                if agonist.is_tau_agonist:
                    some = [*np.flatnonzero(flips)[:SEEN], *np.flatnonzero(~flips)[:1]]
                    strong.append((unit, [positions[place] for place in some]))
        if self.example:
            yield from starmap(self.example, reversed(strong))

    def _group(self, of: types.GroupQuery | nodes.Node) -> tuple[types.Neuron, ...]:
        return tuple(types.Neuron(self.basis, of.layer, int(channel)) for channel in of.channels)


def count(flips: np.ndarray) -> types.FlipCount:
    """Flips among some examples."""
    return types.FlipCount(flips=int(flips.sum()), n=len(flips))


def estimate_of(flips: np.ndarray, split: int) -> types.FlipEstimate:
    """Flips among the first `split` examples, which are of D̃⁺, and among the others."""
    return types.FlipEstimate(associated=count(flips[:split]), unrelated=count(flips[split:]))


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
