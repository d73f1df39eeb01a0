"""The sentences of a report: what was asked, what was found, how sure, and what it cannot say.

No sentence is stronger than its evidence. "Localized" is an upper bound that reaches τ, "τ-agonist" a point
estimate that does; a percentage comes with its counts; attribution only ever chooses what is tested.
"""

from __future__ import annotations

from mecharule_ops.controls import ControlVerdict, verdict
from mecharule_ops.findings import Findings, SearchOutcome, Share
from mecharule_ops.report.document import k_of_n, plural, two_decimals
from mecharule_ops.types import Agonist, FlipEstimate, RuleScore

NO_CONTROL = "no control run"


def search_name(outcome: SearchOutcome) -> str:
    """`mlp_out · mean-positional · decode · 1→0`."""
    how = outcome.intervention
    return f"{how.basis} · {how.baseline} · {how.phase} · {outcome.regime.arrow}"


def stronger_slice(estimate: FlipEstimate) -> str:
    """The slice that gives the strength, with its counts: `50/64 (78 %) of D+`."""
    plus, minus = estimate.associated, estimate.unrelated
    on_plus = minus.n == 0 or plus.flip_rate >= minus.flip_rate
    return f"{k_of_n(plus)} of D+" if on_plus else f"{k_of_n(minus)} of D-"


def control_word(findings: Findings, outcome: SearchOutcome, agonist: Agonist) -> str:
    """The controls' verdict, or `no control run`."""
    controls = outcome.controls_of(agonist.neuron)
    if controls is None or controls.random is None:
        return NO_CONTROL
    return verdict(agonist.estimate, controls, findings.tau, findings.epsilon, findings.alpha).value


def summary(findings: Findings) -> str:
    """One paragraph for a reader who reads nothing else."""
    asked = (
        f"Asked: which single units of {findings.model}, replaced one at a time, change whether it "
        f"succeeds at {findings.task}. Unablated it succeeds on {k_of_n(findings.task_score)} of the records."
    )
    if not findings.searches:
        return f"{asked} Found: no search was run, so nothing is claimed."
    found = " ".join(_found(findings, outcome) for outcome in findings.searches)
    sure = " ".join(_how_sure(findings, outcome) for outcome in findings.searches)
    return f"{asked} Found: {found} How sure: {sure}"


def _found(findings: Findings, outcome: SearchOutcome) -> str:
    if not outcome.tau_agonists:
        return f"{search_name(outcome)}: {negative(findings, outcome)}"
    strongest = max(outcome.agonists, key=lambda agonist: agonist.estimate.strength)
    held = [rule.held_out for rule in outcome.anchored if rule.held_out and findings.is_hq_t(rule)]
    small = sum(is_small(score) for score in held)
    fewer = f" ({small} of them on too few records to be stable)" if small else ""
    return (
        f"{search_name(outcome)}: {plural(len(outcome.agonists), 'unit')} of {outcome.cost.candidates:,} "
        f"localized (upper bound ≥ τ = {findings.tau:g}), {len(outcome.tau_agonists)} of them τ-agonists "
        f"(point estimate ≥ τ); the strongest, {strongest.neuron}, flips "
        f"{stronger_slice(strongest.estimate)}; {len(held)} with a rule that predicts its flips on "
        f"held-out records at MCC ≥ {findings.mcc_floor:.2f}{fewer}."
    )


def negative(findings: Findings, outcome: SearchOutcome) -> str:
    """What a search without a τ-agonist found, plainly: the claim covers the units tested alone, no more."""
    parts = [f"{_scope(outcome, findings.tau)} τ = {findings.tau:g}"]
    if outcome.agonists:
        parts[0] += (
            f" on the point estimate ({plural(len(outcome.agonists), 'unit')} localized by upper bound only)"
        )
    if (unit := outcome.strongest_seen) is not None:
        parts.append(f"the strongest unit seen alone, {unit.neuron}, flips {stronger_slice(unit.estimate)}")
    else:
        parts.append("no unit was tested alone")
    if (layer := outcome.strongest_layer) is not None:
        parts.append(f"layer {layer.layer} as a whole flips {stronger_slice(layer.estimate)}")
    return "; ".join(parts) + "."


