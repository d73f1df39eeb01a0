"""What a search without a τ-agonist may say, never more than the units tested alone allow, and what to try next.

Advice follows from the counts alone, and each sentence names its reason. None promises a result: whether sparse
agonists exist is a property of the model, basis, baseline, phase and regime together.
"""

from __future__ import annotations

from collections.abc import Collection

from mecharule_ops.bases import ROWS
from mecharule_ops.confidence import flipless_size
from mecharule_ops.facts.flips import stronger_slice
from mecharule_ops.findings.records import Findings, SearchOutcome
from mecharule_ops.numbers import plural
from mecharule_ops.types import Baseline, Basis, Phase, SearchStatus


def negative(findings: Findings, outcome: SearchOutcome) -> str:
    """What a search without a τ-agonist found, in one sentence that starts in lower case."""
    if outcome.nothing_searched:
        return f"nothing was searched: {outcome.slice_status}."
    parts = [f"{_scope(findings, outcome)} τ = {findings.tau:g} on the point estimate"]
    if outcome.agonists:
        count = len(outcome.agonists)
        parts[0] += f" ({plural(count, 'unit')} {'is' if count == 1 else 'are'} not ruled out)"
    if (unit := outcome.strongest_seen) is not None:
        flips = stronger_slice(unit.estimate, findings.tau, outcome.bounded)
        parts.append(f"none seen alone flips more than {flips}")
    else:
        parts.append("no unit was tested alone")
    if outcome.whole_layers:
        parts.append(whole_layer_words(findings, outcome))
    return "; ".join(parts) + "."


def whole_layer_words(findings: Findings, outcome: SearchOutcome) -> str:
    """How many layers reach τ when all their searched units are ablated together, and the strongest one."""
    strongest, every = outcome.strongest_layer, outcome.whole_layers
    assert strongest is not None, "no whole layer was ablated"
    reach = sum(findings.reaches(whole.estimate) for whole in every)
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


def _scope(findings: Findings, outcome: SearchOutcome) -> str:
    """The widest claim of absence that the units tested alone allow."""
    if missed := len(outcome.missed(findings.tau)):
        return f"the search found no unit that reaches τ, yet testing every unit alone finds {missed} of at least"
    total = outcome.cost.candidates
    if outcome.exhaustive is None and outcome.singletons_tested < total:
        return "the search found no unit that reaches"
    if outcome.basis_units == total:
        return "no unit of this basis reaches"
    return f"none of the {plural(total, 'searched unit')} reaches"


def suggestions(
    findings: Findings, outcome: SearchOutcome, searched: Collection[Basis] = ()
) -> tuple[str, ...]:
    """What to change next, most telling first; empty when a τ-agonist was found.

    `searched` are the bases of the whole run: none of them is advised.
    """
    if outcome.tau_agonists:
        return ()
    power = _about_power(findings, outcome)
    if missed := len(outcome.missed(findings.tau)):
        return (
            *power,
            f"Trust the exhaustive run here: it finds {plural(missed, 'τ-agonist')} that the search "
            "missed, so groups of this basis are weaker than their own members.",
        )
    if outcome.nothing_searched:
        return power
    return (*power, *_about_place(findings, outcome, searched), *_about_baseline(outcome))


def after_audit(outcome: SearchOutcome) -> tuple[str, ...]:
    """What to do when the audit met τ-agonists that the search had pruned; empty when it met none."""
    if outcome.audit is None or not outcome.audit.found:
        return ()
    met = f"The audit met {plural(len(outcome.audit.found), 'τ-agonist')} that the search "
    if SearchStatus.LEFT.value in outcome.status:
        return (
            f"{met}had not asked: ask the rest in groups (--set rest=grouped) or audit more (--set audit=N).",
        )
    return (
        f"{met}had pruned with a group: search smaller groups (--set largest=2) or every unit alone (--set largest=1).",
    )


def _about_power(findings: Findings, outcome: SearchOutcome) -> tuple[str, ...]:
    needed = flipless_size(findings.slice_alpha, findings.tau)
    smallest = min(outcome.associated_n, outcome.unrelated_n)
    if smallest >= needed:
        return ()
    if not smallest and not max(outcome.associated_n, outcome.unrelated_n):
        words = findings.words
        without = words.failure if outcome.regime.value else words.success
        return (
            f"Every answer is {without}, so none can flip {outcome.regime.arrow}: ask the other direction, or change "
            "the task.",
        )
    alone = (
        f" Or test each unit alone: `mecharule run --from {findings.run} --search exhaustive`."
        if outcome.nothing_searched
        else ""
    )
    return (
        f"Run on more records: {needed} examples a slice are needed before anything can be pruned, "
        f"{smallest} exist.{alone}",
    )


def _about_place(findings: Findings, outcome: SearchOutcome, searched: Collection[Basis]) -> tuple[str, ...]:
    """Whether the effect is somewhere in this basis at all, judged by whole layers."""
    basis, layers = outcome.intervention.basis, outcome.whole_layers
    other = _another_basis({basis, *searched})
    reach = [whole.layer for whole in layers if findings.reaches(whole.estimate)]
    if reach:
        where = f"Layer {reach[0]}" if len(reach) == 1 else f"{len(reach)} of {len(layers)} layers"
        does = "reaches" if len(reach) == 1 else "reach"
        pruned = "" if _all_seen(outcome) else ", or one unit has it that was pruned with its group"
        return (
            f"{where} as a whole {does} τ while no unit seen alone does: several {basis} units share the effect, "
            f"or directions that are no single unit{pruned}.{other}",
        )
    if not layers:
        return (other.strip(),) if other else ()
    advice = f"No layer as a whole reaches τ: this basis carries little of the flip.{other}"
    if outcome.intervention.phase is Phase.WHOLE:
        return (advice,)
    return (
        advice,
        f"Try the phase whole: {outcome.intervention.phase} leaves the prompt's own computation intact.",
    )


def _all_seen(outcome: SearchOutcome) -> bool:
    return outcome.exhaustive is not None or outcome.singletons_tested >= outcome.cost.candidates


def _another_basis(searched: Collection[Basis]) -> str:
    """` Try another basis: …` with those that the run has not searched; empty when it has searched all."""
    left = [f"{basis}{row.advice}" for basis, row in ROWS.items() if basis not in searched]
    return f" Try another basis: {' or '.join(left)}." if left else ""


def _about_baseline(outcome: SearchOutcome) -> tuple[str, ...]:
    baseline = outcome.intervention.baseline
    if baseline is Baseline.ZERO:
        return ("Try the baseline mean-positional, whose values the model does meet.",)
    if baseline is Baseline.SLOT0:
        return (
            "slot0 is for comparison with the published code only; try the true mean-positional baseline.",
        )
    donor = (
        "" if "donor" in baseline else "mean-donor-positional writes only values that the unit does take; "
    )
    return (
        f"Try another baseline: {donor}zero is a stronger change, but may write values that the model "
        "never meets, so read the out-of-range share beside any unit that it finds.",
    )
