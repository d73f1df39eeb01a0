"""The state of a run as a fold over its events: what every display shows, live or replayed.

`RunState.apply` is pure and knows no screen, clock or model. Versions share structure (`IntMap`), so
an event costs about the same at the first node and at the ten-thousandth, and a snapshot never changes.
Events may be repeated: a resumed search tells its story again and replaces what it told before.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

from mecharule_ops import events, nodes
from mecharule_ops.state.search_view import CHA, EXHAUSTIVE, GUIDED, SearchId, SearchView
from mecharule_ops.thresholds import Thresholds


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """An immutable snapshot of a run."""

    header: events.RunStarted | None = None
    stage: events.StageProgress | None = None
    """The stage at work and how far it is; None between stages."""
    stages: Mapping[str, events.StageFinished] = field(default_factory=dict)
    """Finished stages by name, in order."""
    searches: Mapping[str, SearchView] = field(default_factory=dict)
    """By search id, in order of start."""
    judged: Mapping[tuple[int, str], events.UnitJudged] = field(default_factory=dict)
    """By (regime, neuron): τ-agonists that were ablated on held-out records."""
    latest: tuple[str, int] | None = None
    """Search and node asked or decided last."""
    seen: Mapping[tuple[int, str], events.FlipsSeen] = field(default_factory=dict)
    """By (regime, neuron): what some answers became without a τ-agonist, as found one after the other."""
    whole: Mapping[tuple[int, str], float] = field(default_factory=dict)
    """By (regime, layer): the share that flips without the whole layer."""
    price: events.Price | None = None
    cost: events.CostChanged | None = None
    """Of every process that ran it."""
    earlier: events.CostChanged | None = None
    """Of those before the one at work."""
    left: events.TimeLeft | None = None
    """None where it is not known yet."""
    status: str = "not started"
    """`not started`, `running`, or how the run ended."""
    finished: bool = False

    def apply(self, event: events.Event) -> "RunState":
        """The state after an event; the same state for a kind that changes nothing shown here.

        A node event of a search that was never started is a broken invariant.
        """
        match event:
            case events.NodeAsked() | events.NodeTested():
                latest = event.search, event.node.id
                return replace(self._with_search(self._started(event.search).told(event.node)), latest=latest)
            case events.RunStarted():
                begun = replace(self, header=event, status="running", finished=False, stage=None, left=None)
                return replace(begun, earlier=self.cost)
            case events.RunFinished():
                return replace(self, status=event.status, finished=True, stage=None)
            case events.StageStarted():
                return replace(self, stage=events.StageProgress(stage=event.stage, done=0, total=event.total))
            case events.StageProgress():
                return replace(self, stage=self._progressed(event))
            case events.StageFinished():
                left = self.stage if self.stage and self.stage.stage != event.stage else None
                return replace(self, stage=left, stages={**self.stages, event.stage: event})
            case events.SearchStarted():
                view = SearchView(search=event.search, units=event.units, thresholds=self.thresholds)
                return self._with_search(view)
            case events.SearchFinished():
                return self._with_search(replace(self._started(event.search), result=event))
            case events.UnitJudged():
                return replace(self, judged={**self.judged, (event.regime, event.neuron): event})
            case events.FlipsSeen():
                return replace(self, seen={**self.seen, (event.regime, event.neuron): event})
            case events.LayerAblated():
                return replace(self, whole={**self.whole, (event.regime, event.layer): event.strength})
            case events.Price():
                return replace(self, price=event)
            case events.CostChanged():
                had = asdict(self.earlier) if self.earlier else {}
                return replace(self, cost=replace(event, **{k: v + asdict(event)[k] for k, v in had.items()}))
            case events.TimeLeft():
                return replace(self, left=event)
        return self

    @property
    def thresholds(self) -> Thresholds:
        """What its flips are judged by."""
        return self.header.thresholds if self.header else Thresholds()

    def _started(self, search: str) -> SearchView:
        assert search in self.searches, f"{search} was never started"
        return self.searches[search]

    def settled(self, unit: nodes.Neuron, regime: int) -> tuple[nodes.Node, ...]:
        """The nodes of its layer's search from a root to the one that settled a unit; empty when none did."""
        named = (str(SearchId(kind, regime, unit.basis, unit.layer)) for kind in (GUIDED, CHA, EXHAUSTIVE))
        view = next((self.searches[name] for name in named if name in self.searches), None)
        node, path = view and view.settled(unit.channel), list[nodes.Node]()
        while view and node:
            path.insert(0, node)
            node = None if node.parent is None else view.nodes.get(node.parent)
        return tuple(path)

    def _with_search(self, view: SearchView) -> "RunState":
        return replace(self, searches={**self.searches, view.search: view})

    def _progressed(self, event: events.StageProgress) -> events.StageProgress:
        here = self.stage if self.stage and self.stage.stage == event.stage else event
        total = here.total if event.total is None else event.total
        return replace(here, done=event.done, total=total, neuron=event.neuron or here.neuron)
