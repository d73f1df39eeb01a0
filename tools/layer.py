"""A layer as a whole beside its strongest shown unit, or beside one that is named: both from the recorded search."""

from __future__ import annotations

from collections.abc import Iterator

from mecharule_ops.codec import encode
from mecharule_ops.confidence import lower_bound, searched_alpha, upper_bound
from mecharule_ops.errors import ClaimNotSupported, UsageError
from mecharule_ops.findings.counts import UnitStrength
from mecharule_ops.findings.records import Findings, SearchOutcome
from mecharule_ops.run.opening import findings_of, opened, regime_of, short_name
from mecharule_ops.saying.fact import Fact, fact
from mecharule_ops.saying.flips import both_slices
from mecharule_ops.types import FlipEstimate, Neuron
from tools.arguments import LayerArguments
from tools.registry import Tell, ToolResult, stated


def layer(given: LayerArguments, tell: Tell) -> ToolResult:
    """Flips of all searched units of the layer together and of its best unit alone, with what tells them apart.

    No model is run. Raises `ClaimNotSupported` when the run never ablated the layer as a whole.
    """
    neuron = None if given.neuron is None else Neuron.parse(given.neuron)
    if neuron is not None and neuron.layer != given.layer:
        raise UsageError(f"expected a unit of layer {given.layer}, got {neuron}")
    with opened(given.run) as run:
        findings = findings_of(run)
    outcome = _outcome(findings, given, neuron)
    whole = next((one.estimate for one in outcome.whole_layers if one.layer == given.layer), None)
    if whole is None:
        layers = ", ".join(str(one.layer) for one in outcome.whole_layers) or "none"
        raise ClaimNotSupported(
            f"layer {given.layer} was not ablated as a whole in run {findings.run} ({short_name(outcome)}); "
            f"those that were: {layers}"
        )
    unit = _best(findings, outcome, given.layer, neuron)
    facts = tuple(_facts(findings, outcome, given.layer, whole, unit, neuron))
    data: dict[str, object] = {
        "run": findings.run,
        "search": short_name(outcome),
        "layer": given.layer,
        "regime": outcome.regime.value,
        "whole": {**encode(whole), "strength": whole.strength},
        "neuron": None if unit is None else str(unit.neuron),
        "best": None,
    }
    if unit is not None:
        data["best"] = {**encode(unit.estimate), "strength": unit.estimate.strength}
        data["bounds"] = _all_bounds(findings, outcome, whole, unit.estimate)
    return stated(data, facts)


def _outcome(findings: Findings, given: LayerArguments, neuron: Neuron | None) -> SearchOutcome:
    """The search of the basis and direction asked for, else the first. Raises `UsageError`."""
    basis = given.basis or (None if neuron is None else neuron.basis.value)
    regime = regime_of(given.regime)
    fitting = [
        search
        for search in findings.searches
        if basis in (None, search.intervention.basis.value) and regime in (None, search.regime)
    ]
    if not fitting:
        searched = ", ".join(map(short_name, findings.searches)) or "none"
        raise UsageError(f"expected a search of run {findings.run} ({searched}), got basis {basis}")
    return fitting[0]


def _best(
    findings: Findings, outcome: SearchOutcome, number: int, neuron: Neuron | None
) -> UnitStrength | None:
    """The strongest shown unit of the layer, or the named one where it was tested alone; None without, or if hidden."""
    if outcome.suppressed:
        return None
    if neuron is None:
        shown = (unit for unit in findings.shown_of(outcome) if unit.neuron.layer == number)
        return next((UnitStrength(neuron=unit.neuron, estimate=unit.estimate) for unit in shown), None)
    tested = [UnitStrength(neuron=one.neuron, estimate=one.estimate) for one in outcome.agonists]
    tested += outcome.exhaustive.units if outcome.exhaustive else ()
    tested += [outcome.strongest] if outcome.strongest else []
    return next((one for one in tested if one.neuron == neuron), None)


def _facts(
    findings: Findings,
    outcome: SearchOutcome,
    number: int,
    whole: FlipEstimate,
    unit: UnitStrength | None,
    asked: Neuron | None,
) -> Iterator[Fact]:
    """What the layer flips, what its unit flips alone, which is stronger, and whether the bounds lie apart."""
    source = f"run:{findings.run}"
    yield fact(
        f"Layer {number} as a whole, all its searched units ablated together ({short_name(outcome)}), flips "
        f"{both_slices(whole)}",
        source,
    )
    if unit is None:
        missing = f"{asked} was not tested alone" if asked else f"No unit of layer {number} is shown"
        yield fact(f"{missing}, so nothing is compared with it", source)
        return
    name, estimate = unit.neuron, unit.estimate
    role = f"{name} alone" if asked else f"Its strongest unit, {name}, alone"
    yield fact(f"{role} flips {both_slices(estimate, findings.tau, outcome.bounded)}", source, unit=name)
    first, second = _all_bounds(findings, outcome, whole, estimate)
    if whole.strength == estimate.strength:
        word = "exactly as strong as"
    else:
        word = "stronger than" if whole.strength > estimate.strength else "weaker than"
    apart = first["lower"] > second["upper"] or second["lower"] > first["upper"]
    judged = "their bounds lie apart" if apart else "their bounds overlap, so these examples do not settle it"
    shown = " against ".join(f"[{one['lower']:.2f}, {one['upper']:.2f}]" for one in (first, second))
    yield fact(
        f"The layer as a whole is {word} {name} on these examples: strength, for this comparison bounded from below "
        f"and above over all units searched, in {shown}; {judged}",
        source,
        unit=name,
    )


def _all_bounds(
    findings: Findings, outcome: SearchOutcome, *estimates: FlipEstimate
) -> list[dict[str, float]]:
    """One-sided bounds of the stronger slice of each, over all units of the search."""
    level = searched_alpha(findings.alpha, outcome.cost.candidates) / 2
    parts = [estimate.stronger[1] for estimate in estimates]
    return [
        {"lower": lower_bound(part.flips, part.n, level), "upper": upper_bound(part.flips, part.n, level)}
        for part in parts
    ]
