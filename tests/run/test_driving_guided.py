"""Guided searches behind the driver and a store: same trees, told by events, resumed, within budget and price."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from search_oracles import UnionOfFlips, drive_together, planted_union
from table_engine import TableEngine, new_store, stored

from mecharule_ops.cha.prediction import LayerPrediction
from mecharule_ops.cha.settings import ChaSettings
from mecharule_ops.events import Event, Notice, PredictionsDropped, SearchStarted
from mecharule_ops.run.driver import NamedSearch, SearchDriver
from mecharule_ops.run.planning import SearchKind, SearchPlan
from mecharule_ops.state.run_state import RunState
from mecharule_ops.store.run_log import event_from_json, event_to_json
from mecharule_ops.store.stored_engine import StoredEngine
from mecharule_ops.types import Basis, Candidates, LayerCandidates, Regime, SearchStatus

UNITS, N = 300, 32
CHA = ChaSettings(n_associated=N, n_unrelated=N)
REGIME = Regime.BASELINE_POSITIVE


def candidates(layers: int, units: int = UNITS) -> Candidates:
    return Candidates(
        basis=Basis.MLP_OUT,
        layers=tuple(
            LayerCandidates(layer=number, channels=np.arange(units), scores=np.zeros(units))
            for number in range(layers)
        ),
    )


def plan_of(*strengths: np.ndarray) -> SearchPlan:
    predictions = [
        LayerPrediction(associated=each, unrelated=each, scores=np.zeros(len(each))) for each in strengths
    ]
    return SearchPlan(kind=SearchKind.GUIDED, settings=CHA, predictions=predictions)


def planted(seed: int, agonists: int = 6) -> UnionOfFlips:
    return planted_union(np.random.default_rng(seed), units=UNITS, agonists=agonists, n=N, noise=0.001)


def engine_of(oracle: UnionOfFlips) -> TableEngine:
    return TableEngine(flips=np.concatenate([oracle.associated, oracle.unrelated], axis=1))


def driver_of(engine: StoredEngine, **changes: object) -> SearchDriver:
    made = SearchDriver(
        engine=engine,
        basis=Basis.MLP_OUT,
        regime=REGIME,
        associated=list(range(N)),
        unrelated=list(range(N, 2 * N)),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def told(named: list[NamedSearch], driver: SearchDriver) -> tuple[RunState, list[Event]]:
    """The state that the events of a drive lead to, through their stored form; and the events."""
    events: list[Event] = [
        SearchStarted(search=one.id, regime=1, layer=one.layer, units=UNITS) for one in named
    ]
    events += driver.run(named)
    state = RunState()
    for event in events:
        state = state.apply(event_from_json(event_to_json(event)))
    return state, events


@pytest.mark.parametrize("batch", [1, 64])
def test_trees_are_those_of_searches_fed_directly_and_events_tell_them(tmp_path: Path, batch: int) -> None:
    """Two layers with the same flips, one well predicted and one at random: any batch size gives the same trees."""
    oracle = planted(3)
    plan = plan_of(oracle.strengths(), np.random.default_rng(0).random(UNITS) * 0.1)
    direct = drive_together([one.search for one in plan.searches(candidates(2), REGIME)], [oracle, oracle])
    named = plan.searches(candidates(2), REGIME)
    with new_store(tmp_path / "a") as store:
        state, _ = told(named, driver_of(stored(store, engine_of(oracle)), batch=batch))
    assert [one.search.tree for one in named] == direct
    assert [one.id for one in named] == ["guided:1:m0", "guided:1:m1"]
    strong = set(np.flatnonzero(oracle.strengths() >= CHA.tau).tolist())
    for one, tree in zip(named, direct, strict=True):
        view = state.searches[one.id]
        assert strong <= {node.channels[0] for node in tree.kept}
        assert {node: view.nodes[node].verdict for node in view.nodes} == {
            node.node: node.verdict.value for node in tree.nodes
        }
        assert view.result is not None
        assert view.result.status == SearchStatus.COMPLETE.value
    assert direct[0].example_forwards < direct[1].example_forwards


def test_dropped_predictions_are_told_once_with_their_reason(tmp_path: Path) -> None:
    """Nothing is predicted of the units that flip: an event and a notice say where predictions ended and why."""
    oracle = planted(4, agonists=8)
    plan = plan_of(np.zeros(UNITS), oracle.strengths())
    named = plan.searches(candidates(2), REGIME)
    with new_store(tmp_path / "a") as store:
        state, events = told(named, driver_of(stored(store, engine_of(oracle))))
    (dropped,) = [event for event in events if isinstance(event, PredictionsDropped)]
    fallback = named[0].search.fallback
    assert fallback is not None
    assert (dropped.search, dropped.node, dropped.units) == ("guided:1:m0", fallback.node, fallback.units)
    assert state.searches["guided:1:m0"].dropped == dropped
    assert state.searches["guided:1:m1"].dropped is None
    (notice,) = [event for event in events if isinstance(event, Notice)]
    assert (notice.level, notice.text) == ("warning", f"guided:1:m0: {fallback.sentence}")