def _scope(outcome: SearchOutcome, tau: float) -> str:
    """The widest claim of absence that the units tested alone allow."""
    if missed := len(outcome.missed(tau)):
        return (
            f"the search found no unit that reaches τ, yet testing every unit alone finds {missed} with a "
            "point estimate of at least"
        )
    total = outcome.cost.candidates
    if outcome.exhaustive is None and outcome.singletons_tested < total:
        return "the search found no unit that reaches"
    if outcome.basis_units == total:
        return "no unit of this basis reaches"
    return f"none of the {plural(total, 'candidate unit')} reaches"


def _how_sure(findings: Findings, outcome: SearchOutcome) -> str:
    parts = []
    if outcome.agonists:
        words = [control_word(findings, outcome, agonist) for agonist in outcome.agonists]
        run = len(words) - words.count(NO_CONTROL)
        supported = words.count(ControlVerdict.SUPPORTED.value)
        parts.append(f"controls ran for {run} of {len(words)} localized units and support {supported}")
    parts.append(_recall_sentence(outcome, findings.tau))
    return f"{search_name(outcome)}: {'; '.join(parts)}."


def _recall_sentence(outcome: SearchOutcome, tau: float) -> str:
    if outcome.exhaustive is None:
        untested = max(0, outcome.cost.candidates - outcome.singletons_tested)
        return f"{plural(untested, 'unit')} never tested alone, so what the search missed is not bounded"
    truth = sum(unit.estimate.strength >= tau for unit in outcome.exhaustive.units)
    if truth == 0:
        return "every unit was also tested alone, and none reaches τ on the point estimate"
    found = Share(count=truth - len(outcome.missed(tau)), n=truth)
    return f"the search found {k_of_n(found)} of the τ-agonists that testing every unit alone finds"


def limits(findings: Findings) -> tuple[str, ...]:
    """What this run cannot say."""
    level = f"{100 * (1 - findings.alpha / 2):g} %"
    each = (
        "α is spent once over the whole tree"
        if findings.alpha_policy == "global"
        else "α is spent anew at every node, so the chance that some bound of the search fails is larger"
    )
    return (
        "Ablation shows that a unit is needed for the behaviour under this replacement. It does not show "
        "that the unit suffices, is unique, or computes the rule's text.",
        f"Bounds are one-sided Clopper–Pearson at {level} a slice; {each}.",
        "A unit's strength is measured on the same examples that selected it, so the strongest estimates are "
        "biased upwards.",
        "Pruning is safe only where a group is at least as strong as its strongest member. Where that "
        "fails the search misses units; recall against exhaustive ablation, where it was run, measures how "
        "many.",
        "Attribution only chose and grouped the units to test; no claim here rests on its scores.",
        "A held-out MCC says how well a rule, learned on the train split, predicts on unseen records which "
        "of them flip when the unit is ablated: 1 is perfect, 0 is no better than chance. It is a "
        "correlation over the n records given with it; with few records or few flips it is unstable and "
        "marked †.",
        "HQ-F is fitted and scored on the same records: descriptive, never evidence of prediction.",
        "Union coverage counts a record when any one of many units flips it, so it grows with the number "
        "of units by chance alone; compare the random union where it was run.",
        "A replacement outside the range that the unit takes in the data tests an input that the model never "
        "meets; its flips may say more about the replacement than about the unit.",
        f"Everything holds for this task, these settings and seed {findings.seed}; no other task or model "
        "was tested.",
    )


def is_small(score: RuleScore) -> bool:
    """True when n < 30 or either outcome has fewer than 5 records: an MCC there is unstable."""
    return score.n < 30 or min(score.positives, score.n - score.positives) < 5


def rule_note(score: RuleScore) -> str:
    """A rule score as printed: `0.78 (n 412, 96 flips)`, with † on a small sample."""
    mark = " †" if is_small(score) else ""
    return f"{two_decimals(score.mcc)} (n {score.n:,}, {plural(score.positives, 'flip')}){mark}"
