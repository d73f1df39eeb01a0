"""Verdicts from held-out flips: each prediction registered before, decided once, corrected over the investigation.

The error of an investigation is shared equally by what was asked about, half of each share for the rivals' tables
(Holm over those decided together), half for the comparisons of the best rival on train with each other one
(Bonferroni). A rival that loses such a comparison is `weaker`: it may go with flips, another goes with them more.
`supported` speaks of these rivals, and does not say that there is no better one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agent.investigating.investigation import ALPHA, InvestigationRuntime, Rival, Step
from mecharule_ops.findings.controls import holm
from mecharule_ops.mechanism.pairs import Interaction, pair_flips
from mecharule_ops.rules.rivals import Duel, RivalDifference, difference, duel
from mecharule_ops.run.tabulating import Part, count_look, drawn, fires
from mecharule_ops.store.ledger import Hypothesis, HypothesisState, Prediction, TestOutcome
from mecharule_ops.types import Neuron, Regime

WEAKER = "weaker"
TABLE_TEST = (
    "share of held-out records flipped where the condition holds, less that elsewhere; supported from the threshold "
    "on with Fisher's exact p at most .05, Holm over the rivals of the investigation; refuted where the difference's "
    "interval ends below the threshold"
)
DUEL_TEST = (
    "share of held-out records flipped where only the first of two conditions holds, less that where only the other "
    "does; decided by Fisher's exact test, two-sided, corrected over the investigation"
)
PAIR_TEST = (
    "held-out records that flip only under both, against those that flip under one and not both: sign test"
)


def prediction_of(rival: Rival) -> Prediction:
    """A rival as the ledger keeps it."""
    if "+" in rival["unit"]:
        return Prediction(
            subject=rival["unit"],
            statement=f"{rival['unit']} {rival['condition']}.",
            condition=rival["condition"],
            test=PAIR_TEST,
            threshold=rival["threshold"],
        )
    arrow = Regime(rival["regime"]).arrow
    return Prediction(
        subject=rival["unit"],
        statement=f"{rival['unit']} flips ({arrow}) more often where {rival['words']}.",
        condition=rival["condition"],
        test=TABLE_TEST,
        threshold=rival["threshold"],
    )


def duel_of(first: Rival, other: Rival) -> Prediction:
    """That the flips go with the first where the two part."""
    return Prediction(
        subject=first["unit"],
        statement=f"{first['unit']} flips more where only {first['condition']} than where only {other['condition']}.",
        condition=f"{first['condition']} | {other['condition']}",
        test=DUEL_TEST,
        threshold=0.0,
    )


def registered(context: InvestigationRuntime, step: Step, rivals: Sequence[Rival]) -> None:
    """Every prediction that a step will decide, in the ledger before a flip is read."""
    for rival in rivals:
        context.ledger.register(prediction_of(rival))
    for other in rivals[1:] if step["kind"] in ("table", "duel") else ():
        context.ledger.register(duel_of(rivals[0], other))


def decided(
    context: InvestigationRuntime, step: Step, rivals: Sequence[Rival], family: int, units: int
) -> tuple[list[Rival], int]:
    """(the step's rivals with their verdicts, held-out looks that this took).

    `units` share the error, and in each of them the `family` rivals that were registered.
    """
    if step["kind"] == "together":
        return _pair(context, step, rivals, ALPHA / units), 1
    run, regime = context.run, Regime(step["regime"])
    # Of a comparison, the records where the two part; of a table, the first of the draw.
    places = drawn(run, regime, Part.HELD_OUT, step["n"] if step["kind"] == "table" else None)
    holds = np.array([fires(run, rival["condition"])[places] for rival in rivals])
    if step["kind"] == "duel":
        apart = holds[0] != holds[1]
        places, holds = places[apart], holds[:, apart]
    flips = run.flips([(Neuron.parse(step["units"][0]),)], places, regime)[0]
    share = ALPHA / units / 2
    changed = [rival.copy() for rival in rivals]
    looks = 0
    if step["kind"] == "table":
        looks += _tables(context, changed, holds, flips, share, family)
    # Any two of the family may come to be compared.
    looks += _duels(context, changed, holds, flips, share / max(1, family * (family - 1) // 2))
    return changed, looks


def _tables(
    context: InvestigationRuntime,
    rivals: list[Rival],
    holds: np.ndarray,
    flips: np.ndarray,
    alpha: float,
    family: int,
) -> int:
    told = [difference(row, flips, alpha / family) for row in holds]
    # A rival that lost a comparison before is not tested here and counts as one that tells nothing.
    corrected = holm([*(one.p for one in told), *[1.0] * (family - len(told))])
    for rival, one, p in zip(rivals, told, corrected[: len(told)], strict=True):
        state = one.state(rival["threshold"], p, alpha)
        entry = _entry(context, prediction_of(rival), _outcome(one, flips, state))
        rival["state"], rival["hypothesis"] = entry.state, entry.id
        if entry.outcome is not None and entry.outcome.n != len(flips):
            rival["value"], rival["beside"] = (
                entry.outcome.value,
                f"decided before, on {entry.outcome.n} records",
            )
            continue
        inside, outside = one.where.holds, one.where.elsewhere
        rival["held_out"] = [inside.flips, inside.n, outside.flips, outside.n]
        rival["value"], rival["low"], rival["high"] = one.value, one.low, one.high
        rival["p"], rival["mcc_held_out"] = min(1.0, p * ALPHA / alpha), one.mcc
    return len(rivals)


def _outcome(one: RivalDifference, flips: np.ndarray, state: str) -> TestOutcome:
    return TestOutcome(value=one.value, n=len(flips), positives=int(flips.sum()), state=state)


def _duels(
    context: InvestigationRuntime, rivals: list[Rival], holds: np.ndarray, flips: np.ndarray, level: float
) -> int:
    first, looks = rivals[0], 0
    for place, other in enumerate(rivals[1:], 1):
        one = duel(holds[0], holds[place], flips)
        entry = _entry(context, duel_of(first, other), _duel_outcome(one, level))
        looks += 1
        _compared(first, other, one, entry)
    return looks


def _duel_outcome(one: Duel, level: float) -> TestOutcome:
    flips = one.first.flips + one.other.flips
    return TestOutcome(value=one.value, n=one.n, positives=flips, state=one.state(level))


def _compared(first: Rival, other: Rival, one: Duel, entry: Hypothesis) -> None:
    """What a comparison does to the two verdicts; a weaker one may be true and is not what flips go with most."""
    counts = (
        f"where only {first['id']} holds {one.first.flips} of {one.first.n} flip, "
        f"where only {other['id']} does {one.other.flips} of {one.other.n} [h:{entry.id}]"
    )
    lost = {HypothesisState.SUPPORTED: (other, first), HypothesisState.REFUTED: (first, other)}
    if entry.state in lost:
        loser, winner = lost[HypothesisState(entry.state)]
        loser["beside"] = f"{winner['id']} tells more: {counts}"
        loser["state"] = WEAKER if loser["state"] != HypothesisState.REFUTED else loser["state"]
    elif other["state"] == HypothesisState.SUPPORTED:
        other["beside"] = f"not told apart from {first['id']}: {counts}"


def _pair(context: InvestigationRuntime, step: Step, rivals: Sequence[Rival], alpha: float) -> list[Rival]:
    run, regime = context.run, Regime(step["regime"])
    first, second = map(Neuron.parse, step["units"])
    places = drawn(run, regime, Part.HELD_OUT, step["n"])
    one, two, together = run.flips([(first,), (second,), (first, second)], places, regime)
    found = pair_flips(str(second), one, two, together, alpha, 1)
    verdicts = {Interaction.BACKUP.value: found.extra, Interaction.CANCEL.value: found.lost}
    changed: list[Rival] = []
    for rival in rivals:
        bound = verdicts[rival["condition"]]
        # The sign test says that it happens more than the other; the share of records that could show it, how much.
        if found.interaction.value == rival["condition"] and bound.rate >= rival["threshold"]:
            state = "supported"
        else:
            state = "refuted" if bound.upper < rival["threshold"] else "undecided"
        # Of the records that could show it so many did: a pair whose flips all vanish is no small class.
        outcome = TestOutcome(value=bound.rate, n=bound.n, positives=bound.count, state=state)
        entry = _entry(context, prediction_of(rival), outcome)
        counts = [bound.count, bound.n, found.together, found.n]
        changed.append(
            {
                **rival,
                "state": entry.state,
                "hypothesis": entry.id,
                "held_out": counts,
                "value": bound.rate,
                "low": bound.lower,
                "high": bound.upper,
                "p": found.p_value,
                "beside": "",
            }
        )
    return changed


def _entry(context: InvestigationRuntime, prediction: Prediction, outcome: TestOutcome) -> Hypothesis:
    """The decided entry; what was decided before stands."""
    entry = context.ledger.register(prediction)
    if context.run.store.writable:
        count_look(context.run, prediction.subject, entry.id)
    return entry if entry.outcome is not None else context.ledger.decide(entry.id, lambda asked: outcome)
