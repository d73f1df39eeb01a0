"""Claims that a person makes of when a unit flips: entered in the ledger first, decided once on held-out records."""

from __future__ import annotations

import numpy as np

from mecharule_ops.codec import encode
from mecharule_ops.errors import UsageError
from mecharule_ops.findings.rival_verdicts import Shares
from mecharule_ops.rules.in_words import rule_in_words
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import check_direction, findings_of, opened
from mecharule_ops.run.registered_claims import claims_decided, claims_of, entered
from mecharule_ops.run.tabulating import Part, drawn, fires, forwards_missing, looks_at
from mecharule_ops.saying.claims import counts_words, figures_words
from mecharule_ops.saying.fact import Fact, fact
from mecharule_ops.saying.looks import looks_words
from mecharule_ops.store.ledger import Claim, Hypothesis, Ledger
from mecharule_ops.thresholds import ALPHA
from mecharule_ops.types import Neuron, Regime
from tools._ablations import accepted, price_words
from tools._accounts import Asked
from tools._conditions import condition_of
from tools.arguments import DecideArguments, RegisterArguments
from tools.registry import Tell, ToolResult, stated

BY = "decide"


def register(given: RegisterArguments, tell: Tell) -> ToolResult:
    """The ledger's entry of a claim; what was decided before is read back. Cost: no model call, no flip is read."""
    with opened(given.run, write=True, tell=tell) as run:
        asked = Asked.of(run, given)
        condition = condition_of(run, given.predicate)
        claim = Claim(
            unit=str(asked.neuron),
            regime=asked.regime,
            rule=condition,
            threshold=given.threshold,
            by="register",
        )
        sentence = claim.sentence(rule_in_words(condition, run.task))
        entry = entered(_ledger(run), claim, sentence)
        looked = [
            look["by"]
            for look in looks_at(run, str(asked.neuron), asked.regime)
            if look["condition"] == condition
        ]
        facts = _registered(run, asked, entry, sentence, looked)
    return stated({**asked.data, **_data(entry), "looked_at_before_by": looked}, facts)


def _registered(run: Run, asked: Asked, entry: Hypothesis, sentence: str, looked: list[str]) -> list[Fact]:
    needed = entry.prediction.threshold
    said = [
        f"Claim {entry.id}: {sentence.removesuffix('.')}, by a difference of {needed:.2f} at least",
        *([_verdict(run, entry)] if entry.outcome is not None else []),
    ]
    if entry.outcome is None and looked:
        said.append(
            f"Held-out flips were read for this condition before it was registered ({', '.join(looked)}), so what is "
            "decided on them is no prediction"
        )
    said.append(looks_words(run, str(asked.neuron), asked.regime))
    if entry.outcome is None:
        said.append(f"`mecharule decide {run.id} {entry.id}` decides it, once")
    return asked.facts(said)


def decide(given: DecideArguments, tell: Tell) -> ToolResult:
    """The verdicts of registered claims of one unit and direction, which share an error of .05; or only the price.

    All of that unit that are open share it, also those that are not decided now: choosing one costs what all cost.
    Those that were decided before are read back and count in no family. Cost: the unit's flips on the held-out
    records that have none stored. Raises `UsageError` for what is no registered claim, or claims of several units.
    """
    with opened(given.run) as run:
        findings_of(run)
        entries = [Ledger(run.store).entry(id) for id in given.claims.split(",")]
        unit, regime = _about(run, entries)
        price = price_words(run, forwards_missing(run, (unit,), drawn(run, regime, Part.HELD_OUT)))
        identifier = run.id
    if given.estimate:
        return price.stated(identifier)
    if price.example_forwards:
        accepted(price, given.yes, tell)
    with opened(given.run, write=True, tell=tell) as run:
        settled = [Ledger(run.store).settled(entry.prediction) or entry for entry in entries]
        new = dict.fromkeys(_claim(run, entry) for entry in settled if entry.outcome is None)
        decided = _decided(run, unit, regime, list(new))
        done = [entry if entry.outcome is not None else decided[entry.id] for entry in settled]
        facts = [fact(_verdict(run, entry), f"run:{identifier}", unit=unit) for entry in done]
        facts.append(fact(looks_words(run, str(unit), regime), f"run:{identifier}", unit=unit))
    data = {
        "run": identifier,
        "neuron": str(unit),
        "regime": regime.value,
        "alpha": ALPHA,
        "price": price.data,
    }
    return stated({**data, "claims": [_data(entry) for entry in done]}, facts)


def _decided(run: Run, unit: Neuron, regime: Regime, claims: list[Claim]) -> dict[str, Hypothesis]:
    """By the id of what was claimed; of one claim at two thresholds the first is decided and read back for both."""
    if not claims:
        return {}
    ledger = _ledger(run)
    family = sum(entry.outcome is None for _, entry in claims_of(run, unit, regime))
    places = drawn(run, regime, Part.HELD_OUT)
    flips = run.flips([(unit,)], places, regime)[0]
    holds = np.array([fires(run, claim.rule)[places] for claim in claims])
    shares = Shares(alpha=ALPHA, family=family, compared=0.0)
    entries = claims_decided(run, ledger, claims, holds, flips, regime, shares, BY)
    return {claim.id: entry for claim, entry in zip(claims, entries, strict=True)}


def _about(run: Run, entries: list[Hypothesis]) -> tuple[Neuron, Regime]:
    """The one unit and direction of the claims."""
    found = {(claim.unit, claim.regime) for claim in (_claim(run, entry) for entry in entries)}
    if len(found) > 1:
        raise UsageError("expected claims of one unit and direction, which are decided together; got several")
    ((unit, regime),) = found
    check_direction(run.id, regime, hidden=run.config.suppress_only)
    return Neuron.parse(unit), regime


def _claim(run: Run, entry: Hypothesis) -> Claim:
    """What is claimed. Raises `UsageError` for a prediction of another kind."""
    if not isinstance(entry.prediction, Claim):
        raise UsageError(
            f"expected claims made by `mecharule register`, got {entry.id}; `mecharule show {run.id} --table claims` "
            "lists all"
        )
    return entry.prediction


def _verdict(run: Run, entry: Hypothesis) -> str:
    claim, outcome = _claim(run, entry), entry.outcome
    assert outcome is not None
    assert outcome.value is not None
    counts = counts_words(claim.unit, rule_in_words(claim.rule, run.task), outcome.counts)
    figures = figures_words(
        "difference", outcome.value, outcome.low, outcome.high, claim.threshold, outcome.p
    )
    return f"{counts[:1].upper()}{counts[1:]}: {entry.state}, {figures} [h:{entry.id}]"


def _ledger(run: Run) -> Ledger:
    return Ledger(run.store, lambda event: run.store.append([event]))


def _data(entry: Hypothesis) -> dict[str, object]:
    outcome = None if entry.outcome is None else encode(entry.outcome)
    return {"claim": entry.id, "state": entry.state, **encode(entry.prediction), "outcome": outcome}
