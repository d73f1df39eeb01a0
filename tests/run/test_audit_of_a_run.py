"""The audit in a run: what it draws, what it may say, and that brute force agrees with its bound."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bundled_run import finish, new_run, opened
from findings_fixture import FINDINGS, NEGATIVE, POSITIVE, agonist

from mecharule_ops import confidence
from mecharule_ops.cha.audit import AuditResult, StratumResult
from mecharule_ops.cha.prediction import LayerPrediction
from mecharule_ops.cha.settings import ALGORITHM_1
from mecharule_ops.config import make_config
from mecharule_ops.events import Event
from mecharule_ops.facts.found import suggestions
from mecharule_ops.facts.searches import audit_sentence, guaranteed_words, recall_words
from mecharule_ops.findings.counts import SearchAudit, UnitStrength
from mecharule_ops.findings.records import Findings
from mecharule_ops.pages.content import report_text
from mecharule_ops.run.journal import Journal
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.localise import Localised, audit_search, localise
from mecharule_ops.run.planning import LARGEST, SearchKind, SearchPlan, audit_tests, search_settings
from mecharule_ops.types import Basis, Candidates, Regime, SearchStatus, Share

AUDIT = SearchAudit.of(
    AuditResult(
        strata=(
            StratumResult(name="pruned with a group", units=900, tested=90, found=0),
            StratumResult(name="tested alone on a part of the examples", units=100, tested=10, found=0),
        ),
        drawn=frozenset(),
        found={},
        reopened=0,
        missed_at_most=28,
        confidence=0.95,
    ),
    exact=True,
)


def repeated(finished_run: Path, folder: Path, **settings: object) -> Findings:
    """The findings of a copy of the finished run, analysed again under other settings; its outcomes are stored."""
    with opened(Path(shutil.copy(finished_run, folder))) as run:
        run.config = run.config.model_copy(
            update={"controls_for": 0, "anchor_for": 0, "accounts_for": 0, "chains_for": 0, **settings}
        )
        return finish(run)[0]


def test_a_search_without_brute_force_is_audited_and_the_bound_holds(
    finished_run: Path, tmp_path: Path
) -> None:
    """The τ-agonists that brute force knows and the search has not are no more than the bound says."""
    with opened(finished_run, read_only=True) as run:
        truth = run.findings.searches[0]
    searched = repeated(finished_run, tmp_path, exhaustive_up_to=0, largest=64).searches[0]
    assert searched.audit is not None
    assert searched.exhaustive is None
    assert truth.exhaustive is not None
    strong = {unit.neuron for unit in truth.exhaustive.units if unit.estimate.strength >= 0.2}
    found = {each.neuron for each in searched.tau_agonists}
    assert len(strong - found) <= searched.audit.missed_at_most
    assert 0 < searched.audit.tested < searched.audit.untested
    assert "drawn at random" in report_text(replace(FINDINGS, searches=(searched,)))


def test_an_audit_of_every_pruned_unit_leaves_nothing_unknown(finished_run: Path, tmp_path: Path) -> None:
    """A search that hides its agonists in one group finds them through the audit, and says how."""
    settings = {"exhaustive_up_to": 0, "audit": 1000, "largest": 256, "tau": 0.2}
    with opened(finished_run, read_only=True) as run:
        truth = run.findings.searches[0].exhaustive
    assert truth is not None
    searched = repeated(finished_run, tmp_path, **settings).searches[0]
    assert searched.audit is not None
    assert (searched.audit.untested, searched.audit.missed_at_most) == (0, 0)
    strong = {unit.neuron for unit in truth.units if unit.estimate.strength >= 0.2}
    assert {each.neuron for each in searched.tau_agonists} == strong


def test_a_unit_that_the_audit_meets_reopens_its_group(tmp_path: Path) -> None:
    """Of two units that cancel, Algorithm 1 prunes both with others; five draws of eighteen meet one of them."""
    settings = {
        "model": "known/cancelling",
        "task": "program",
        "bases": ("mlp_hidden",),
        "regimes": (1,),
        "parity": True,
        "audit": 5,
        "controls": 1,
        "chains_for": 0,
        "accounts_for": 0,
        "anchor_for": 0,
    }
    with new_run(tmp_path / "a.mecharule", settings) as run:
        (searched,) = finish(run)[0].searches
    assert searched.audit is not None
    assert len(searched.audit.found) == len(searched.tau_agonists) == 2
    assert (searched.audit.found_reopened, searched.audit.untested) == (1, 6)
    assert audit_sentence(searched, searched.audit) == (
        "Of the 15 units whose full strength the search left unknown, 5 were drawn at random and tested alone: 1 "
        "reaches τ, so the 4 units pruned together with it were tested alone too, of which 1 reaches τ. So 2 at τ, "
        "at most 6 missed: at least 25 % of all such units found (95 % confidence)"
    )


@pytest.mark.parametrize(
    "settings", [{"audit": 0, "exhaustive_up_to": 0}, {"exhaustive_up_to": 300}], ids=["0", "brute force"]
)
def test_no_audit_where_none_is_wanted_or_everything_is_known(
    finished_run: Path, tmp_path: Path, settings: dict[str, object]
) -> None:
    """0 switches it off; brute force leaves it nothing to ask."""
    assert repeated(finished_run, tmp_path, **settings).searches[0].audit is None


@pytest.mark.parametrize(
    ("settings", "drawn"),
    [({}, [0, 0, 0, 10, 256]), ({"audit": 50}, [0, 3, 7, 50, 50]), ({"rest": "audited"}, [0, 3, 7, 10, 256])],
    ids=["an eighth", "so many", "all of fewer than eight"],
)
def test_the_number_of_draws(settings: dict[str, object], drawn: list[int]) -> None:
    """An eighth, at most 256, unless the config names a number; never more than there are; all of a few."""
    config = make_config(model="arith-tiny", **settings)
    assert [audit_tests(config, pruned) for pruned in (0, 3, 7, 80, 100_000)] == drawn


def test_the_sentence_states_counts_bound_and_confidence() -> None:
    """Each number of the audit is in it, and the recall that it guarantees; only an exact, complete one is certain."""
    drawn = "Of the 1,000 units whose full strength the search left unknown, 100 were drawn at random and tested alone"
    assert audit_sentence(NEGATIVE, AUDIT) == (
        f"{drawn}: none reaches τ. So none at τ, at most 28 missed (95 % confidence)"
    )
    assert len(POSITIVE.tau_agonists) == 3
    assert audit_sentence(POSITIVE, replace(AUDIT, exact=False)) == (
        f"{drawn}, until a part of the examples ruled them out: none reaches τ. So 3 at τ, at most 28 missed: "
        "at least 9 % of all such units found (95 % confidence)"
    )
    whole = replace(AUDIT, untested=0, missed_at_most=0)
    assert audit_sentence(POSITIVE, whole).endswith("So 3 at τ, none missed: every unit was tested alone")
    assert audit_sentence(POSITIVE, replace(whole, exact=False)).endswith("none missed (95 % confidence)")


@pytest.mark.parametrize(
    ("found", "n", "said"),
    [
        (13, 13, "13/13 (at least 79 %)"),
        (3, 4, "3/4 (75 %, at least 24 %)"),
        (0, 3, "0/3 (0 %, at least 0 %)"),
        (0, 0, "0/0"),
    ],
)
def test_a_recall_stands_with_its_exact_lower_bound(found: int, n: int, said: str) -> None:
    """One-sided at 95 %, rounded down: .05 ** (1 / 13) is .794."""
    assert recall_words(Share(count=found, n=n)) == said


def test_a_guarantee_is_rounded_down() -> None:
    """17 found and at most 216 missed guarantee 7.296 %; 199 of 200 are not 100 %."""
    audit = replace(AUDIT, missed_at_most=216)
    assert (
        guaranteed_words(audit, 17)
        == "17 at τ, at most 216 missed: at least 7 % of all such units found (95 % confidence)"
    )
    assert "at least 99 %" in guaranteed_words(replace(AUDIT, missed_at_most=1), 199)
    assert "at least 0.4 %" in guaranteed_words(replace(AUDIT, missed_at_most=996), 4)


def test_advice_follows_what_the_audit_met() -> None:
    """Only a search whose audit met agonists is advised to look closer."""
    met = replace(AUDIT, found=(agonist("m3.5", 20, 2),))
    assert "smaller groups" in suggestions(FINDINGS, replace(NEGATIVE, audit=met))[0]
    assert "audit" not in suggestions(FINDINGS, replace(NEGATIVE, audit=AUDIT))[0]


@pytest.mark.parametrize("regime", list(Regime))
def test_parity_is_algorithm_1_whatever_else_is_set(finished_run: Path, regime: Regime) -> None:
    """Whole layers first, fixed tests, no limit on cost; the default starts from small groups."""
    with opened(finished_run, read_only=True) as run:
        config = run.config
    own = {"model": config.model, "records": config.records, "slice_size": config.slice_size}
    sizes = {"n_associated": 40, "n_unrelated": 30}
    printed = search_settings(make_config(**own, parity=True, largest=2), regime, **sizes)
    assert printed == replace(ALGORITHM_1, **sizes)
    assert (printed.largest, printed.testing, printed.overhead) == (None, confidence.Testing.FIXED, None)
    assert search_settings(config, regime, **sizes).largest == LARGEST[regime]
    assert search_settings(config.model_copy(update={"largest": 2}), regime, **sizes).largest == 2


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
