"""The account of a unit as a verb: read, made now, drawn."""

from pathlib import Path

import numpy as np
import pytest
from bundled_run import Ask, opened
from lead_oracles import effects

from mecharule_ops import subsets, types
from mecharule_ops.findings.accounts import Account
from mecharule_ops.run.accounting import prediction_hypothesis
from mecharule_ops.store.ledger import HypothesisState, Ledger


@pytest.fixture
def account(copied_run: Path) -> Account:
    """The one that the run made."""
    with opened(copied_run, read_only=True) as run:
        return run.findings.searches[0].accounts[0]


def test_the_picture_is_of_leads_and_drops_as_measured_anew(copied_run: Path, account: Account) -> None:
    """Each point is the largest excess of its record, and the prediction's MCC counts the points above the diagonal."""
    with opened(copied_run) as run:
        eligible = run.observed.eligible(account.regime)
        held_out = eligible[~run.observed.train[eligible]]
        observed, drawn = run.observed.records, len(account.points.lead)
        places = subsets.some_places(observed, held_out, drawn, of="held out", seed=run.config.seed)
        records = [observed[place] for place in places]
        table = run.replacement(run.intervention(account.neuron.basis))
        found = effects(run.subject, records, table, [account.neuron])
    excess = np.array(account.points.drop) - np.array(account.points.lead)
    assert excess == pytest.approx(found.excess[np.isfinite(found.excess[:, 0]), 0], abs=0.002)
    score = account.first_order
    assert len(account.points.lead) <= score.records
    assert 0 < int((excess > 0).sum()) <= score.predicted + 1


def test_a_unit_without_account_gets_one_that_is_kept(copied_run: Path, ask: Ask, account: Account) -> None:
    """Its price can be asked first; then it is made once and read the second time."""
    with opened(copied_run, read_only=True) as run:
        units = [agonist.neuron for agonist in run.findings.searches[0].agonists]
    other = next(unit for unit in units if unit.layer < account.neuron.layer)
    priced = ask("explain", neuron=str(other), parts="drive,comparison", estimate=True)
    assert priced.text.startswith("price: ")
    made = ask("explain", neuron=str(other), parts="drive,comparison")
    with opened(copied_run, read_only=True) as run:
        kept = run.account(other, types.Regime.BASELINE_POSITIVE)
        ledger = Ledger(run.store).entries()
        tested = run.rule_ps(other, types.Regime.BASELINE_POSITIVE)
    own = [rule.chance for rule in kept.families if rule.chance is not None]
    assert own
    assert {test.rules for test in own} == {len(tested) + len(own)}, "corrected with the rules of the run"
    (registered,) = ledger
    assert registered.prediction == prediction_hypothesis(other, types.Regime.BASELINE_POSITIVE)
    assert registered.state != HypothesisState.OPEN
    found = kept.first_order.held_out
    assert registered.outcome.value == (None if found is None else found.mcc)
    assert registered.outcome.positives == kept.first_order.happened
    assert str(other) in ask("show", table="claims").text
    assert ask("explain", neuron=str(other), parts="drive,comparison").text == made.text


def test_what_is_arithmetic_is_said_and_counted_nowhere(ask: Ask, account: Account) -> None:
    """Of a unit with nothing above it no prediction is registered, and its “when” says why."""
    assert account.nothing_above
    assert "no rows" in ask("show", table="claims").text
    told = ask("explain", neuron=str(account.neuron), parts="drive,comparison").text
    said = "Nothing in the model lies above the unit, so it is arithmetic, against the three likeliest other"
    assert f"\nPredicted. {said}" in told
    assert said in " ".join(ask("show", full=True).text.split())
