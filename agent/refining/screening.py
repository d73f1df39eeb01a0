"""The cheapest test that could refute a hypothesis: the unit's stored flips on train records, no ablation.

A hypothesis says where a unit flips. An MCC on the train records whose interval ends below what a good rule needs
refutes it, at no cost and without a look at the held-out records, which decide only once.
"""

from __future__ import annotations

from agent.refining.refinement_state import RefinementRuntime, UnitCase
from agent.refining.sense import checked
from mecharule_ops.predicates.language import evaluate, parse_predicate, schema_of
from mecharule_ops.rules.interval import MccInterval, mcc_interval
from mecharule_ops.store.ledger import Hypothesis, HypothesisState, Prediction, TestOutcome

TEST = (
    "upper end of the 95 % interval of the condition's MCC against the unit's flips on the train records of D_b, "
    "from stored flips, no ablation"
)


def screened(case: UnitCase, statement: str, condition: str, context: RefinementRuntime) -> Hypothesis:
    """The registered hypothesis after its test on train records.

    Raises `PredicateRefused` for what is no predicate, is not what its statement says, or is known.
    """
    predicate = parse_predicate(condition, schema_of(case.columns))
    checked(case, statement, predicate)
    prediction = Prediction(
        subject=case.unit,
        statement=statement.strip() or f"{case.unit} flips where {predicate.text}",
        condition=predicate.text,
        test=TEST,
        threshold=context.threshold,
    )
    entry = context.ledger.register(prediction)
    if entry.outcome is not None:
        return entry
    return context.ledger.decide(entry.id, lambda registered: _train_test(case, prediction))


def train_interval(case: UnitCase, condition: str) -> MccInterval | None:
    """The MCC of a predicate against the train flips; None with too few flips to say."""
    fires = evaluate(parse_predicate(condition, schema_of(case.columns)), case.columns)
    return mcc_interval(fires[case.train], case.flips[case.train])


def _train_test(case: UnitCase, registered: Prediction) -> TestOutcome:
    interval = train_interval(case, registered.condition)
    flips = case.flips[case.train]
    high = 1.0 if interval is None else interval.high
    return TestOutcome(value=high, n=len(flips), positives=int(flips.sum()))


def told(case: UnitCase, entry: Hypothesis) -> str:
    """What the test gave, and what becomes of the hypothesis."""
    interval = train_interval(case, entry.prediction.condition)
    n = int(case.train.sum())
    if interval is None or entry.state == HypothesisState.UNDERPOWERED:
        return (
            f"tested on {n:,} stored train records: too few flips to refute anything; dropped [h:{entry.id}]"
        )
    verdict = "kept" if entry.state == HypothesisState.SUPPORTED else "dropped"
    return f"tested on {n:,} stored train records, no ablation: MCC {interval}; {verdict} [h:{entry.id}]"
