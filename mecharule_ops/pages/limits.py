"""What a run cannot say, in sentences that stand in every report."""

from __future__ import annotations

from mecharule_ops.confidence import Spending
from mecharule_ops.findings.counts import CloseCompletions, Numbers
from mecharule_ops.findings.records import Findings


def limits(findings: Findings) -> tuple[str, ...]:
    """What this run cannot say."""
    upper, lower = (f"{100 * (1 - level):g} %" for level in (findings.slice_alpha, findings.alpha / 2))
    each = (
        "α is spent anew at every node, so the chance that some bound of the search fails is larger"
        if findings.alpha_policy == Spending.PER_NODE
        else "in the search α is spent once a layer, so over all layers the chance that some bound fails is larger"
    )
    close = findings.close_completions
    return (
        *([numbers_sentence(findings.numbers)] if findings.numbers else []),
        *([close_sentence(close)] if close else []),
        "Ablation shows that a unit is needed for the behaviour under this replacement. It does not show "
        "that the unit suffices, is unique, or computes the rule's text.",
        f"Bounds are one-sided Clopper–Pearson. Upper ones, at {upper} a slice, are the search's pruning rule; {each}. "
        f"Lower ones are at {lower} over both slices of all units of a search at once (Bonferroni), since the units "
        "shown were chosen among them by the same counts. "
        f"{_of_what(findings)}",
        "A unit's strength is measured on the same examples that selected it, so the strongest estimates are "
        "biased upwards.",
        "Pruning is safe only where a group is at least as strong as its strongest member. In 0→1 that does not hold, "
        "since units that repair an answer alone may break it together, nor need it in 1→0, and a tree with groups "
        "cut by predicted weight is not the theorem's: then a bound holds for its own group, and nothing follows for "
        "the units inside. What bounds the units missed, whatever groups hide, is testing every unit alone, or the "
        "audit.",
        "Attribution only chose and grouped the units to test; no claim here rests on its scores.",
        "A held-out MCC says how well a rule, learned on the train split, predicts on unseen records which "
        "of them flip when the unit is ablated: 1 is perfect, 0 is no better than chance. It is a "
        "correlation over the n records given with it; a bootstrap of their counts, half a record added to each "
        "cell, gives its 95 % interval.",
        "Held-out records select nothing that is fitted, but they decide which rules are shown: those whose interval "
        "lies above 0 and whose p, of Fisher's exact test, is at most α after Holm over all learned rules of the run. "
        "One asked for after the run is corrected over those and such accounts as were made before it.",
        "HQ-F is fitted and scored on the same records: descriptive, never evidence of prediction.",
        "Union coverage counts a record when any one of many units flips it, so it grows with the number "
        "of units by chance alone; compare the union of as many units drawn from the same layers"
        f"{', both outside the slices' if all(one.union_outside for one in findings.searches) else ''}.",
        *([clusters_sentence(findings.clusters)] if findings.clusters else []),
        "A replacement outside the range that the unit takes in the data tests an input that the model never "
        "meets; its flips may say more about the replacement than about the unit.",
        f"Everything holds for this task, these settings and seed {findings.seed}; no other task or model "
        "was tested.",
    )


def _of_what(findings: Findings) -> str:
    """Of what the bounds speak."""
    if all(search.at_random for search in findings.searches):
        return "They hold for D+ and D- of the train split, from which the slices were drawn at random."
    return (
        "Slices that were not drawn at random are covers that keep what is rare: there counts speak of these examples "
        "alone, and the bounds are the search's pruning rule, no claim about D+ or D-."
    )


def clusters_sentence(column: str) -> str:
    """Of what p's and intervals speak where records are alike within clusters."""
    return (
        f"Records with the same {column} are alike, yet they are split, ranked and tested one by one: p's and "
        f"intervals speak of further records with the same values of {column}, not of other ones."
    )


def numbers_sentence(numbers: Numbers) -> str:
    """What the model was computed with, and how often that did not do."""
    where = f"The model's weights were in {numbers.dtype} on {numbers.device}"
    if numbers.again is None:
        return f"{where}; every product was computed in float32."
    return (
        f"{where}: {numbers.again.count:,} of {numbers.again.n:,} outcomes had a lead below the calibrated one and "
        "were decided again in float32; certificates are in float32 throughout."
    )


def close_sentence(close: CloseCompletions) -> str:
    """How many completions rounding may decide, and how that was measured."""
    if not close.lead:
        return f"Batches of several sizes gave the leads of {close.compared} completions to the bit."
    return (
        f"{close.close.count:,} of {close.close.n:,} completions have a lead below {close.lead:.1g} logits: on "
        f"another processor they may differ. (Batches of several sizes moved the leads of {close.compared} "
        f"completions by up to {close.disagreement:.1g}.)"
    )
