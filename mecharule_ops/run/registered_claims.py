"""Claims of when a unit flips, in the ledger: registered before a held-out flip is read, then decided once.

What was decided of a unit, direction and condition by a test stands, whatever threshold it had: a second decision on
the same records would spend an error that no family counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool

from mecharule_ops.findings.rival_verdicts import Shares, TableVerdict, table_verdicts
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.tabulating import count_look
from mecharule_ops.store.ledger import Hypothesis, Ledger, Prediction, TestOutcome
from mecharule_ops.types import Neuron, Regime

TABLE_TEST = (
    "share of held-out records flipped where the condition holds, less that elsewhere; supported from the threshold "
    "on where Fisher's exact p, Holm over the unit's claims decided together, is at most the share of support in "
    "their error; refuted where the difference's interval, whose upper ends err in as much together, ends below the "
    "threshold"
)


def claim_of(unit: str, regime: Regime, condition: str, words: str, threshold: float) -> Prediction:
    """That the unit flips more often where the condition holds."""
    return Prediction(
        subject=unit,
        statement=f"{unit} flips ({regime.arrow}) more often where {words}.",
        condition=condition,
        test=TABLE_TEST,
        threshold=threshold,
    )


def direction_of(prediction: Prediction) -> Regime | None:
    """The direction of a claim's flips; None for a prediction of another kind."""
    made = prediction.test == TABLE_TEST
    return next((one for one in Regime if made and f" flips ({one.arrow}) " in prediction.statement), None)


def words_of(claim: Prediction) -> str:
    """Its condition as it was said."""
    return claim.statement.partition(" more often where ")[2].removesuffix(".")


def claims_of(run: Run, neuron: Neuron, regime: Regime) -> list[Hypothesis]:
    """The claims of when a unit flips, decided or not, in the order in which they were registered."""
    return [
        entry
        for entry in Ledger(run.store).entries()
        if entry.prediction.subject == str(neuron) and direction_of(entry.prediction) is regime
    ]


def entered(ledger: Ledger, prediction: Prediction) -> Hypothesis:
    """Its entry: what was decided before whatever its threshold, else registered now."""
    return ledger.settled(prediction) or ledger.register(prediction)


def concluded(ledger: Ledger, prediction: Prediction, outcome: TestOutcome) -> Hypothesis:
    """The decided entry of what was entered; what was decided before stands and the outcome is not taken."""
    entry = _entry(ledger, prediction)
    return entry if entry.outcome is not None else ledger.decide(entry.id, lambda asked: outcome)


def _entry(ledger: Ledger, prediction: Prediction) -> Hypothesis:
    return ledger.settled(prediction) or ledger.entry(prediction.id)


def claims_decided(
    run: Run,
    ledger: Ledger,
    claims: Sequence[Prediction],
    holds: Bool[np.ndarray, "claim record"],
    flips: Bool[np.ndarray, " record"],
    regime: Regime,
    shares: Shares,
    by: str,
) -> list[Hypothesis]:
    """The decided entry of each claim of one unit, all entered before, on the same held-out records."""
    thresholds = [_entry(ledger, claim).prediction.threshold for claim in claims]
    found = table_verdicts(holds, flips, thresholds, shares)
    for claim in claims:
        count_look(run, claim.subject, regime, claim.condition, by)
    return [
        concluded(ledger, claim, _outcome(verdict, flips))
        for claim, verdict in zip(claims, found, strict=True)
    ]


def _outcome(verdict: TableVerdict, flips: Bool[np.ndarray, " record"]) -> TestOutcome:
    told, inside, outside = verdict.told, verdict.told.where.holds, verdict.told.where.elsewhere
    return TestOutcome(
        value=told.value,
        n=len(flips),
        positives=int(flips.sum()),
        state=verdict.state,
        counts=(inside.flips, inside.n, outside.flips, outside.n),
        low=told.low,
        high=told.high,
        p=verdict.p,
    )
