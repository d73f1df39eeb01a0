"""Claims that a person makes of when a unit flips: entered in the ledger first, decided once on held-out records."""

from __future__ import annotations

import numpy as np

from mecharule_ops.codec import encode
from mecharule_ops.errors import UsageError
from mecharule_ops.facts.claims import MORE_OFTEN, counts_words, figures_words, looks_words
from mecharule_ops.facts.fact import Fact, fact
from mecharule_ops.findings.rival_verdicts import Shares
from mecharule_ops.rules.in_words import rule_in_words
from mecharule_ops.run import tabulating
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import findings_of
from mecharule_ops.run.tabulating import Part, drawn, fires, forwards_missing, looks_at, touches
from mecharule_ops.store.ledger import Claim, Hypothesis, HypothesisState, Ledger
from mecharule_ops.thresholds import ALPHA
from mecharule_ops.types import Neuron, Regime
from tools._asked import Asked, condition_of
from tools.arguments import DecideArguments, RegisterArguments
from tools.result import About, Priced, Tell, of_facts

BY = "decide"


def register(run: Run, given: RegisterArguments, tell: Tell) -> Priced:
    """The ledger's entry of a claim; what was decided before is read back. Cost: no model call, no flip is read."""
    asked = Asked.of(run, given)
    unit, condition = str(asked.neuron), condition_of(run, given.where)
    claim = Claim(unit=unit, regime=asked.regime, rule=condition, threshold=given.threshold, by="register")
    sentence = claim.sentence(rule_in_words(condition, run.task))
    yield 0
    entry = _ledger(run).entered(claim, sentence)
    of = About(f"claim.{entry.id}", f"run:{run.id}", unit)
    value = {"claim": entry.id, "state": entry.state, **encode(entry.prediction)}
    facts = [of.told("registered", "register.entered", value, said=sentence.removesuffix("."))]
    looks = looks_at(run, unit, asked.regime)
    looked = [look["by"] for look in looks if touches(look["condition"], str(condition))]
    if entry.outcome is not None:
        facts.append(_verdict(run, entry))
    elif looked:
        verbs = ", ".join(looked)
        facts.append(of.told("looked_at_before_by", "register.looked", looked, verbs=verbs))
    facts.append(_looks(run, unit, asked.regime))
    if entry.outcome is None:
        facts.append(fact(f"`mecharule decide {run.id} {entry.id}` decides it, once", of.source, unit=unit))
    return of_facts(facts)


def decide(run: Run, given: DecideArguments, tell: Tell) -> Priced:
    """The verdicts of registered claims of one unit and direction, which share an error of .05.

    All of that unit that are registered share it, those of before and those that are not decided now too: choosing one
    costs what all cost, and so does entering one after another. Those that were decided before are read back. Of one
    claim at two thresholds the first is decided and read back for both. Cost: the unit's flips on the held-out records
    that have none stored. Raises `UsageError` for what is no registered claim, or claims of several units.
    """
    findings_of(run)
    entries = [Ledger(run.store).entry(id) for id in given.claims.split(",")]
    unit, regime = _about(run, entries)
    places = drawn(run, regime, Part.HELD_OUT)
    yield forwards_missing(run, (unit,), places)
    settled = [Ledger(run.store).settled(entry.prediction) or entry for entry in entries]
    decided: dict[str, Hypothesis] = {}
    if new := list(dict.fromkeys(_claim(run, entry) for entry in settled if entry.outcome is None)):
        flips = run.flips([(unit,)], places, regime)[0]
        holds = np.array([fires(run, claim.rule)[places] for claim in new])
        shares = Shares(alpha=ALPHA, family=len(tabulating.claims_of(run, unit, regime)))
        entries = tabulating.claims_decided(run, _ledger(run), new, holds, flips, regime, shares, BY)
        decided = {claim.id: entry for claim, entry in zip(new, entries, strict=True)}
    done = {one.id: one for entry in settled for one in [decided.get(entry.id, entry)]}
    return of_facts([*(_verdict(run, one) for one in done.values()), _looks(run, str(unit), regime)])


def _about(run: Run, entries: list[Hypothesis]) -> tuple[Neuron, Regime]:
    """The one unit and direction of the claims."""
    found = {(claim.unit, claim.regime) for claim in (_claim(run, entry) for entry in entries)}
    if len(found) > 1:
        raise UsageError("expected claims of one unit and direction, which are decided together; got several")
    ((unit, regime),) = found
    return Neuron.parse(unit), regime


def _claim(run: Run, entry: Hypothesis) -> Claim:
    """What is claimed. Raises `UsageError` for a prediction of another kind."""
    if not isinstance(entry.prediction, Claim):
        raise UsageError(
            f"expected claims made by `mecharule register`, got {entry.id}; `mecharule show {run.id} --table claims` "
            "lists all"
        )
    return entry.prediction


def _verdict(run: Run, entry: Hypothesis) -> Fact:
    claim, outcome = _claim(run, entry), entry.outcome
    assert outcome is not None
    assert outcome.value is not None
    counts = counts_words(claim.unit, rule_in_words(claim.rule, run.task), outcome.counts)
    figures = figures_words(
        "difference", outcome.value, outcome.low, outcome.high, claim.threshold, outcome.p
    )
    more = outcome.p is not None and outcome.p <= ALPHA and outcome.value > 0
    undecided = more and entry.state == HypothesisState.UNDECIDED
    told = f"{entry.state} ({MORE_OFTEN})" if undecided else entry.state
    said = f"{counts[:1].upper()}{counts[1:]}: {told}, {figures} [h:{entry.id}]"
    value = {"claim": entry.id, "state": entry.state, **encode(claim), "outcome": encode(outcome)}
    return About(f"claim.{entry.id}", f"run:{run.id}", claim.unit)("verdict", said, value)


def _looks(run: Run, unit: str, regime: Regime) -> Fact:
    read = sorted({look["condition"] for look in looks_at(run, unit, regime)})
    said = looks_words(run, unit, regime)
    return fact(said, f"run:{run.id}", unit=unit, key=f"unit.{unit}.held_out_looks", value=read)


def _ledger(run: Run) -> Ledger:
    return Ledger(run.store, lambda event: run.store.append([event]))
