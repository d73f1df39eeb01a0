"""What to try next when a search finds no τ-agonist: sentences that follow from the counts alone.

Each sentence names its reason. None promises a result: whether sparse agonists exist is a property of the
model, basis, baseline, phase and regime together.
"""

from __future__ import annotations

from mecharule_ops.confidence import required_slice_size
from mecharule_ops.findings import SearchOutcome
from mecharule_ops.report.document import plural
from mecharule_ops.types import Baseline, Basis, Phase

_OTHER_BASIS = {
    Basis.MLP_OUT: "attn_head (few, large units) or mlp_hidden",
    Basis.MLP_HIDDEN: "attn_head (few, large units) or mlp_out",
    Basis.ATTN_HEAD: "mlp_out or mlp_hidden",
}


def suggestions(outcome: SearchOutcome, tau: float, alpha: float) -> tuple[str, ...]:
    """What to change next, most telling first; empty when a τ-agonist was found. Expects 0 < τ < 1."""
    if outcome.tau_agonists:
        return ()
    power = _about_power(outcome, tau, alpha)
    if missed := len(outcome.missed(tau)):
        return (
            *power,
            f"Trust the exhaustive run here: it finds {plural(missed, 'τ-agonist')} that the search "
            "missed, so groups of this basis are weaker than their own members.",
        )
    return (*power, *_about_place(outcome, tau), *_about_baseline(outcome))


def _about_power(outcome: SearchOutcome, tau: float, alpha: float) -> tuple[str, ...]:
    needed, smallest = required_slice_size(alpha, tau), min(outcome.associated_n, outcome.unrelated_n)
    if smallest >= needed:
        return ()
    return (
        f"Run on more records: {needed} examples a slice are needed before anything can be pruned, "
        f"{smallest} exist.",
    )


def _about_place(outcome: SearchOutcome, tau: float) -> tuple[str, ...]:
    """Whether the effect is somewhere in this basis at all, judged by whole layers."""
    basis, layer = outcome.intervention.basis, outcome.strongest_layer
    other = _OTHER_BASIS[basis]
    if layer is None:
        return (f"Try another basis: {other}.",)
    if layer.estimate.strength >= tau:
        return (
            f"Layer {layer.layer} as a whole reaches τ while no unit seen alone does: its effect is spread "
            f"over several {basis} units, or over directions that are no single unit. Try another basis: "
            f"{other}.",
        )
    advice = (
        f"No layer as a whole reaches τ: this basis carries little of the flip. Try another basis: {other}."
    )
    if outcome.intervention.phase is Phase.WHOLE:
        return (advice,)
    return (
        advice,
        f"Try the phase whole: {outcome.intervention.phase} leaves the prompt's own computation intact.",
    )


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
