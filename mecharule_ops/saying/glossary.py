"""The program's own words and the field's, each said once in plain English; a run's thresholds fill the braces."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One word of the program."""

    name: str
    """As it is written."""
    means: str
    """A sentence without its full stop; `{tau}` and the like stand for a run's own settings."""
    also: tuple[str, ...] = ()
    """Other ways to write it."""


def _term(name: str, also: str, means: str) -> Term:
    return Term(name=name, means=means, also=tuple(part.strip() for part in also.split("|") if part.strip()))


TERMS: Mapping[str, Term] = {
    term.name: term
    for term in (
        _term(
            "τ",
            "tau",
            "τ is the threshold of strength: the least share of a slice that a unit's ablation must flip to count as "
            "an agonist, here {tau}",
        ),
        _term(
            "ε",
            "epsilon",
            "ε is the least difference between the flip rates on D+ and on D- that counts as selective, here {epsilon}",
        ),
        _term(
            "α",
            "alpha",
            "α is the chance of error that a bound or a test may have, here {alpha}; bounds hold at 1 - α",
        ),
        _term(
            "τ-agonist",
            "agonist|tau agonist|tau-agonist",
            "A τ-agonist is a unit whose ablation alone flips at least τ = {tau} of one of the two "
            "slices, by its counts",
        ),
        _term(
            "localized",
            "localised|localized unit|not ruled out",
            "Localized means not ruled out: the upper bound of the unit's strength reaches τ = {tau}, whether or not "
            "its counts do",
        ),
        _term(
            "D+",
            "d plus|dplus|associated slice|associated",
            "D+ are the records on which the splitter rule fires: {splitter}",
        ),
        _term(
            "D-",
            "d minus|dminus|unrelated slice|unrelated",
            "D- are the records on which the splitter rule does not fire; the rule: {splitter}",
        ),
        _term(
            "splitter rule",
            "splitter|splitting rule|split rule|split",
            "The splitter rule is learned on train records to tell what the model gets right from what it gets wrong; "
            "where it fires is D+, elsewhere D-. Here it is {splitter}",
        ),
        _term(
            "slice",
            "compact slice|compact slices",
            "A compact slice is a small set of records of D+ or of D- on which every ablation is counted",
        ),
        _term(
            "selectivity",
            "selective|selective unit",
            "Selectivity is the flip rate on D+ less that on D-: near 0 where a unit matters on both alike. Selective "
            "means that the rates differ by ε = {epsilon} or more on held-out records and not by chance",
        ),
        _term(
            "strength",
            "effect size|ê",
            "Strength is the larger of a unit's two flip rates, that on D+ and that on D-",
        ),
        _term(
            "flip",
            "flipped|1→0|0→1|1->0|0->1",
            "A flip is a record whose outcome changes when the unit is ablated: 1→0 where a right answer breaks, 0→1 "
            "where a wrong one is mended",
        ),
        _term(
            "ablation",
            "ablate|ablating|knockout|intervention",
            "Ablation switches a unit off: its value is set to a replacement that does not depend on the prompt, here "
            "the baseline {baseline}, while the model writes",
        ),
        _term(
            "baseline",
            "replacement value|replacement",
            "The baseline is what an ablated unit is set to, here {baseline}",
        ),
        _term(
            "mean-positional",
            "mean positional|positional mean|mean-positional baseline",
            "mean-positional sets a unit to its mean at that position over train records",
        ),
        _term(
            "Clopper–Pearson",
            "clopper-pearson|clopper pearson|clopper|exact bounds|exact interval",
            "Clopper–Pearson bounds are exact bounds of a rate from its counts, without an approximation: they hold "
            "at least as often as they say",
        ),
        _term(
            "MCC",
            "matthews|matthews correlation|matthews correlation coefficient|phi coefficient",
            "MCC, Matthews' correlation coefficient, is a correlation between where a rule fires and where the unit "
            "flips: 1 is perfect, 0 no better than chance",
        ),
        _term(
            "first order",
            "first-order|first order prediction|first-order prediction|linear approximation",
            "First order is the straight-line estimate, from one backward pass and with nothing fitted, of how far an "
            "ablation lowers the lead of the token that the model writes; it predicts a flip where that drop exceeds "
            "the lead",
        ),
        _term(
            "drop",
            "first-order drop",
            "The drop is how far ablating a unit lowers the lead of the written token over its rival, by first order, "
            "in logits",
        ),
        _term(
            "lead",
            "margin|logit difference",
            "The lead is the logit of the token that the model writes less that of the next best one; a flip needs it "
            "to fall below 0",
        ),
        _term(
            "drop_minus_lead",
            "drop minus lead|drop-minus-lead",
            "drop_minus_lead is the unit's first-order drop less the lead: at 0 or above first order predicts a flip",
        ),
        _term(
            "upper bound",
            "ucb|search bound|upper confidence bound",
            "The upper bound is the largest strength that a unit's or group's counts allow at the chosen confidence; a "
            "group whose bound lies below τ = {tau} is pruned",
        ),
        _term(
            "lower bound",
            "lcb|lower confidence bound",
            "The lower bound is the least strength that the counts allow, over both slices of all units "
            "searched at once",
        ),
        _term(
            "Holm",
            "holm correction|holm's correction|bonferroni|multiple testing|holm-bonferroni",
            "Holm's correction adjusts the p of many tests made at once, over all of them, so that the chance of any "
            "false finding among them stays at α = {alpha}",
        ),
        _term(
            "p-value",
            "p value|pvalue|p",
            "p is how often chance alone would do as well or better: of a unit, how it ranks among random units; of a "
            "rule, Fisher's exact test on held-out records",
        ),
        _term(
            "confidence interval",
            "interval|clopper-pearson|clopper pearson",
            "A confidence interval holds the values that the counts allow; bounds on flip rates are one-sided "
            "Clopper–Pearson",
        ),
        _term(
            "held-out",
            "held out|heldout|test split|held-out records|test records",
            "Held-out records choose nothing that is fitted: no predicate, rule, slice or unit; they only test",
        ),
        _term(
            "train records",
            "train split|training split|train record",
            "Train records are those that may choose predicates, rules, slices and units; the rest are held out",
        ),
        _term(
            "certificate",
            "",
            "A certificate is one claim with everything needed to repeat it: model, examples, units, and "
            "what came out; "
            "`mecharule verify` runs it again",
        ),
        _term(
            "anchored rule",
            "anchored|anchoring",
            "An anchored rule says, for one unit, on which records its ablation flips: learned on train flips, scored "
            "once on held-out ones",
        ),
        _term(
            "input rule",
            "",
            "An input rule reads the prompt alone, so it can be checked before the model answers",
        ),
        _term(
            "mechanism rule",
            "",
            "A mechanism rule also reads what the unit carries and its first-order drop, after one backward pass",
        ),
        _term(
            "predicate",
            "predicates",
            "A predicate is a yes-or-no property of a record in a closed language, such as a > b or carry(a, b); rules "
            "are made of them",
        ),
        _term(
            "HQ-T",
            "hqt|hq t",
            "HQ-T is a unit whose rule, learned on train records, predicts held-out flips at MCC ≥ {mcc_floor} and "
            "fires often enough",
        ),
        _term(
            "HQ-F",
            "hqf|hq f",
            "HQ-F is a unit whose rule describes the records that it was fitted on; descriptive, never evidence of "
            "prediction",
        ),
        _term(
            "attribution",
            "eap-ig|eap ig|eapig|attribution score",
            "Attribution (EAP-IG) estimates each unit's effect from gradients; it only orders the units to be tested "
            "and is no evidence of causation",
        ),
        _term(
            "guided search",
            "guided",
            "A guided search tests first the units for which first order predicts flips, and groups the rest",
        ),
        _term(
            "CHA",
            "contrastive hierarchical ablation|hierarchical ablation|hierarchical search",
            "CHA ablates groups of units, prunes a group whose upper bound lies below τ, and splits the others down to "
            "single units",
        ),
        _term(
            "pruned",
            "pruning|prune",
            "Pruned means left out with its whole group, because ablating the group flips so little that its upper "
            "bound lies below τ = {tau}",
        ),
        _term(
            "audit",
            "",
            "The audit draws pruned units at random and tests them alone, to bound how many τ-agonists were missed",
        ),
        _term(
            "exhaustive",
            "exhaustive test|exhaustive search|brute force",
            "Exhaustive means that every unit was ablated alone, which shows what the search missed",
        ),
        _term(
            "recall",
            "",
            "Recall is the share of the τ-agonists found by testing every unit alone that the search found too",
        ),
        _term(
            "union flips",
            "union|union coverage|drawn union",
            "Union flips are the records flipped by at least one localized unit; the drawn union is the "
            "same of as many "
            "random units",
        ),
        _term(
            "Jaccard",
            "jaccard index|jaccard overlap",
            "The Jaccard index of two units is the number of records that both flip over those that either flips",
        ),
        _term(
            "phase",
            "decode|decode phase|phase decode",
            "The phase says at which positions a unit is replaced; decode is at the generated tokens only, after an "
            "untouched prompt",
        ),
        _term(
            "basis",
            "mlp_out|mlp out",
            "The basis says what counts as one unit; mlp_out is one channel that an MLP writes into the "
            "residual stream",
        ),
        _term(
            "unit",
            "neuron|channel",
            "A unit is what is ablated: in the basis of this run, {basis}",
        ),
        _term(
            "attention head",
            "head",
            "An attention head is one of the parts of a layer that moves information between positions; "
            "its unit is the "
            "head's output vector",
        ),
        _term(
            "random units",
            "random unit|control|controls|control unit",
            "Random units are the control: units drawn from all others and ablated on the same held-out "
            "records, to see "
            "how many flip as much",
        ),
        _term(
            "interaction",
            "synergy",
            "Two units interact where ablating both flips more or other records than either alone",
        ),
        _term(
            "hypothesis ledger",
            "ledger",
            "The ledger keeps predictions that were registered before they were tested, and what came out",
        ),
        _term(
            "logit",
            "logits",
            "A logit is the score that a model gives a token before it chooses; the token with the largest is written",
        ),
        _term(
            "out of range",
            "out of distribution|ood",
            "Out of range is a replacement value that the unit never takes at that position in the data",
        ),
        _term(
            "Dom(m)",
            "dominance|dom",
            "Dom(m) is the strength of the strongest tested subgroup of at most m units over that of its "
            "group; above 1 "
            "pruning is not safe there",
        ),
        _term(
            "residual stream",
            "",
            "The residual stream is the vector that every layer of a transformer reads and adds to",
        ),
        _term(
            "parity",
            "",
            "parity makes a run as the paper printed its algorithm, for comparison",
        ),
        _term(
            "example-forward",
            "example forward|forward pass|example-forwards",
            "An example-forward is one ablated generation of one example: the unit of cost",
        ),
        _term(
            "query",
            "queries|group ablation",
            "A query is one group ablation asked of the model over the slices",
        ),
        _term(
            "record",
            "records",
            "A record is one prompt with what the model answers to it and whether that is right",
        ),
        _term(
            "baseline label",
            "outcome",
            "The outcome of a record is 1 where the task counts the answer as right, else 0",
        ),
        _term(
            "carry_at",
            "carry_at(a, b, 1)|carry(a, b)",
            "carry_at(a, b, k) holds where adding a and b carries out of place k, counted from 0, the "
            "units; carry(a, b) "
            "where it carries anywhere",
        ),
        _term(
            "borrow_at",
            "borrow_at(a, b, 0)|borrow(a, b)",
            "borrow_at(a, b, k) holds where subtracting b from a borrows at place k, counted from 0, the units",
        ),
        _term(
            "digit(x, k)",
            "digit(expected, 1)|digit(expected, 0)|digit(answer, 1)|digit|expected",
            "digit(x, k) is the digit of x at place k, counted from 0, the units; expected is the exact "
            "result and answer "
            "what the model wrote",
        ),
        _term(
            "not told apart",
            "told apart",
            "Not told apart means that the counts allow both to be the same at the chosen confidence; it does not mean "
            "that they are",
        ),
        _term(
            "above 4 of 4",
            "4 of 4|4 of 4 random units",
            "k of n random units: of n units drawn at random the unit flips more held-out records than k",
        ),
        _term(
            "free-form trees",
            "free-form tree|trees|decision trees",
            "Free-form trees are a predictor of any form over the same columns, beside which a short rule is judged",
        ),
        _term(
            "clean run",
            "clean|clean pass|clean-run rule",
            "The clean run is the model without any ablation; a rule of this family reads what it shows "
            "too, such as leads",
        ),
        _term(
            "selected",
            "grade|exact singleton",
            "The grade says what backs a claim: an exact singleton is the unit alone ablated on the "
            "slice, held-out a rule "
            "that predicts flips there",
        ),
        _term(
            "matched pairs",
            "matched pair|pairs",
            "Matched pairs are records of both slices of equal length, between which attribution interpolates",
        ),
        _term(
            "coverage",
            "",
            "Coverage is the share of the records on which a rule fires",
        ),
        _term(
            "mediation",
            "",
            "Mediation holds later parts at their clean values while a unit is ablated, and counts the "
            "flips that prevents",
        ),
        _term(
            "candidate",
            "candidates",
            "A candidate is a unit that attribution hands to the search",
        ),
        _term(
            "singleton",
            "",
            "A singleton is a group of one unit: the unit ablated alone",
        ),
        _term(
            "drive",
            "drive rule",
            "A unit's drive is its first-order drop; the rule of the drive says where that is large",
        ),
    )
}
"""By name."""


def written(name: str) -> str:
    """A term's name as one that compares: lower case, one blank between words."""
    return " ".join(re.sub(r"[\s_]+", " ", name.lower().replace("⁺", "+").replace("⁻", "-")).split())


SPELLINGS: Mapping[str, str] = {
    written(spelling): term.name for term in TERMS.values() for spelling in (term.name, *term.also)
}
"""The name of the term for each way to write it."""
