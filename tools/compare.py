"""Two of a kind beside each other: units of a run on the same examples, layers as wholes, runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from mecharule_ops.certificates.certificate import shown_rows
from mecharule_ops.codec import encode
from mecharule_ops.confidence import lower_bound, searched_alpha, upper_bound
from mecharule_ops.errors import ClaimNotSupported, UsageError
from mecharule_ops.facts.fact import Fact, fact
from mecharule_ops.facts.flips import both_slices
from mecharule_ops.findings.measures import jaccard
from mecharule_ops.findings.records import Findings, SearchOutcome
from mecharule_ops.mcnemar import mcnemar_p
from mecharule_ops.numbers import of_n, percent, plural
from mecharule_ops.plain_text import last_line
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import (
    check_unit,
    find_certificate,
    findings_of,
    keep,
    opened,
    outcome_for,
    regime_of,
    short_name,
)
from mecharule_ops.types import FlipEstimate, Neuron, Regime
from tools._counts import flips_fact, flips_of
from tools.arguments import CompareArguments
from tools.result import About, Priced, Tell, of_facts

SHOWN = 10
"""Prompts that both units flip, listed."""
Units = tuple[Neuron, Neuron]


def compare(run: Run, given: CompareArguments, tell: Tell) -> Priced:
    """Which flips more with an exact paired test, or bounds that lie apart, or what two runs share.

    Cost: both slices of each unit that has no certificate; nothing for layers and runs. Raises `ClaimNotSupported` for
    a layer that was never ablated as a whole.
    """
    if (first := _unit(given.first)) is not None:
        units = first, Neuron.parse(given.second or "")
        if first == units[1]:
            raise UsageError(f"expected two units to compare, got {first} twice")
        findings = findings_of(run)
        for unit in units:
            check_unit(run, unit)
        regime = outcome_for(findings, first, regime_of(given.regime)).regime
        outcome_for(findings, units[1], regime)
        missing = [unit for unit in units if find_certificate(run, (unit,), regime) is None]
        yield len(missing) * len(run.slices(regime).positions)
        return of_facts(list(_of_units(run, regime, units)))
    yield 0
    if _layer(given.first) is not None:
        return of_facts(list(_of_layers(findings_of(run), given)))
    if given.second is not None:
        raise UsageError(
            f"expected two units, two layers or another run, got {given.first!r}, {given.second!r}"
        )
    with opened(given.first) as other:
        return of_facts(list(_of_runs(run, other, given.limit)))


def _unit(text: str | None) -> Neuron | None:
    with suppress(UsageError):
        return None if text is None else Neuron.parse(text)
    return None


def _of_units(run: Run, regime: Regime, units: Units) -> Iterator[Fact]:
    """Both certificates, example by example, with McNemar's exact test at α."""
    from mecharule_ops.run.certify import certify

    certificates = [
        find_certificate(run, (unit,), regime) or keep(run, certify(run, (unit,), regime)) for unit in units
    ]
    (left, right), n = flips_of(*certificates)
    both, first, second = len(left & right), len(left - right), len(right - left)
    p, alpha = mcnemar_p(first, second), run.findings.alpha
    of, proofs = (
        About(f"pair.{units[0]}.{units[1]}", f"run:{run.id}"),
        [f"c:{one.id}" for one in certificates],
    )
    more, fewer = units if first > second else units[::-1]
    said = f"These examples do not tell which of {units[0]} and {units[1]} flips more"
    said = f"{more} flips more of them than {fewer}" if p <= alpha else said
    said = f"{said} (exact paired test p = {p:.3g}, α = {alpha:g})"
    yield of("stronger", said, str(more) if p <= alpha else None, *proofs, of.source)
    said = (
        f"Of {n} examples that both were tested on, both flip {both}, {units[0]} alone flips {first} and {units[1]} "
        f"alone {second}"
    )
    counts = {"n": n, "both": both, "first_only": first, "second_only": second}
    yield of("paired", said, {**counts, "p": p, "alpha": alpha}, *proofs, of.source)
    for unit, one in zip(units, certificates, strict=True):
        yield flips_fact(one, f"unit.{unit}")
        if run.findings.unit(unit, regime) is None:
            said = f"The search did not find {unit} ({regime.arrow}): its counts are of this ablation alone"
            yield About(f"unit.{unit}", of.source, unit)("found", said, False)
    rows = shown_rows(certificates[0], False)  # None of a task that conceals its prompts.
    prompts = list(dict.fromkeys(last_line(row.prompt) for row in rows if row.example in left & right))
    if prompts := prompts[:SHOWN]:
        yield of("flipped_by_both", f"Flipped by both: {' · '.join(prompts)}", prompts, proofs[0])


