"""Asking ahead of verdicts: no tree, event or bound changes; waves get fewer, and what it took is counted apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from search_oracles import UnionOfFlips, planted_union
from table_engine import TableEngine, new_store, records

from mecharule_ops.cha.prediction import LayerPrediction
from mecharule_ops.cha.settings import ChaSettings
from mecharule_ops.cha.tree import ChaTree
from mecharule_ops.engine.group_questions import Answer, GroupQuestion, InTurn
from mecharule_ops.events import CostChanged, Event
from mecharule_ops.run.driver import SearchDriver
from mecharule_ops.run.planning import SearchKind, SearchPlan
from mecharule_ops.store.stored_engine import Cost, StoredEngine
from mecharule_ops.types import Basis, Candidates, LayerCandidates, Regime
from mecharule_ops.workers.dealing import LEAST, cut

UNITS, N, LAYERS = 120, 48, 3
CHA = ChaSettings(n_associated=N, n_unrelated=N)
REGIME = Regime.BASELINE_POSITIVE


@dataclass(kw_only=True)
class Noted:
    """Answers from a table; notes every wave that reaches it."""

    engine: TableEngine
    waves: list[tuple[GroupQuestion, ...]] = field(default_factory=list)

    def answers(self, wave: Sequence[GroupQuestion]) -> Iterator[Answer]:
        self.waves.append(tuple(wave))
        yield from InTurn(self.engine).answers(wave)

    @property
    def waited_for(self) -> int:
        """Waves with a question that a search had open."""
        return sum(any(not question.ahead for question in wave) for wave in self.waves)


@dataclass(frozen=True, kw_only=True)
class Driven:
    """A search of three layers, driven to its end."""

    trees: list[ChaTree]
    events: list[Event]
    cost: Cost
    noted: Noted


def oracle_of(seed: int) -> UnionOfFlips:
    return planted_union(np.random.default_rng(seed), units=UNITS, agonists=12, n=N, noise=0.005)


def plan_of(kind: SearchKind, oracle: UnionOfFlips) -> SearchPlan:
    """A guided search knows two layers well and one not at all."""
    if kind is not SearchKind.GUIDED:
        return SearchPlan(kind=kind, settings=CHA)
    rates = [oracle.strengths(), oracle.strengths(), np.zeros(UNITS)]
    predictions = [LayerPrediction(associated=each, unrelated=each, scores=np.zeros(UNITS)) for each in rates]
    return SearchPlan(kind=kind, settings=CHA, predictions=predictions)


def driven(folder: Path, kind: SearchKind, seed: int, **changes: object) -> Driven:
    oracle = oracle_of(seed)
    layers = tuple(
        LayerCandidates(layer=number, channels=np.arange(UNITS), scores=np.zeros(UNITS))
        for number in range(LAYERS)
    )
    named = plan_of(kind, oracle).searches(Candidates(basis=Basis.MLP_OUT, layers=layers), REGIME)
    flips = np.concatenate([oracle.associated, oracle.unrelated], axis=1)
    noted, cost = Noted(engine=TableEngine(flips=flips)), Cost()
    folder.mkdir()
    with new_store(folder / "a") as store:
        driver = SearchDriver(
            engine=StoredEngine(lambda: noted, store, "c", records(2 * N), cost),
            basis=Basis.MLP_OUT,
            regime=REGIME,
            associated=list(range(N)),
            unrelated=list(range(N, 2 * N)),
            width=64,
        )
        events = list(replace(driver, **changes).run(named))  # type: ignore[arg-type]
    return Driven(trees=[one.search.tree for one in named], events=events, cost=cost, noted=noted)


def told(run: Driven) -> list[Event]:
    """What was told but costs, in an order of its own: several answer in any order."""
    return sorted((event for event in run.events if not isinstance(event, CostChanged)), key=repr)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", list(SearchKind))
def test_nothing_that_is_found_or_told_changes(kind: SearchKind, seed: int, tmp_path: Path) -> None:
    """Trees with their counts, bounds and costs, and every event; no pair is run twice."""
    with_, without = (
        driven(tmp_path / name, kind, seed, ahead=ahead) for name, ahead in (("a", True), ("b", False))
    )
    assert with_.trees == without.trees
    assert told(with_) == told(without)
    assert set(with_.noted.engine.asked.values()) == {1}
    assert without.noted.engine.asked.keys() <= with_.noted.engine.asked.keys()
    assert without.cost.speculative == 0


@pytest.mark.parametrize("kind", [SearchKind.GUIDED, SearchKind.CHA])
def test_fewer_waves_are_waited_for_and_what_it_took_is_counted_apart(
    kind: SearchKind, tmp_path: Path
) -> None:
    """Every example-forward is either asked for or speculative, and some of the speculative ones were needed."""
    with_, without = (
        driven(tmp_path / name, kind, 0, ahead=ahead) for name, ahead in (("a", True), ("b", False))
    )
    assert with_.noted.waited_for < without.noted.waited_for
    run = sum(with_.noted.engine.asked.values())
    assert with_.cost.example_forwards + with_.cost.speculative == run
    (*_, last) = [event for event in with_.events if isinstance(event, CostChanged)]
    assert last.speculative == with_.cost.speculative > 0
    wasted = run - without.cost.example_forwards
    assert 0 <= wasted < with_.cost.speculative


@pytest.mark.parametrize("changes", [{"width": 1}, {"budget": 100_000}], ids=["one answers", "a budget"])
def test_one_answerer_and_a_budget_are_asked_nothing_ahead(changes: dict[str, int], tmp_path: Path) -> None:
    """One has no idle hands, and a budget counts what was asked."""
    run = driven(tmp_path / "a", SearchKind.GUIDED, 0, **changes)
    assert run.cost.speculative == 0
    assert not any(question.ahead for wave in run.noted.waves for question in wave)


def test_what_is_asked_ahead_fits_hands_that_are_idle(tmp_path: Path) -> None:
    """Workers that have a part of the wave itself are left alone, the others get no more than a small part each."""
    run = driven(tmp_path / "a", SearchKind.GUIDED, 0, width=8)
    asked = [(wave, [question for question in wave if question.ahead]) for wave in run.noted.waves]
    assert any(ahead for _, ahead in asked)
    for wave, ahead in asked:
        busy = len(cut([question for question in wave if not question.ahead], 8))
        assert not ahead or sum(question.pairs for question in ahead) <= (8 - busy) * LEAST
