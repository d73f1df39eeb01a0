"""The driver puts searches, also guided ones, and an engine together: same trees, budget, stop, events tell all."""

from collections import Counter
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from events_told import folded
from search_oracles import UnionOfFlips, drive_together, planted_union
from table_engine import TableEngine, new_store, stored

from mecharule_ops import events as kinds
from mecharule_ops.cha.group_search import GroupSearch
from mecharule_ops.cha.prediction import LayerPrediction
from mecharule_ops.cha.search import ChaSearch
from mecharule_ops.cha.settings import ChaSettings
from mecharule_ops.confidence import Testing as Looks
from mecharule_ops.run.driver import SearchDriver
from mecharule_ops.run.planning import SearchKind, SearchPlan
from mecharule_ops.state.run_state import RunState
from mecharule_ops.store import run_log, stored_engine
from mecharule_ops.types import Basis, Candidates, LayerCandidates, Regime, SearchStatus

UNITS, N = 48, 32
SETTINGS = ChaSettings(n_associated=N, n_unrelated=N)


def planted(seed: int, agonists: int = 4) -> UnionOfFlips:
    return planted_union(np.random.default_rng(seed), units=UNITS, agonists=agonists, n=N, noise=0.02)


def layer(number: int, seed: int = 0) -> LayerCandidates:
    scores = np.random.default_rng([seed, number]).normal(size=UNITS)
    return LayerCandidates(layer=number, channels=np.arange(UNITS), scores=scores)


def searches(layers: int, settings: ChaSettings = SETTINGS) -> dict[str, GroupSearch]:
    regime = Regime.BASELINE_POSITIVE
    return {f"cha:1:m{n}": ChaSearch(layer(n), settings=settings, regime=regime) for n in range(layers)}


def table_of(oracle: UnionOfFlips) -> TableEngine:
    """Associated examples first, then the unrelated ones."""
    return TableEngine(flips=np.concatenate([oracle.associated, oracle.unrelated], axis=1))


