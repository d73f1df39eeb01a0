"""The hypothesis ledger: registered before its test, never edited, decided once."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mecharule_ops.errors import ClaimNotSupported, UsageError
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.store import keys, run_store
from mecharule_ops.store.ledger import Claim, HypothesisState, Ledger, Prediction, TestOutcome
from mecharule_ops.types import Regime

PREDICTION = Prediction(
    subject="m4.1234",
    statement="It carries.",
    condition="carry(a, b)",
    test="MCC on the held-out records",
    threshold=0.7,
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[run_store.RunStore]:
    with run_store.RunStore.create(tmp_path / "0c1f.mecharule", {"run": "0c1f"}) as made:
        yield made


def _outcome(value: float | None, n: int = 100, positives: int = 30) -> TestOutcome:
    return TestOutcome(value=value, n=n, positives=positives)


def test_a_prediction_is_on_file_before_its_test_runs(store: run_store.RunStore) -> None:
    """The test itself looks into the store and finds the open entry."""
    ledger = Ledger(store)
    entry = ledger.register(PREDICTION)
    seen: list[str] = []

    def test(prediction: Prediction) -> TestOutcome:
        seen.extend(entry.state for entry in Ledger(store).entries() if entry.prediction == prediction)
        return _outcome(0.8)

    assert ledger.decide(entry.id, test).state == HypothesisState.SUPPORTED
    assert seen == [HypothesisState.OPEN]
    assert Ledger(store).entry(entry.id).outcome == _outcome(0.8)


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (_outcome(0.7), HypothesisState.SUPPORTED),
        (_outcome(0.699), HypothesisState.REFUTED),
        (_outcome(-1.0), HypothesisState.REFUTED),
        (_outcome(1.0, n=100, positives=4), HypothesisState.UNDERPOWERED),
        (_outcome(1.0, n=100, positives=96), HypothesisState.UNDERPOWERED),
        (_outcome(1.0, n=10, positives=5), HypothesisState.SUPPORTED),
        (_outcome(0.0, n=0, positives=0), HypothesisState.UNDERPOWERED),
        (_outcome(None, n=336, positives=329), HypothesisState.UNDERPOWERED),
    ],
)
def test_the_threshold_decides_unless_a_side_is_too_small(
    store: run_store.RunStore, outcome: TestOutcome, state: HypothesisState
) -> None:
    """At the threshold it is supported; with fewer than five flips or non-flips nothing is decided."""
    ledger = Ledger(store)
    assert ledger.decide(ledger.register(PREDICTION).id, lambda prediction: outcome).state == state


def test_a_prediction_cannot_be_edited(store: run_store.RunStore) -> None:
    """Another threshold or sentence is another entry; changing the file is found out; deciding is once."""
    ledger = Ledger(store)
    first = ledger.register(PREDICTION)
    assert ledger.register(PREDICTION) == first
    assert ledger.register(replace(PREDICTION, threshold=0.1)).id != first.id
    ledger.decide(first.id, lambda prediction: _outcome(0.5))
    with pytest.raises(UsageError, match="is refuted; register a new prediction"):
        ledger.decide(first.id, lambda prediction: _outcome(0.9))
    assert [entry.state for entry in ledger.entries()] == ["refuted", "open"]
    for field, forged in (("threshold", 0.2), ("condition", "a > b"), ("statement", "Else."), ("test", "t")):
        rows = store.get(keys.HYPOTHESES)
        kept = [dict(row) for row in rows]  # type: ignore[attr-defined]
        kept[0]["prediction"] = {**kept[0]["prediction"], field: forged}
        store.put(keys.HYPOTHESES, kept)
        with pytest.raises(ClaimNotSupported, match="it was changed"):
            ledger.entries()
        store.put(keys.HYPOTHESES, rows)
    assert len(ledger.entries()) == 2


def test_what_is_not_registered_cannot_be_decided(store: run_store.RunStore) -> None:
    """An unknown id is refused; an error inside a test decides nothing."""
    ledger = Ledger(store)
    with pytest.raises(UsageError, match="register it first"):
        ledger.decide("00000000", lambda prediction: _outcome(1.0))
    assert ledger.entries() == ()
    entry = ledger.register(PREDICTION)
    with pytest.raises(ZeroDivisionError):
        ledger.decide(entry.id, lambda prediction: _outcome(1 / 0))
    assert ledger.entry(entry.id).state == HypothesisState.OPEN


def test_a_test_may_decide_by_more_than_its_value(store: run_store.RunStore) -> None:
    """Its own state stands, also `undecided`: an exact test of few records says for itself what they are worth.

    Without a value nothing was tested.
    """
    ledger = Ledger(store)
    states = []
    for value, positives, state in (
        (0.9, 30, "undecided"),
        (0.1, 30, "supported"),
        (0.9, 2, "supported"),
        (None, 30, "supported"),
    ):
        entry = ledger.register(replace(PREDICTION, statement=f"It is {len(states)}."))
        outcome = TestOutcome(value=value, n=100, positives=positives, state=state)
        states.append(ledger.decide(entry.id, lambda registered, outcome=outcome: outcome).state)  # type: ignore[misc]
    assert states == ["undecided", "supported", "supported", "underpowered"]
    assert [entry.state for entry in Ledger(store).entries()] == states


CLAIM = Claim(
    unit="m4.1", regime=Regime.BASELINE_NEGATIVE, rule=Rule.parse("a > b"), threshold=0.2, by="register"
)


def test_a_claim_is_read_back_as_its_fields(store: run_store.RunStore) -> None:
    """Also where its rule holds the words of another direction: nothing of it is read off a sentence."""
    rule = Rule.parse("contains(prompt, 'm4.1 flips (1→0) more often where. ')")
    claim = replace(CLAIM, rule=rule)
    Ledger(store).register(claim, claim.sentence("the prompt says ' flips (1→0) more often where '"))
    Ledger(store).register(PREDICTION)
    kept, other = (entry.prediction for entry in Ledger(store).entries())
    assert kept == claim
    assert other == PREDICTION
    (row, _) = store.get(keys.HYPOTHESES)
    assert row["prediction"] == {  # type: ignore[index]
        "unit": "m4.1",
        "regime": 0,
        "rule": str(rule),
        "threshold": 0.2,
        "by": "register",
    }


def test_two_who_claim_the_same_claim_it_once(store: run_store.RunStore) -> None:
    """In whatever words it was told; once decided it stands whoever claims it again, at whatever threshold."""
    ledger = Ledger(store)
    first = ledger.register(CLAIM, "It flips where a is larger.")
    assert ledger.register(replace(CLAIM, by="offline"), "It flips for a larger a.") == first
    ledger.decide(first.id, lambda claim: _outcome(0.5))
    settled = ledger.settled(replace(CLAIM, by="a model", threshold=0.9))
    assert settled is not None
    assert settled.id == first.id
    for other in ({"regime": Regime.BASELINE_POSITIVE}, {"rule": Rule.parse("a > 1")}, {"unit": "m4.2"}):
        assert ledger.settled(replace(CLAIM, **other)) is None  # type: ignore[arg-type]
    kept = [dict(row) for row in store.get(keys.HYPOTHESES)]  # type: ignore[attr-defined]
    kept[0]["prediction"] = {**kept[0]["prediction"], "by": "another"}
    store.put(keys.HYPOTHESES, kept)
    with pytest.raises(ClaimNotSupported, match="it was changed"):
        ledger.entries()
