"""What to try next when a search finds no τ-agonist: sentences that follow from the counts alone.

Each sentence names its reason. None promises a result: whether sparse agonists exist is a property of the
model, basis, baseline, phase and regime together.
"""

from __future__ import annotations

from collections.abc import Collection

from mecharule_ops.bases import ROWS
from mecharule_ops.confidence import flipless_size
from mecharule_ops.findings.records import SearchOutcome
from mecharule_ops.numbers import plural
from mecharule_ops.types import Baseline, Basis, Phase


def suggestions(
    outcome: SearchOutcome, tau: float, slice_alpha: float, searched: Collection[Basis] = ()
) -> tuple[str, ...]:
    """What to change next, most telling first; empty when a τ-agonist was found.

    `searched` are the bases of the whole run: none of them is advised. Expects 0 < τ < 1.
    """
    if outcome.tau_agonists:
        return ()
    power = _about_power(outcome, tau, slice_alpha)
    if missed := len(outcome.missed(tau)):
        return (
            *power,
            f"Trust the exhaustive run here: it finds {plural(missed, 'τ-agonist')} that the search "
            "missed, so groups of this basis are weaker than their own members.",
        )
    return (*power, *_about_place(outcome, tau, searched), *_about_baseline(outcome))


def after_audit(outcome: SearchOutcome) -> tuple[str, ...]:
    """What to do when the audit met τ-agonists that the search had pruned; empty when it met none."""
    if outcome.audit is None or not outcome.audit.found:
        return ()
    return (
        f"The audit met {plural(len(outcome.audit.found), 'τ-agonist')} that the search had pruned with a group: "
        "search smaller groups (--set largest=2) or every unit alone (--set largest=1).",
    )


def _about_power(outcome: SearchOutcome, tau: float, slice_alpha: float) -> tuple[str, ...]:
    needed, smallest = flipless_size(slice_alpha, tau), min(outcome.associated_n, outcome.unrelated_n)
    if smallest >= needed:
        return ()
    return (
        f"Run on more records: {needed} examples a slice are needed before anything can be pruned, "
        f"{smallest} exist.",
    )


def _about_place(outcome: SearchOutcome, tau: float, searched: Collection[Basis]) -> tuple[str, ...]:
    """Whether the effect is somewhere in this basis at all, judged by whole layers."""
    basis, layers = outcome.intervention.basis, outcome.whole_layers
    other = _another_basis({basis, *searched})
    reach = [whole.layer for whole in layers if whole.estimate.reaches(tau)]
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
