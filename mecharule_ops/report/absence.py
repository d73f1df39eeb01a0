"""What a search without a τ-agonist may say: never more than the units tested alone allow."""

from __future__ import annotations

from mecharule_ops.findings.records import Findings, SearchOutcome
from mecharule_ops.numbers import plural
from mecharule_ops.saying.flips import stronger_slice


def negative(findings: Findings, outcome: SearchOutcome) -> str:
    """What a search without a τ-agonist found, in one sentence that starts in lower case."""
    parts = [f"{_scope(outcome, findings.tau)} τ = {findings.tau:g} on the point estimate"]
    if outcome.agonists:
        count = len(outcome.agonists)
        parts[0] += f" ({plural(count, 'unit')} {'is' if count == 1 else 'are'} not ruled out)"
    if (unit := outcome.strongest_seen) is not None:
        flips = stronger_slice(unit.estimate, findings.tau, outcome.bounded)
        parts.append(f"the strongest unit seen alone, {unit.neuron}, flips {flips}")
    else:
        parts.append("no unit was tested alone")
    if outcome.whole_layers:
        parts.append(whole_layer_words(outcome, findings.tau))
    return "; ".join(parts) + "."


def whole_layer_words(outcome: SearchOutcome, tau: float) -> str:
    """How many layers reach τ when all their searched units are ablated together, and the strongest one."""
    strongest, every = outcome.strongest_layer, outcome.whole_layers
    assert strongest is not None, "no whole layer was ablated"
    reach = sum(whole.estimate.reaches(tau) for whole in every)
    flips = f"flips {stronger_slice(strongest.estimate)}"
    together = _together(outcome)
    if len(every) == 1:
        return f"layer {strongest.layer} {together} {flips}"
    return (
        f"ablated {together}, {reach or 'none'} of {len(every)} layers "
        f"{'reaches' if reach <= 1 else 'reach'} τ, and the strongest, layer {strongest.layer}, {flips}"
    )


def _together(outcome: SearchOutcome) -> str:
    """`as a whole` where every unit of the basis was searched, otherwise the searched units alone."""
    if outcome.basis_units in (None, outcome.cost.candidates):
        return "as a whole"
    return (
        "with all its searched units" if len(outcome.whole_layers) == 1 else "with all their searched units"
    )


def _scope(outcome: SearchOutcome, tau: float) -> str:
    """The widest claim of absence that the units tested alone allow."""
    if missed := len(outcome.missed(tau)):
        return f"the search found no unit that reaches τ, yet testing every unit alone finds {missed} of at least"
    total = outcome.cost.candidates
    if outcome.exhaustive is None and outcome.singletons_tested < total:
        return "the search found no unit that reaches"
    if outcome.basis_units == total:
        return "no unit of this basis reaches"
    return f"none of the {plural(total, 'searched unit')} reaches"
