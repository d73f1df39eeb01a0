"""A guided search of the bundled model behind the run's own engine: what it finds, what its audit may say."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bundled_run import opened

from mecharule_ops.cha.prediction import LayerPrediction
from mecharule_ops.events import Event
from mecharule_ops.findings.counts import UnitStrength
from mecharule_ops.run.journal import Journal
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.localise import Localised, audit_search, localise
from mecharule_ops.run.planning import SearchKind, SearchPlan
from mecharule_ops.types import Basis, Candidates, Regime, SearchStatus

REGIME = Regime.BASELINE_POSITIVE


def predictions_from(candidates: Candidates, truth: tuple[UnitStrength, ...]) -> list[LayerPrediction]:
    """Brute force's own rates as predictions."""
    known = {unit.neuron: unit.estimate for unit in truth}
    rates = {
        (neuron.layer, neuron.channel): (estimate.associated.flip_rate, estimate.unrelated.flip_rate)
        for neuron, estimate in known.items()
    }
    tables = [
        np.array([rates[layer.layer, channel] for channel in layer.channels.tolist()])
        for layer in candidates.layers
    ]
    return [
        LayerPrediction(associated=table[:, 0], unrelated=table[:, 1], scores=table.sum(axis=1))
        for table in tables
    ]


def searched(run: Run, plan: SearchPlan) -> tuple[Localised, list[Event]]:
    told: list[Event] = []
    run.config = run.config.model_copy(update={"exhaustive_up_to": 0})
    candidates, slices = run.candidates(Basis.MLP_OUT, REGIME), run.slices(REGIME)
    journal = Journal(run.store, told.append, lambda: 0.0)
    found = localise(run, journal, candidates, slices, plan)
    audit_search(run, journal, found)
    return found, told


@pytest.mark.parametrize("rest", ["grouped", "audited"])
@pytest.mark.parametrize("believes", ["the truth", "its reverse"])
def test_a_guided_run_finds_what_brute_force_knows(
    finished_run: Path, tmp_path: Path, believes: str, rest: str
) -> None:
    """By true predictions all τ-agonists, from fewer example-forwards than `cha` takes; by their reverse no more
    are missed than the bound says, also where the audit alone has the rest: then it is never asked in groups. The
    audit's strata are those of the predicted rate."""
    with opened(Path(shutil.copy(finished_run, tmp_path))) as run:
        exhaustive = run.findings.searches[0].exhaustive
        assert exhaustive is not None
        cha = SearchPlan(settings=run.search_settings(REGIME))
        told = predictions_from(run.candidates(Basis.MLP_OUT, REGIME), exhaustive.units)
        if believes == "its reverse":
            told = [
                replace(each, associated=0.1 - each.associated.clip(0, 0.1), unrelated=each.unrelated * 0)
                for each in told
            ]
        guided = replace(cha, kind=SearchKind.GUIDED, predictions=told, sweeps=rest == "grouped")
        dear, _ = searched(run, cha)
        found, _ = searched(run, guided)
    strong = {unit.neuron for unit in exhaustive.units if unit.estimate.strength >= 0.2}
    met = {agonist.neuron for agonist in found.outcome.agonists if agonist.is_tau_agonist}
    assert met <= strong
    audit = found.outcome.audit
    assert audit is not None
    assert len(strong - met) <= audit.missed_at_most
    assert {part.name for part in audit.strata} <= {
        "predicted to flip nothing",
        "predicted to flip less",
        "predicted to flip 5% or more",
    }
    if rest == "audited":
        assert all(len(node.channels) == 1 for tree in found.trees for node in tree.nodes)
        asked = {node.channels[0] for tree in found.trees for node in tree.nodes}
        assert len(asked) < 256
        assert {tree.status for tree in found.trees} == {SearchStatus.LEFT}
    if believes == "the truth":
        assert met == strong
        cost = [sum(tree.example_forwards for tree in each.trees) for each in (found, dear)]
        assert cost[0] < cost[1]


def test_the_predicted_rates_are_those_of_the_predicted_flips(finished_run: Path) -> None:
    """What a run keeps of first order: for each candidate the examples of either slice, in the order of the slices."""
    with opened(finished_run) as run:
        predictions, slices = run.predictions(Basis.MLP_OUT, REGIME), run.slices(REGIME)
        assert predictions
        for layer in predictions:
            assert layer.flips is not None
            associated, unrelated = layer.flips
            assert (len(associated), len(unrelated)) == (len(slices.associated), len(slices.unrelated))
            assert associated.mean(0) == pytest.approx(layer.associated)
            assert unrelated.mean(0) == pytest.approx(layer.unrelated)
        assert max(layer.strength.max() for layer in predictions) > 0