def _layer(text: str | None) -> int | None:
    """The number in `layer 3`; None of anything else."""
    word, _, number = (text or "").partition(" ")
    return int(number) if word == "layer" and number.isdecimal() else None


def _of_layers(findings: Findings, given: CompareArguments) -> Iterator[Fact]:
    """A layer as a whole beside another, beside a unit of it, or beside its strongest shown unit."""
    number, other, unit = _layer(given.first), _layer(given.second), _unit(given.second)
    assert number is not None
    if given.second is not None and other is None and (unit is None or unit.layer != number):
        raise UsageError(f"expected another layer or a unit of layer {number}, got {given.second!r}")
    outcome, source = _outcome(findings, given, unit), f"run:{findings.run}"
    sides: list[tuple[str, FlipEstimate]] = []
    for layer in [number] if other is None else [number, other]:
        whole = _whole(findings, outcome, layer)
        sides.append((f"layer {layer}", whole))
        said = (
            f"Layer {layer} as a whole, all its searched units ablated together ({short_name(outcome)}), flips "
            f"{both_slices(whole)}"
        )
        value = {**encode(whole), "strength": whole.strength}
        yield fact(said, source, key=f"layer.{layer}.whole", value=value)
    if other is None:
        best = _alone(findings, outcome, number, unit)
        if best is None:
            missing = f"{unit} was not tested alone" if unit else f"No unit of layer {number} is shown"
            said = f"{missing}, so nothing is compared with it"
            yield fact(said, source, key=f"layer.{number}.compared")
            return
        neuron, estimate = best
        sides.append((str(neuron), estimate))
        said = f"{neuron} alone" if unit else f"Its strongest unit, {neuron}, alone"
        said = f"{said} flips {both_slices(estimate, findings.tau, outcome.bounded)}"
        value = {**encode(estimate), "strength": estimate.strength}
        yield About(f"unit.{neuron}", source, neuron)("flips", said, value)
    yield _apart(findings, outcome, sides)


def _apart(findings: Findings, outcome: SearchOutcome, sides: list[tuple[str, FlipEstimate]]) -> Fact:
    """Which is stronger, and whether one-sided bounds of the stronger slice, over all units searched, lie apart."""
    (first, left), (second, right) = sides
    level = searched_alpha(findings.alpha, outcome.cost.candidates) / 2
    low, high = (
        [bound(part.flips, part.n, level) for part in (left.stronger[1], right.stronger[1])]
        for bound in (lower_bound, upper_bound)
    )
    word = "stronger than" if left.strength > right.strength else "weaker than"
    word = "exactly as strong as" if left.strength == right.strength else word
    apart = low[0] > high[1] or low[1] > high[0]
    judged = "their bounds lie apart" if apart else "their bounds overlap, so these examples do not settle it"
    shown = " against ".join(f"[{a:.2f}, {b:.2f}]" for a, b in zip(low, high, strict=True))
    said = (
        f"The whole of {first} is {word} {second} on these examples: strength, for this comparison bounded from below "
        f"and above over all units searched, in {shown}; {judged}"
    )
    key = f"pair.{first.replace(' ', '.')}.{second.replace(' ', '.')}.strength"
    return fact(said, f"run:{findings.run}", key=key, value={"apart": apart, "lower": low, "upper": high})


def _whole(findings: Findings, outcome: SearchOutcome, number: int) -> FlipEstimate:
    """What a layer flips as a whole. Raises `ClaimNotSupported` where it was never ablated so."""
    found = {one.layer: one.estimate for one in outcome.whole_layers}
    if number not in found:
        raise ClaimNotSupported(
            f"layer {number} was not ablated as a whole in run {findings.run} ({short_name(outcome)}); "
            f"those that were: {', '.join(map(str, found)) or 'none'}"
        )
    return found[number]


def _outcome(findings: Findings, given: CompareArguments, unit: Neuron | None) -> SearchOutcome:
    """The search of the basis and direction asked for, else the first. Raises `UsageError`."""
    basis, regime = given.basis or (unit and unit.basis.value), regime_of(given.regime)
    for search in findings.searches:
        if basis in (None, search.intervention.basis.value) and regime in (None, search.regime):
            return search
    searched = ", ".join(map(short_name, findings.searches)) or "none"
    raise UsageError(f"expected a search of run {findings.run} ({searched}), got basis {basis}")


