"""Verdicts from held-out flips: every claim and comparison registered before one is read, each decided once.

The error of an investigation is shared equally by what was asked about, and within a unit as `Shares` says, over the
rivals that were registered and all comparisons of any two. So a comparison that comes about because of flips read
before was paid for and registered before them. A rival that loses one is `weaker`: it may go with flips, another goes
with them more; what the question itself asks about gets the verdict of its own table all the same. What an earlier
command decided stands, with its own counts and interval, and its error was spent there. `supported` speaks of these
rivals, and does not say that there is no better one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agent.investigating.comparing import RivalComparison, comparison_of, pairs_of
from agent.investigating.investigation import ALPHA, QUESTION, Beside, InvestigationRuntime, Rival, Step
from agent.investigating.priced_tests import by_fit
from mecharule_ops.findings.rival_verdicts import Shares
from mecharule_ops.mechanism.pairs import Interaction, pair_flips
from mecharule_ops.rules.matthews import mcc_of_counts
from mecharule_ops.rules.rivals import Duel, duel
from mecharule_ops.run.registered_claims import claims_decided, concluded, entered
from mecharule_ops.run.tabulating import Part, count_look, drawn, fires
from mecharule_ops.store.ledger import Claim, Hypothesis, HypothesisState, Prediction, TestOutcome
from mecharule_ops.types import Neuron, Regime

WEAKER, BY = "weaker", "investigate"
PAIR_TEST = (
    "held-out records that flip only under both, against those that flip under one and not both: sign test at half of "
    "the error; refuted where the upper bound of the share, at a quarter, lies below the threshold"
)


def claim_of(rival: Rival) -> Claim:
    """What a rival about one unit claims."""
    return Claim(
        unit=rival["unit"],
        regime=Regime(rival["regime"]),
        rule=rival["condition"],
        threshold=rival["threshold"],
        by=rival["by"],
    )


def pair_prediction(rival: Rival) -> Prediction:
    """What a rival about two units together predicts."""
    return Prediction(
        subject=rival["unit"],
        statement=f"{rival['unit']} {rival['condition']} ({Regime(rival['regime']).arrow}).",
        condition=rival["condition"],
        test=PAIR_TEST,
        threshold=rival["threshold"],
    )


def registered(context: InvestigationRuntime, rival: Rival, others: Sequence[Rival]) -> Rival:
    """The rival with its entry; it and its comparison with every other one are in the ledger since.

    Where it was decided before, with the threshold of that time.
    """
    if "+" in rival["unit"]:
        entry = entered(context.ledger, pair_prediction(rival))
    else:
        claim = claim_of(rival)
        entry = entered(context.ledger, claim, claim.sentence(rival["words"]))
        for other in others:
            entered(context.ledger, comparison_of(context.run, rival, other).prediction)
    return {**rival, "hypothesis": entry.id, "threshold": entry.prediction.threshold}


def decided(
    context: InvestigationRuntime, step: Step, rivals: Sequence[Rival], family: int, units: int
) -> list[Rival]:
    """The step's rivals, best on train first, with their verdicts.

    `units` share the error, and in each of them the `family` rivals that were registered.
    """
    if step["kind"] == "together":
        return _pair(context, step, rivals, ALPHA / units)
    run, regime = context.run, Regime(step["regime"])
    # Of a comparison, the records where the two part; of a table, the first of the draw.
    places = drawn(run, regime, Part.HELD_OUT, step["n"] if step["kind"] == "table" else None)
    if step["kind"] == "duel":
        places = places[comparison_of(run, *rivals).apart[places]]
    flips = run.flips([(Neuron.parse(step["units"][0]),)], places, regime)[0]
    shares = Shares(alpha=ALPHA / units, family=family)
    changed: list[Rival] = [{**rival, "beside": [*rival["beside"]]} for rival in rivals]
    if step["kind"] == "table":
        claims = [claim_of(rival) for rival in rivals]
        holds = np.array([fires(run, rival["condition"])[places] for rival in rivals])
        entries = claims_decided(run, context.ledger, claims, holds, flips, regime, shares, BY)
        changed = [
            _with_verdict(rival, entry, len(flips)) for rival, entry in zip(rivals, entries, strict=True)
        ]
    else:
        for rival in rivals:
            count_look(run, rival["unit"], regime, rival["condition"], BY)
    for one, two in pairs_of(changed):
        _compared(context, comparison_of(run, one, two), places, flips, shares.comparison)
    return changed


def _with_verdict(rival: Rival, entry: Hypothesis, n: int) -> Rival:
    """The rival as its entry was decided."""
    known = {**rival, "state": entry.state, "hypothesis": entry.id, "threshold": entry.prediction.threshold}
    outcome = entry.outcome
    assert outcome is not None
    known |= {"value": outcome.value, "low": outcome.low, "high": outcome.high, "p": outcome.p}
    if outcome.n != n:
        said = f"decided before, on {outcome.n} records"
        known["beside"] = [Beside(kind="before", rival="", told_apart=False, said=said)]
    if outcome.counts:
        inside, held, outside, other = outcome.counts
        known["held_out"] = list(outcome.counts)
        hits, fired = np.array([inside]), np.array([held])
        known["mcc_held_out"] = float(mcc_of_counts(hits, fired, inside + outside, held + other)[0])
    return known  # type: ignore[return-value]


def _duel_outcome(one: Duel, level: float) -> TestOutcome:
    return TestOutcome(
        value=one.value,
        n=one.n,
        positives=one.first.flips + one.other.flips,
        state=one.state(level),
        counts=(one.first.flips, one.first.n, one.other.flips, one.other.n),
        p=one.p,
    )


def _compared(
    context: InvestigationRuntime, asked: RivalComparison, places: np.ndarray, flips: np.ndarray, level: float
) -> None:
    """What a comparison does to two verdicts; a weaker one may be true and is not what flips go with most.

    What the question itself asks about keeps the verdict of its own table, and the winner is named beside it. Of rivals
    of which one implies the other neither loses: it is said whether the smaller one tells more within the larger.
    """
    found = duel(asked.sides[0, places], asked.sides[1, places], flips)
    entry = concluded(context.ledger, asked.prediction, _duel_outcome(found, level))
    assert entry.outcome is not None
    one, two = asked.first, asked.other
    flips_there, n, other_flips, other_n = entry.outcome.counts
    if not (n and other_n):
        return
    p, decided_so = entry.outcome.p, entry.state in (HypothesisState.SUPPORTED, HypothesisState.REFUTED)
    if asked.smaller is not None:
        not_apart = (
            "not told apart" if p is None else f"not told apart, p {p:.2g} where {level:.2g} is needed"
        )
        told = {"supported": "it flips more there", "refuted": "it flips less there"}.get(
            entry.state, not_apart
        )
        said = (
            f"of those where {asked.within}, {flips_there} of {n} flip where {asked.inner} and {other_flips} of "
            f"{other_n} where not: {told} [h:{entry.id}]"
        )
        larger = two if asked.smaller is one else one
        found_so = Beside(kind="within", rival=larger["id"], told_apart=decided_so, said=said)
        _add(asked.smaller, found_so, first=one["by"] == two["by"] == QUESTION)
        return
    counts = (
        f"where only {one['id']} holds {flips_there} of {n} flip, "
        f"where only {two['id']} does {other_flips} of {other_n} [h:{entry.id}]"
    )
    lost = {HypothesisState.SUPPORTED: (two, one), HypothesisState.REFUTED: (one, two)}
    if decided_so:
        loser, winner = lost[HypothesisState(entry.state)]
        said = f"{winner['id']} tells more: {counts}"
        _add(loser, Beside(kind="loses", rival=winner["id"], told_apart=True, said=said))
        if loser["by"] != QUESTION and loser["state"] != HypothesisState.REFUTED:
            loser["state"] = WEAKER
        return
    first, second = by_fit([one, two])
    if second["state"] == HypothesisState.SUPPORTED:
        said = f"not told apart from {first['id']}: {counts}{'' if p is None else f', p {p:.2g}'}"
        _add(second, Beside(kind="near", rival=first["id"], told_apart=False, said=said))


def _add(rival: Rival, beside: Beside, *, first: bool = False) -> None:
    """One thing more that was found of it; the same is said once."""
    if beside not in rival["beside"]:
        rival["beside"].insert(0 if first else len(rival["beside"]), beside)


def _pair(context: InvestigationRuntime, step: Step, rivals: Sequence[Rival], alpha: float) -> list[Rival]:
    run, regime = context.run, Regime(step["regime"])
    first, second = map(Neuron.parse, step["units"])
    places = drawn(run, regime, Part.HELD_OUT, step["n"])
    one, two, together = run.flips([(first,), (second,), (first, second)], places, regime)
    # The sign test errs in half of it, the upper bounds of the two shares, one-sided, in a quarter each.
    found = pair_flips(str(second), one, two, together, alpha / 2, 1)
    count_look(run, "+".join(step["units"]), regime, "together", BY)
    bounds = {Interaction.BACKUP.value: found.extra, Interaction.CANCEL.value: found.lost}
    changed: list[Rival] = []
    for rival in rivals:
        bound = bounds[rival["condition"]]
        # The sign test says that it happens more than the other; the share of records that could show it, how much.
        if found.interaction.value == rival["condition"] and bound.rate >= rival["threshold"]:
            state = "supported"
        else:
            state = "refuted" if bound.upper < rival["threshold"] else "undecided"
        # Of the records that could show it so many did: a pair whose flips all vanish is no small class.
        outcome = TestOutcome(
            value=bound.rate,
            n=bound.n,
            positives=bound.count,
            state=state,
            counts=(bound.count, bound.n, found.together, found.n),
            low=bound.lower,
            high=bound.upper,
            p=min(1.0, found.p_value * 2 * ALPHA / alpha),
        )
        entry = concluded(context.ledger, pair_prediction(rival), outcome)
        changed.append({**_with_verdict(rival, entry, bound.n), "mcc_held_out": None})
    return changed