def driver_of(engine: stored_engine.StoredEngine, **changes: object) -> SearchDriver:
    made = SearchDriver(
        engine=engine,
        basis=Basis.MLP_OUT,
        regime=Regime.BASELINE_POSITIVE,
        associated=list(range(N)),
        unrelated=list(range(N, 2 * N)),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def told(searches: dict[str, GroupSearch], driver: SearchDriver) -> tuple[RunState, list[kinds.Event]]:
    """The state that the events of a drive lead to, through their stored form; and the events."""
    events = list(driver.run(searches))
    return folded(run_log.event_from_json(run_log.event_to_json(event)) for event in events), events


def test_the_told_cost_is_what_the_engine_was_asked(tmp_path: Path) -> None:
    """The last cost told equals the searches' example-forwards and the engine's own count of cells."""
    named, engine = searches(2), table_of(planted(5))
    with new_store(tmp_path / "a") as store:
        _, events = told(named, driver_of(stored(store, engine)))
    costs = [event for event in events if isinstance(event, kinds.CostChanged)]
    forwards = sum(search.tree.example_forwards for search in named.values())
    assert costs[-1].example_forwards == forwards == len(engine.asked)
    assert [cost.example_forwards for cost in costs] == sorted(cost.example_forwards for cost in costs)


def test_questions_of_one_range_reach_the_engine_together(tmp_path: Path) -> None:
    """Groups of all layers share calls of up to `batch` groups; one layer's alone would be smaller."""
    engine = table_of(planted(1, agonists=0))
    with new_store(tmp_path / "a") as store:
        list(driver_of(stored(store, engine), batch=64).run(searches(4)))
    roots = [len(search.ask()) for search in searches(4).values()]
    assert engine.calls[0][0] == sum(roots) > max(roots)


@pytest.mark.parametrize("budget", [1, 5, 23, 70])
def test_the_budget_is_never_passed_and_is_said(tmp_path: Path, budget: int) -> None:
    """Every search ends with the budget's sentence, at exactly the budget, keeping what was decided."""
    named, engine = searches(2), table_of(planted(7, agonists=8))
    with new_store(tmp_path / "a") as store:
        wrapped = stored(store, engine)
        _, events = told(named, driver_of(wrapped, budget=budget))
        assert wrapped.cost.group_evaluations == budget
    ended = [event.status for event in events if isinstance(event, kinds.SearchFinished)]
    assert ended == ["the budget was spent before the search ended; what was found is kept"] * 2
    tested = [event for event in events if isinstance(event, kinds.NodeTested)]
    assert len(tested) == sum(len(search.tree.nodes) for search in named.values()) <= budget


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_stop_is_obeyed_before_the_next_batch(tmp_path: Path, after: int) -> None:
    """After the n-th batch nothing more is asked; the searches say that they were stopped."""
    engine, asked = table_of(planted(7, agonists=8)), count(1)

    def should_stop() -> bool:
        return next(asked) > after

    with new_store(tmp_path / "a") as store:
        _, events = told(searches(2), driver_of(stored(store, engine), batch=4, should_stop=should_stop))
    assert sum(isinstance(event, kinds.CostChanged) for event in events) == after
    ended = [event.status for event in events if isinstance(event, kinds.SearchFinished)]
    assert ended == ["the search was stopped; what was found is kept"] * 2


def test_a_stopped_search_goes_on_from_the_store(tmp_path: Path) -> None:
    """Driven again, the same searches reach the uninterrupted trees and no cell is evaluated twice."""
    engine, whole, turns = table_of(planted(7)), searches(2), count(1)

    def should_stop() -> bool:
        return next(turns) > 3

    with new_store(tmp_path / "a") as store, new_store(tmp_path / "b") as other:
        list(driver_of(stored(other, table_of(planted(7)))).run(whole))
        list(driver_of(stored(store, engine), batch=4, should_stop=should_stop).run(searches(2)))
        seen = len(engine.asked)
        again = searches(2)
        list(driver_of(stored(store, engine), batch=4).run(again))
    assert 0 < seen < len(engine.asked)
    assert max(engine.asked.values()) == 1
    assert [one.tree for one in again.values()] == [one.tree for one in whole.values()]


GUIDED = 300
"""Units of a layer of a guided search."""


def planted_guided(seed: int, agonists: int = 6) -> UnionOfFlips:
    return planted_union(np.random.default_rng(seed), units=GUIDED, agonists=agonists, n=N, noise=0.001)


def candidates(layers: int, units: int = GUIDED) -> Candidates:
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
    return SearchPlan(kind=SearchKind.GUIDED, settings=SETTINGS, predictions=predictions)


@pytest.mark.parametrize("kind", ["sequential", "fixed", "guided"])
@pytest.mark.parametrize("batch", [1, 7, 64])
def test_trees_are_those_of_searches_fed_directly_and_events_tell_them(
    tmp_path: Path, kind: str, batch: int
) -> None:
    """Layers driven together through a store give what each gives alone from the same flips, and the state folded from
    the events has their nodes, ends and agonists. Of the guided layers one is well predicted and one at random."""
    oracle, layers = (planted_guided(3), 2) if kind == "guided" else (planted(3), 3)

    def made() -> dict[str, GroupSearch]:
        if kind != "guided":
            return searches(layers, replace(SETTINGS, testing=Looks(kind)))
        plan = plan_of(oracle.strengths(), np.random.default_rng(0).random(GUIDED) * 0.1)
        return plan.searches(candidates(2), Regime.BASELINE_POSITIVE)

    named, direct = made(), drive_together([*made().values()], [oracle] * layers)
    with new_store(tmp_path / "a") as store:
        state, events = told(named, driver_of(stored(store, table_of(oracle)), batch=batch))
    assert [search.tree for search in named.values()] == direct
    found = Counter(event.search for event in events if isinstance(event, kinds.AgonistFound))
    for name, tree in zip(named, direct, strict=True):
        view = state.searches[name]
        assert tuple(view.nodes.values()) == tree.nodes
        assert view.tested == len(tree.nodes)
        assert view.result == kinds.SearchFinished(
            search=name,
            status=SearchStatus.COMPLETE.value,
            queries=tree.queries,
            example_forwards=tree.example_forwards,
            localized=len(tree.kept),
        )
        assert found[name] == len(tree.kept) > 0
    if kind == "guided":
        strong = set(np.flatnonzero(oracle.strengths() >= SETTINGS.tau).tolist())
        assert all(strong <= {node.channels[0] for node in tree.kept} for tree in direct)
        assert direct[0].example_forwards < direct[1].example_forwards


def test_dropped_predictions_are_told_once_with_their_reason(tmp_path: Path) -> None:
    """Nothing is predicted of the units that flip: an event and a notice say where predictions ended and why."""
    oracle = planted_guided(4, agonists=8)
    named = plan_of(np.zeros(GUIDED), oracle.strengths()).searches(candidates(2), Regime.BASELINE_POSITIVE)
    with new_store(tmp_path / "a") as store:
        _, events = told(named, driver_of(stored(store, table_of(oracle))))
    (dropped,) = [event for event in events if isinstance(event, kinds.PredictionsDropped)]
    fallback = named["guided:1:m0"].fallback
    assert fallback is not None
    assert (dropped.search, dropped.node, dropped.units) == ("guided:1:m0", fallback.node, fallback.units)
    (notice,) = [event for event in events if isinstance(event, kinds.Notice)]
    assert (notice.level, notice.text) == ("warning", f"guided:1:m0: {fallback.sentence}")
