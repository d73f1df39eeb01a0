"""A layer as a whole beside its strongest unit, or beside one that is named: both from the recorded search."""

from __future__ import annotations

from mecharule_ops.confidence import lower_bound, searched_alpha, upper_bound
from mecharule_ops.errors import ClaimNotSupported, UsageError
from mecharule_ops.findings.records import Findings, SearchOutcome, UnitStrength
from mecharule_ops.pipeline.opening import findings_of, opened, regime_of, short_name
from mecharule_ops.saying.fact import Fact
from mecharule_ops.saying.flips import both_slices
from mecharule_ops.types import FlipCount, FlipEstimate, Neuron
from tools.arguments import Layer
from tools.registry import Tell
from tools.result import ToolResult, stated


def layer(given: Layer, tell: Tell) -> ToolResult:
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
    unit = _best(outcome, given.layer, neuron)
    facts = _facts(findings, outcome, given.layer, whole, unit, neuron)
    data: dict[str, object] = {
        "run": findings.run,
        "search": short_name(outcome),
        "layer": given.layer,
        "regime": outcome.regime.value,
        "whole": _data(whole),
        "neuron": None if unit is None else str(unit.neuron),
        "best": None if unit is None else _data(unit.estimate),
    }
    if unit is not None:
        level = searched_alpha(findings.alpha, outcome.cost.candidates)
        data["bounds"] = [_bounds(estimate, level) for estimate in (whole, unit.estimate)]
    return stated(data, facts)


def _outcome(findings: Findings, given: Layer, neuron: Neuron | None) -> SearchOutcome:
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


def _best(outcome: SearchOutcome, number: int, neuron: Neuron | None) -> UnitStrength | None:
    """The strongest unit of the layer that was tested alone, or the named one; None when none was, or it is hidden."""
    if outcome.suppressed:
        return None
    tested = [UnitStrength(neuron=one.neuron, estimate=one.estimate) for one in outcome.agonists]
    tested += outcome.exhaustive.units if outcome.exhaustive else ()
    tested += [outcome.strongest] if outcome.strongest else []
    here = [one for one in tested if one.neuron.layer == number and neuron in (None, one.neuron)]
    return max(here, key=lambda one: one.estimate.strength, default=None)


def _facts(
    findings: Findings,
    outcome: SearchOutcome,
    number: int,
    whole: FlipEstimate,
    unit: UnitStrength | None,
    asked: Neuron | None,
) -> tuple[Fact, ...]:
    source = (f"run:{findings.run}",)
    first = Fact(
        sentence=f"Layer {number} as a whole, all its searched units ablated together ({short_name(outcome)}), flips "
        f"{both_slices(whole)}",
        sources=source,
    )
    if unit is None:
        words = (
            f"{asked} was not tested alone"
            if asked
            else f"No unit of layer {number} is known to have been tested alone"
        )
        return first, Fact(sentence=f"{words}, so nothing is compared with it", sources=source)
    name = str(unit.neuron)
    role = f"{name} alone" if asked else f"Its strongest unit of those tested alone, {name},"
    second = Fact(
        sentence=f"{role} flips {both_slices(unit.estimate, findings.tau, outcome.bounded)}",
        unit=name,
        sources=source,
    )
    return first, second, _verdict(findings, outcome, number, whole, unit, source)


def _verdict(
    findings: Findings,
    outcome: SearchOutcome,
    number: int,
    whole: FlipEstimate,
    unit: UnitStrength,
    source: tuple[str, ...],
) -> Fact:
    """Which is stronger, and whether the bounds of the stronger slices lie apart."""
    level = searched_alpha(findings.alpha, outcome.cost.candidates)
    ranges = [_bounds(estimate, level) for estimate in (whole, unit.estimate)]
    shown = [f"[{one['lower']:.2f}, {one['upper']:.2f}]" for one in ranges]
    if whole.strength == unit.estimate.strength:
        words = f"The layer as a whole is exactly as strong as {unit.neuron}"
    else:
        word = "stronger" if whole.strength > unit.estimate.strength else "weaker"
        words = f"The layer as a whole is {word} than {unit.neuron}"
    apart = ranges[0]["lower"] > ranges[1]["upper"] or ranges[1]["lower"] > ranges[0]["upper"]
    judged = "their bounds lie apart" if apart else "their bounds overlap, so these examples do not settle it"
    return Fact(
        sentence=f"{words} on these examples: strength, bounded over all units searched, in {shown[0]} against "
        f"{shown[1]}; {judged}",
        unit=str(unit.neuron),
        sources=source,
    )


def _stronger(estimate: FlipEstimate) -> FlipCount:
    plus, minus = estimate.associated, estimate.unrelated
    return plus if minus.n == 0 or (plus.n > 0 and plus.flip_rate >= minus.flip_rate) else minus


def _bounds(estimate: FlipEstimate, alpha: float) -> dict[str, float]:
    """One-sided bounds at α/2 of the stronger slice; α that of all units searched."""
    part = _stronger(estimate)
    return {
        "lower": lower_bound(part.flips, part.n, alpha / 2),
        "upper": upper_bound(part.flips, part.n, alpha / 2),
    }


def _data(estimate: FlipEstimate) -> dict[str, object]:
    plus, minus = estimate.associated, estimate.unrelated
    return {
        "associated": {"flips": plus.flips, "n": plus.n},
        "unrelated": {"flips": minus.flips, "n": minus.n},
        "strength": estimate.strength,
    }