def _alone(
    findings: Findings, outcome: SearchOutcome, number: int, unit: Neuron | None
) -> tuple[Neuron, FlipEstimate] | None:
    """The strongest shown unit of the layer, or the named one where it was tested alone; None without."""
    shown = [one for one in findings.shown_of(outcome) if one.neuron.layer == number]
    others = outcome.exhaustive.units if outcome.exhaustive else ()
    tested: list[Any] = [*outcome.agonists, *others, *filter(None, [outcome.strongest])]
    fitting = [one for one in tested if one.neuron == unit] if unit else shown
    return (fitting[0].neuron, fitting[0].estimate) if fitting else None


def _of_runs(first: Run, second: Run, limit: int) -> Iterator[Fact]:
    """Shared shown units and their Jaccard index in each direction, what differs, how strengths changed.

    What the other run did not search is told apart from what it searched and did not find.
    """
    runs = findings_of(first), findings_of(second)
    sources = tuple(dict.fromkeys(f"run:{findings.run}" for findings in runs))
    found = [{(unit.neuron, unit.search.regime): unit for unit in findings.shown()} for findings in runs]
    unsearched = [
        {unit for unit in theirs if unit not in ours and not state.searched(unit[0], unit[1].value)}
        for ours, theirs, state in zip(found, found[::-1], (first.told, second.told), strict=True)
    ]
    left, right = found
    regimes = sorted({regime for _, regime in {**left, **right}}, key=lambda regime: -regime.value)
    for regime in regimes:
        sets = [{unit for unit in units if unit[1] is regime} for units in found]
        missing = sets[1] & unsearched[0], sets[0] & unsearched[1]
        both = sets[0] - missing[1], sets[1] - missing[0]
        share = jaccard(*({neuron for neuron, _ in units} for units in both))
        said = f"the runs share {of_n(share)} {plural(share.n, 'shown unit').partition(' ')[2]} of either"
        said = f"{said} ({len(both[0])} and {len(both[1])})"
        only = [
            f"of the {name} run's {plural(len(units), 'shown unit')} the other run did not search {len(lacks)}"
            for name, units, lacks in zip(("first", "second"), sets, missing[::-1], strict=True)
            if lacks
        ]
        whole = [*([f"of what both searched {said}" if only else said] if share.n else []), *only]
        names = ("first", "second", "shared", "union", "not_searched_by_first", "not_searched_by_second")
        counts = (*map(len, sets), share.count, share.n, *map(len, missing))
        said, key = f"{regime.arrow}: {'; '.join(whole)}", f"runs.shared.{regime.value}"
        yield fact(said, *sources, key=key, value=dict(zip(names, counts, strict=True)))
    if not regimes:
        yield fact("No unit is shown in either run", *sources, key="runs.shared", value=0)
    if settings := _differences(*runs):
        differ = "; ".join(f"{name}: {one} | {other}" for name, (one, other) in settings.items())
        said = f"They differ in {', '.join(settings)}, so read that with care ({differ})"
        yield fact(said, *sources, key="runs.settings", value=settings)
    shared = [unit for unit in left if unit in right]
    for neuron, regime in shared[:limit]:
        before, after = (units[neuron, regime].estimate.strength for units in (left, right))
        said = (
            f"{neuron} ({regime.arrow}) flips {percent(before)} of one half in the first and {percent(after)}"
        )
        key, value = f"unit.{neuron}.{regime.value}.strength", {"first": before, "second": after}
        yield fact(f"{said} in the second", *sources, unit=neuron, key=key, value=value)
    if len(shared) > limit:
        said = f"{len(shared) - limit} more shared units; --limit {len(shared)} shows all"
        yield fact(said, *sources, key="runs.shared.left_out", value=len(shared) - limit)


def _differences(first: Findings, second: Findings) -> dict[str, tuple[str, str]]:
    """Settings that differ: a comparison across them is not one of the units alone."""
    names = ("model", "model_hash", "task", "task_settings", "tau", "epsilon", "alpha", "proposer", "seed")
    one, other = (
        {
            **{name: str(getattr(findings, name)) for name in names},
            "interventions": ", ".join(
                sorted({f"{s.intervention.basis} {s.intervention.baseline}" for s in findings.searches})
            ),
        }
        for findings in (first, second)
    )
    return {name: (one[name], other[name]) for name in one if one[name] != other[name]}
