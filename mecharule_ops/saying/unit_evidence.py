"""The figures of one unit, a question a function: counts, bounds, chance, the split, its rules, baselines."""

from __future__ import annotations

from collections.abc import Iterator

from mecharule_ops.findings.records import Findings, SearchOutcome, Unit
from mecharule_ops.numbers import k_of_n
from mecharule_ops.saying.control_facts import (
    effect_words,
    random_words,
    split_words,
    standing_words,
)
from mecharule_ops.saying.flips import both_slices
from mecharule_ops.saying.rules import briefly, clipped, short
from mecharule_ops.saying.shown_units import evidence_words
from mecharule_ops.saying.unit_rules import ANCHORED, rules_of, shown_words
from mecharule_ops.types import FlipCount, FlipEstimate, Neuron


def alone(search: SearchOutcome, neuron: Neuron) -> FlipEstimate | None:
    """A unit's counts when it was tested alone by the exhaustive run; None where it was not."""
    tested = search.exhaustive.units if search.exhaustive else ()
    return next((one.estimate for one in tested if one.neuron == neuron), None)


def strength(findings: Findings, search: SearchOutcome, neuron: Neuron, unit: Unit | None) -> Iterator[str]:
    """Its flips on both slices, in all, and its strength between its bounds."""
    estimate = unit.estimate if unit else alone(search, neuron)
    if estimate is None:
        found = next((one for one in search.predicted if one.neuron == neuron), None)
        counted = (
            "no counts of its own are kept"
            if found is None
            else f"tested alone its strength was {found.measured:.2f}"
        )
        yield (
            f"{neuron} was not localized: {counted}; `mecharule why-not {findings.run} {neuron}` says how it was ruled "
            "out"
        )
        return
    whole = FlipCount(
        flips=estimate.associated.flips + estimate.unrelated.flips,
        n=estimate.associated.n + estimate.unrelated.n,
    )
    yield f"Ablating {neuron} alone flips {k_of_n(whole)} of the records of both slices: {both_slices(estimate)}"
    reaches = "reaches" if estimate.reaches(findings.tau) else "is below"
    if unit is None:
        yield f"Its strength {estimate.strength:.2f} {reaches} τ = {findings.tau:g}, and it was ruled out"
        return
    told = "also" if unit.lower >= findings.tau else "not"
    yield (
        f"Its strength {estimate.strength:.2f} {reaches} τ = {findings.tau:g}; its interval is [{unit.lower:.2f}, "
        f"{unit.agonist.ucb:.2f}]: the lower bound, over all {search.cost.candidates:,} units, is {told} at τ "
        "or above, the upper one is the search's"
    )
    if unit.account is not None:
        every = FlipCount(flips=unit.account.flips, n=unit.account.records)
        yield (
            "Of every record observed in this direction, those of the slices and further ones drawn for its account "
            f"with them, it flips {k_of_n(every)}"
        )


def chance(findings: Findings, search: SearchOutcome, neuron: Neuron, unit: Unit | None) -> Iterator[str]:
    """Whether it is shown, its rank among random units on held-out records, and what its lower bound says."""
    if unit is None:
        yield f"{neuron} was not localized, so no control was run beside it"
        return
    yield evidence_words(findings, unit)
    if unit.controls is not None and unit.controls.basis is not None:
        yield f"{neuron} {effect_words(unit.controls)}"
        yield from held_out(findings, search, neuron, unit)
    yield from strength(findings, search, neuron, unit)


def held_out(findings: Findings, search: SearchOutcome, neuron: Neuron, unit: Unit | None) -> Iterator[str]:
    """Its flips on records that chose nothing, beside those of other units."""
    controls = None if unit is None else unit.controls
    if controls is None or controls.flips is None:
        account = None if unit is None else unit.account
        score = None if account is None else account.first_order
        if (
            account is not None
            and account.becomes_right is None
            and score is not None
            and score.happened is not None
        ):
            flips = FlipCount(flips=score.happened, n=score.records)
            yield f"{neuron} flips {k_of_n(flips)} of the held-out records of its account, which chose nothing"
        else:
            yield f"{neuron} was not ablated on held-out records in this run"
        yield "No control was run beside it, so no other unit's flips of such records are known"
        return
    yield f"{neuron}: {random_words(controls)}"
    if standing := standing_words(controls):
        yield f"{standing[:1].upper()}{standing[1:]}"


def selective(findings: Findings, search: SearchOutcome, neuron: Neuron, unit: Unit | None) -> Iterator[str]:
    """Whether its flips follow the splitter, on held-out records."""
    controls = None if unit is None else unit.controls
    if unit is None or controls is None:
        yield f"Whether {neuron} is selective was not tested in this run: no control was run beside it"
    else:
        verdict = {"undecided": f"These records cannot tell whether {neuron} is selective"}
        split = "" if controls.split is None else f": {split_words(controls)}"
        yield verdict.get(controls.selective.value, f"{neuron} is {controls.selective.value}") + split
    if unit is not None:
        yield (
            f"On the slices it flips {both_slices(unit.estimate)}, a selectivity of "
            f"{unit.estimate.signed_selectivity:+.2f} (ε = {findings.epsilon:g})"
        )


def rules(findings: Findings, search: SearchOutcome, neuron: Neuron, unit: Unit | None) -> Iterator[str]:
    """Each rule that was learned for it, the shown ones first, with score and p; then what such a score means."""
    learned = [] if unit is None else [rule for rule in rules_of(unit) if rule.learned]
    shown = [rule for rule in learned if rule.shown]
    if not shown:
        yield f"{neuron} has no rule that is shown"
    for rule in [*shown, *(rule for rule in learned if not rule.shown)]:
        kind = "rule over the output (anchored)" if rule.family == ANCHORED else f"{rule.family} rule"
        held = rule.held_out
        score = (
            "no held-out score"
            if held is None
            else f"held-out MCC {held.mcc:.2f} [{held.low:.2f}, {held.high:.2f}] (n {held.n}, {held.positives} flips)"
        )
        trees = "" if rule.trees is None else f"; free-form trees reach {rule.trees.mcc:.2f}"
        text = clipped(briefly(rule.learned, rule.words), findings.run)
        yield f"{kind}: {score}{trees}; shown: {shown_words(rule)}; it holds where {text}"
    if any(rule.held_out for rule in learned):
        floor = short(findings.mcc_floor)
        yield f"Of an MCC 1 is perfect and 0 no better than chance; the paper asks {floor} of a rule of high quality"


def replacement(
    findings: Findings, search: SearchOutcome, neuron: Neuron, unit: Unit | None
) -> Iterator[str]:
    """Its flips under a second baseline, and whether its replaced values are out of range."""
    controls = None if unit is None else unit.controls
    if controls is None:
        yield f"No second baseline was tried for {neuron} in this run"
        return
    if controls.second is not None and controls.second_baseline is not None:
        holds = "still reaches" if controls.second.reaches(findings.tau) else "stays below"
        yield (
            f"With baseline {controls.second_baseline.value} {neuron} {holds} τ = {findings.tau:g}: it flips "
            f"{both_slices(controls.second)}"
        )
    if controls.out_of_range is not None:
        yield f"{k_of_n(controls.out_of_range)} of its replaced values are out of the range that it takes in the data"
