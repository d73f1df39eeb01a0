"""The audit in a run: what it draws, what it may say, and that brute force agrees with its bound."""

import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bundled_run import QUICK, finish, new_run, opened
from findings_fixture import FINDINGS, NEGATIVE, POSITIVE, agonist

from mecharule_ops import confidence
from mecharule_ops.cha.audit import AuditResult, StratumResult
from mecharule_ops.cha.prediction import LayerPrediction
from mecharule_ops.cha.settings import ALGORITHM_1
from mecharule_ops.config import make_config
from mecharule_ops.facts.found import suggestions
from mecharule_ops.facts.searches import audit_sentence, guaranteed_words, recall_words
from mecharule_ops.findings import counts, records
from mecharule_ops.pages.content import report_text
from mecharule_ops.run.journal import Journal
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.localise import Localised, audit_search, localise
from mecharule_ops.run.planning import LARGEST, SearchKind, SearchPlan, audit_tests, search_settings
from mecharule_ops.types import Agonist, Basis, Candidates, Neuron, Regime, SearchStatus, Share

AUDIT = counts.SearchAudit.of(
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


def repeated(finished_run: Path, folder: Path, **settings: object) -> records.SearchOutcome:
    """The search of a copy of the finished run, made again under other settings; its outcomes are stored."""
    later = dict.fromkeys(("controls_for", "anchor_for", "accounts_for", "chains_for"), 0)
    with opened(Path(shutil.copy(finished_run, folder))) as run:
        run.config = run.config.model_copy(update={**later, **settings})
        return finish(run)[0].searches[0]


@pytest.fixture(scope="module")
def truth(run: Run) -> tuple[counts.UnitStrength, ...]:
    """Every unit of the finished run, tested alone."""
    return run.findings.searches[0].exhaustive


def strong(units: Iterable[counts.UnitStrength | Agonist]) -> set[Neuron]:
    return {unit.neuron for unit in units if unit.estimate.reaches(0.2)}


@pytest.mark.parametrize("settings", [{"audit": 30, "largest": 64}, {"largest": 256}], ids=str)
def test_a_search_without_brute_force_is_audited_and_the_bound_holds(
    finished_run: Path, truth: tuple[counts.UnitStrength, ...], tmp_path: Path, settings: dict[str, int]
) -> None:
    """What brute force alone knows is no more than the bound says; unless told how many to draw, the audit of 256 units
    goes on to all, finds what a search hid in one group, and leaves nothing unknown."""
    searched = repeated(finished_run, tmp_path, exhaustive_up_to=0, **settings)
    audit = searched.audit
    assert audit is not None
    assert searched.exhaustive == ()
    assert len(strong(truth) - strong(searched.agonists)) <= audit.missed_at_most
    said = audit_sentence(searched, audit)
    assert said in " ".join(report_text(replace(FINDINGS, searches=(searched,))).split())
    assert ("drawn at random" in said) is ("audit" in settings)
    if "audit" not in settings:
        assert f"tested alone, for at most {searched.cost.slice_examples * audit.unknown:,} more" in said
        assert (audit.untested, audit.missed_at_most) == (0, 0)
        assert strong(searched.agonists) == strong(truth)
    else:
        assert 0 < audit.tested < audit.untested


def test_a_unit_that_the_audit_meets_reopens_its_group(tmp_path: Path) -> None:
    """Of two units that cancel, Algorithm 1 prunes both with others; five draws of eighteen meet one of them."""
    settings = {
        **{"model": "known/cancelling", "task": "program", "bases": ("mlp_hidden",), "regimes": (1,)},
        **{"parity": True, "audit": 5, "controls": 1, "chains_for": 0, "accounts_for": 0, "anchor_for": 0},
    }
    with new_run(tmp_path / "a.mecharule", settings) as run:
        (searched,) = finish(run)[0].searches
    assert searched.audit is not None
    assert len(searched.audit.found) == len(searched.tau_agonists) == 2
    assert (searched.audit.found_reopened, searched.audit.untested) == (1, 6)
    assert audit_sentence(searched, searched.audit) == (
        "Of the 15 units whose full strength the search left unknown, 5 were drawn at random and tested alone: 1 "
        "reaches τ, so the 4 units pruned together with it were tested alone too, of which 1 reaches τ. So 2 at τ; "
        "at most 6 missed (95 % confidence)"
    )


@pytest.mark.parametrize(
    "settings", [{"audit": 0, "exhaustive_up_to": 0}, {"exhaustive_up_to": 300}], ids=str
)
def test_no_audit_where_none_is_wanted_or_everything_is_known(
    finished_run: Path, tmp_path: Path, settings: dict[str, object]
) -> None:
    """0 switches it off; brute force leaves it nothing to ask."""
    assert repeated(finished_run, tmp_path, **settings).audit is None


@pytest.mark.parametrize("budget", [30, 60])
def test_a_budget_bounds_search_and_audit_together(tmp_path: Path, budget: int) -> None:
    """That it cut the audit or left a direction out makes the run partial. One whole layer is ablated beside it."""
    settings = {**QUICK, "bases": ("mlp_out",), "regimes": (1, 0), "exhaustive_up_to": 0, "budget": budget}
    with new_run(tmp_path / "a.mecharule", settings | {"controls_for": 0, "anchor_for": 0}) as run:
        found = finish(run)[0]
        assert run.cost.group_evaluations <= budget + 1
    audit, skipped = (
        found.searches[0].audit,
        ("mlp_out 0→1: not searched, the budget is spent",)[budget // 60 :],
    )
    early = SearchStatus.BUDGET_SPENT, *[SearchStatus.AUDIT_CUT] * (not skipped)
    assert found.cut_short == "; ".join([*early, *skipped])
    assert (audit is None) is bool(skipped)
    assert audit is None or audit.tested < audit.untested
    for _ in range(600 // budget):
        with opened(tmp_path / "a.mecharule") as run:
            found = finish(run)[0]
    assert (found.cut_short, *(one.audit.untested for one in found.searches if one.audit)) == ("", 0, 0)


def test_the_number_of_draws() -> None:
    """All of a basis of up to 300 units; an eighth of a larger one, at most 128, unless the config names a number."""

    def drawn(units: int = 301, **settings: object) -> list[int]:
        config = make_config(model="arith-tiny", **settings)
        return [audit_tests(config, units, pruned) for pruned in (0, 3, 7, 80, 100_000)]

    assert drawn() == [0, 0, 0, 10, 128]
    assert drawn(300) == [0, 3, 7, 80, 100_000]
    assert drawn(300, audit=50) == [0, 3, 7, 50, 50]
    assert drawn(audit=50) == [0, 3, 7, 50, 50]
    assert drawn(rest="audited") == [0, 3, 7, 10, 128]


def test_the_sentence_states_counts_bound_and_confidence() -> None:
    """Each number of the audit is in it, and what it excludes; an exact, complete one is a count with its cost."""
    drawn = "Of the 1,000 units whose full strength the search left unknown, 100 were drawn at random and tested alone"
    assert audit_sentence(NEGATIVE, AUDIT) == (
        f"{drawn}: none reaches τ. So none at τ; among the rest τ-agonists are rarer than 1 in 32 (95 % confidence)"
    )
    assert len(POSITIVE.tau_agonists) == 3
    assert audit_sentence(POSITIVE, replace(AUDIT, exact=False)) == (
        f"{drawn}, until a part of the examples ruled them out: none reaches τ. So 3 at τ; among the rest "
        "τ-agonists are rarer than 1 in 32 (95 % confidence)"
    )
    whole = replace(AUDIT, untested=0, missed_at_most=0)
    assert audit_sentence(POSITIVE, replace(whole, found=POSITIVE.tau_agonists[:1])).endswith(
        "So 3 at τ, 2 of them by the search: every unit was tested alone, by the search or after it"
    )
    assert audit_sentence(POSITIVE, replace(whole, exact=False)).endswith("none missed (95 % confidence)")


def test_a_recall_stands_with_its_exact_lower_bound_and_an_audit_with_what_it_excludes() -> None:
    """One-sided at 95 %, rounded down: .05 ** (1 / 13) is .794; 216 of 900 are fewer than 1 in 4, 500 may be more."""
    said = {(13, 13): "13/13 (at least 79 %)", (3, 4): "3/4 (75 %, at least 24 %)", (0, 0): "0/0"}
    assert {key: recall_words(Share(count=key[0], n=key[1])) for key in said} == said
    found = "17 at τ; among the rest τ-agonists are rarer than 1 in 4 (95 % confidence)"
    assert guaranteed_words(replace(AUDIT, missed_at_most=216), 17) == found
    assert (
        guaranteed_words(replace(AUDIT, missed_at_most=500), 17)
        == "17 at τ; at most 500 missed (95 % confidence)"
    )


def test_advice_follows_what_the_audit_met() -> None:
    """Only a search whose audit met agonists is advised to look closer."""
    met = replace(AUDIT, found=(agonist("m3.5", 20, 2),))
    assert "smaller groups" in next(suggestions(FINDINGS, replace(NEGATIVE, audit=met)))
    assert "audit" not in next(suggestions(FINDINGS, replace(NEGATIVE, audit=AUDIT)))


@pytest.mark.parametrize("regime", list(Regime))
def test_parity_is_algorithm_1_whatever_else_is_set(regime: Regime) -> None:
    """Whole layers first, fixed tests, no limit on cost; the default starts from small groups."""
    sizes = {"n_associated": 40, "n_unrelated": 30}
    config = make_config(model="arith-tiny", parity=True, largest=2)
    printed = search_settings(config, regime, **sizes)
    assert printed == replace(ALGORITHM_1, **sizes)
    assert (printed.largest, printed.testing, printed.overhead) == (None, confidence.Testing.FIXED, None)
    assert search_settings(make_config(model="arith-tiny"), regime, **sizes).largest == LARGEST[regime]
    assert search_settings(config.model_copy(update={"parity": False}), regime, **sizes).largest == 2


REGIME = Regime.BASELINE_POSITIVE


def predictions_from(candidates: Candidates, truth: tuple[counts.UnitStrength, ...]) -> list[LayerPrediction]:
    """Brute force's own rates as predictions."""
    known = {(unit.neuron.layer, unit.neuron.channel): unit.estimate for unit in truth}
    tables = []
    for layer in candidates.layers:
        found = [known[layer.layer, channel] for channel in layer.channels.tolist()]
        tables.append(np.array([(one.associated.flip_rate, one.unrelated.flip_rate) for one in found]))
    return [LayerPrediction(associated=one[:, 0], unrelated=one[:, 1], scores=one.sum(1)) for one in tables]


def searched(run: Run, plan: SearchPlan) -> Localised:
    run.config = run.config.model_copy(update={"exhaustive_up_to": 0})
    candidates, slices = run.candidates(Basis.MLP_OUT, REGIME), run.slices(REGIME)
    journal = Journal(run.store, lambda event: None, lambda: 0.0)
    found = localise(run, journal, candidates, slices, plan)
    audit_search(run, journal, found)
    return found


@pytest.mark.parametrize("rest", ["grouped", "audited"])
@pytest.mark.parametrize("believes", ["the truth", "its reverse"])
def test_a_guided_run_finds_what_brute_force_knows(
    finished_run: Path, truth: tuple[counts.UnitStrength, ...], tmp_path: Path, believes: str, rest: str
) -> None:
    """By true predictions all τ-agonists, from fewer example-forwards than `cha` takes; by their reverse no more
    are missed than the bound says, also where the audit alone has the rest: then it is never asked in groups. The
    audit's strata are those of the predicted rate."""
    with opened(Path(shutil.copy(finished_run, tmp_path))) as run:
        cha = SearchPlan(settings=run.search_settings(REGIME))
        told = predictions_from(run.candidates(Basis.MLP_OUT, REGIME), truth)
        if believes == "its reverse":
            told = [
                replace(each, associated=0.1 - each.associated.clip(0, 0.1), unrelated=each.unrelated * 0)
                for each in told
            ]
        guided = replace(cha, kind=SearchKind.GUIDED, predictions=told, sweeps=rest == "grouped")
        dear, found = searched(run, cha), searched(run, guided)
    met = strong(found.outcome.agonists)
    assert met <= strong(truth)
    audit = found.outcome.audit
    assert audit is not None
    assert len(strong(truth) - met) <= audit.missed_at_most
    assert {part.name for part in audit.strata} <= {
        f"predicted to flip {rate}" for rate in ("nothing", "less", "5% or more")
    }
    if rest == "audited":
        assert all(len(node.channels) == 1 for tree in found.trees for node in tree.nodes)
        assert len({node.channels[0] for tree in found.trees for node in tree.nodes}) < 256
        assert {tree.status for tree in found.trees} == {SearchStatus.LEFT}
    if believes == "the truth":
        assert met == strong(truth)
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
