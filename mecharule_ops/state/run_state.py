"""The state of a run as a fold over its events: what every display shows, live or replayed.

`RunState.apply` is pure and knows no screen, clock or model. Versions share structure (`persistent.py`), so
an event costs about the same at the first node and at the ten-thousandth, and a snapshot never changes.
Events may be repeated: a resumed search tells its story again and replaces what it told before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mecharule_ops.events import (
    AgonistFound,
    CertificateWritten,
    CostChanged,
    Event,
    HypothesisDecided,
    HypothesisRegistered,
    LayerCovered,
    LlmCost,
    LlmMessage,
    Notice,
    PredictionsDropped,
    Price,
    RuleAnchored,
    RunFinished,
    RunStarted,
    SearchFinished,
    SearchStarted,
    StageFinished,
    StageProgress,
    StageStarted,
    ToolCalled,
)
from mecharule_ops.state.persistent import Log
from mecharule_ops.state.search_view import NODE_EVENTS, Counts, SearchView


@dataclass(frozen=True, slots=True, kw_only=True)
class StageView:
    """The stage at work."""

    stage: str
    done: int = 0
    total: int | None = None
    unit: str = "steps"

    @property
    def fraction(self) -> float | None:
        """Share done in [0, 1]; None while the total is unknown."""
        return min(self.done / self.total, 1.0) if self.total else None


@dataclass(frozen=True, slots=True, kw_only=True)
class HypothesisView:
    """One entry of the hypothesis ledger."""

    registered: HypothesisRegistered
    decided: HypothesisDecided | None = None
    """None while it is open."""

    @property
    def state(self) -> str:
        """`open`, `supported`, `refuted` or `underpowered`."""
        return "open" if self.decided is None else self.decided.state


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """An immutable snapshot of a run."""

    header: RunStarted | None = None
    stage: StageView | None = None
    """None between stages."""
    stages: Mapping[str, StageFinished] = field(default_factory=dict)
    """Finished stages by name, in order."""
    searches: Mapping[str, SearchView] = field(default_factory=dict)
    """By search id, in order of start."""
    agonists: Mapping[tuple[str, str], AgonistFound] = field(default_factory=dict)
    """By (search, neuron)."""
    rules: Mapping[tuple[int, str], RuleAnchored] = field(default_factory=dict)
    """By (regime, neuron); the latest rule of each."""
    coverage: Mapping[tuple[int, str], LayerCovered] = field(default_factory=dict)
    """By (regime, layer); the latest count of each."""
    certificates: Mapping[str, CertificateWritten] = field(default_factory=dict)
    """By certificate id."""
    hypotheses: Mapping[str, HypothesisView] = field(default_factory=dict)
    """By id, in order of registration."""
    dialogue: Log[LlmMessage | ToolCalled] = field(default_factory=Log)
    """What language models replied and which tools they called."""
    llm_cost: LlmCost | None = None
    notices: Log[Notice] = field(default_factory=Log)
    price: Price | None = None
    cost: CostChanged | None = None
    status: str = "not started"
    """`not started`, `running`, or how the run ended."""
    finished: bool = False

    def apply(self, event: Event) -> RunState:
        """The state after an event; the same state for a kind that changes nothing shown here.

        A node event of a search that was never started is a broken invariant.
        """
        if isinstance(event, NODE_EVENTS):
            assert event.search in self.searches, f"{event.search} was never started"
            return self._with_search(self.searches[event.search].apply(event))
        handler = _HANDLERS.get(type(event))
        return handler(self, event) if handler else self

    @property
    def counts(self) -> Counts:
        """Counts over all searches."""
        return sum((view.counts for view in self.searches.values()), Counts())

    @property
    def search_fraction(self) -> float | None:
        """Share of candidate units that are decided, over the searches started; None before the first."""
        units = sum(view.units for view in self.searches.values())
        return min(self.counts.decided_units / units, 1.0) if units else None

    @property
    def fraction(self) -> float | None:
        """Progress in [0, 1]: of the stage when its total is known, else of the searches; 1 at the end."""
        if self.finished:
            return 1.0
        of_stage = self.stage.fraction if self.stage else None
        return self.search_fraction if of_stage is None else of_stage

    def seconds_left(self, elapsed: float) -> float | None:
        """What remains after `elapsed` seconds of what `fraction` measures, at that pace; None at 0."""
        fraction = self.fraction
        return elapsed * (1 - fraction) / fraction if fraction else None

    def _with_search(self, view: SearchView) -> RunState:
        return replace(self, searches={**self.searches, view.search: view})


def _run_started(state: RunState, event: RunStarted) -> RunState:
    return replace(state, header=event, status="running", finished=False, stage=None)


def _stage_started(state: RunState, event: StageStarted) -> RunState:
    return replace(state, stage=StageView(stage=event.stage, total=event.total, unit=event.unit))


def _stage_progress(state: RunState, event: StageProgress) -> RunState:
    before = state.stage if state.stage and state.stage.stage == event.stage else StageView(stage=event.stage)
    total = before.total if event.total is None else event.total
    return replace(state, stage=replace(before, done=event.done, total=total))


def _stage_finished(state: RunState, event: StageFinished) -> RunState:
    still = state.stage if state.stage and state.stage.stage != event.stage else None
    return replace(state, stage=still, stages={**state.stages, event.stage: event})


def _search_started(state: RunState, event: SearchStarted) -> RunState:
    view = SearchView(search=event.search, regime=event.regime, layer=event.layer, units=event.units)
    agonists = {key: found for key, found in state.agonists.items() if key[0] != event.search}
    return replace(state._with_search(view), agonists=agonists)


def _search_finished(state: RunState, event: SearchFinished) -> RunState:
    assert event.search in state.searches, f"{event.search} was never started"
    return state._with_search(replace(state.searches[event.search], result=event))


def _predictions_dropped(state: RunState, event: PredictionsDropped) -> RunState:
    assert event.search in state.searches, f"{event.search} was never started"
    return state._with_search(replace(state.searches[event.search], dropped=event))


def _agonist_found(state: RunState, event: AgonistFound) -> RunState:
    return replace(state, agonists={**state.agonists, (event.search, event.neuron): event})


def _rule_anchored(state: RunState, event: RuleAnchored) -> RunState:
    return replace(state, rules={**state.rules, (event.regime, event.neuron): event})


def _layer_covered(state: RunState, event: LayerCovered) -> RunState:
    return replace(state, coverage={**state.coverage, (event.regime, event.layer): event})


def _certificate_written(state: RunState, event: CertificateWritten) -> RunState:
    return replace(state, certificates={**state.certificates, event.certificate: event})


def _hypothesis_registered(state: RunState, event: HypothesisRegistered) -> RunState:
    known = state.hypotheses.get(event.hypothesis)
    view = HypothesisView(registered=event, decided=known.decided if known else None)
    return replace(state, hypotheses={**state.hypotheses, event.hypothesis: view})


def _hypothesis_decided(state: RunState, event: HypothesisDecided) -> RunState:
    assert event.hypothesis in state.hypotheses, f"{event.hypothesis} was never registered"
    view = replace(state.hypotheses[event.hypothesis], decided=event)
    return replace(state, hypotheses={**state.hypotheses, event.hypothesis: view})


def _said(state: RunState, event: LlmMessage | ToolCalled) -> RunState:
    return replace(state, dialogue=state.dialogue.append(event))


_HANDLERS: dict[type[Event], Callable[[RunState, Any], RunState]] = {
    RunStarted: _run_started,
    StageStarted: _stage_started,
    StageProgress: _stage_progress,
    StageFinished: _stage_finished,
    SearchStarted: _search_started,
    SearchFinished: _search_finished,
    PredictionsDropped: _predictions_dropped,
    AgonistFound: _agonist_found,
    RuleAnchored: _rule_anchored,
    LayerCovered: _layer_covered,
    CertificateWritten: _certificate_written,
    HypothesisRegistered: _hypothesis_registered,
    HypothesisDecided: _hypothesis_decided,
    LlmMessage: _said,
    ToolCalled: _said,
    LlmCost: lambda state, event: replace(state, llm_cost=event),
    Price: lambda state, event: replace(state, price=event),
    CostChanged: lambda state, event: replace(state, cost=event),
    Notice: lambda state, event: replace(state, notices=state.notices.append(event)),
    RunFinished: lambda state, event: replace(state, status=event.status, finished=True, stage=None),
}
