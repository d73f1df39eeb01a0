"""Claims of when a unit flips, in the ledger: registered before a held-out flip is read, then decided once.

What was decided of a unit, direction and condition by a test stands, whatever threshold it had: a second decision on
the same records would spend an error that no family counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from jaxtyping import Bool

from mecharule_ops.findings.rival_verdicts import Shares, TableVerdict, table_verdicts
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.tabulating import count_look
from mecharule_ops.store.ledger import Claim, Hypothesis, Ledger, Prediction, TestOutcome
from mecharule_ops.types import Neuron, Regime


def claims_of(run: Run, neuron: Neuron, regime: Regime) -> list[tuple[Claim, Hypothesis]]:
    """The claims of when a unit flips with their entries, decided or not, in the order of registration."""
    return [
        (claim, entry)
        for entry in Ledger(run.store).entries()
        if isinstance(claim := entry.prediction, Claim)
        and (claim.unit, claim.regime) == (str(neuron), regime)
    ]


def entered(ledger: Ledger, prediction: Claim | Prediction, statement: str = "") -> Hypothesis:
    """Its entry: what was decided before whatever its threshold, else registered now, told by a statement."""
    return ledger.settled(prediction) or ledger.register(prediction, statement)


def claims_decided(
    run: Run,
    ledger: Ledger,
    claims: Sequence[Claim],
    holds: Bool[np.ndarray, "claim record"],
    flips: Bool[np.ndarray, " record"],
    regime: Regime,
    shares: Shares,
    by: str,
) -> list[Hypothesis]:
    """The decided entry of each claim of one unit, all entered before, on the same held-out records."""

    def entry(claim: Claim) -> Hypothesis:
        return ledger.settled(claim) or ledger.entry(claim.id)

    found = table_verdicts(holds, flips, [entry(claim).prediction.threshold for claim in claims], shares)
    for claim in claims:
        count_look(run, claim.unit, regime, claim.rule, by)
    decided = []
    for claim, verdict in zip(claims, found, strict=True):
        # What was decided before stands and the outcome is not taken.
        if (known := entry(claim)).outcome is None:
            known = ledger.decide(known.id, partial(_outcome, verdict, flips))
        decided.append(known)
    return decided


def _outcome(verdict: TableVerdict, flips: Bool[np.ndarray, " record"], prediction: object) -> TestOutcome:
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
