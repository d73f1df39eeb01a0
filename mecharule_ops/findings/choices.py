"""Where the paper's text leaves a choice, or its published code differs from it: what this tool does."""

from __future__ import annotations

from mecharule_ops.findings.records import NamedChoice

NAMED_CHOICES = tuple(
    NamedChoice(setting=setting, sentence=sentence)
    for setting, sentence in (
        (
            "mean-positional baseline",
            "The mean is taken at the generation position that is replaced, padding excluded. The "
            "published code writes the mean of the first sequence slot everywhere; the baseline slot0 "
            "reproduces that.",
        ),
        (
            "cost denominator",
            "Cost is given against N exhaustive singletons first. The published code divides by 2N − 1, "
            "about half that share; both are printed.",
        ),
        (
            "HQ-T combination",
            "Clauses and their OR-combination are chosen on the train split and the test split is scored "
            "once. The published code chooses the combination on the test labels.",
        ),
        (
            "anchoring vocabulary",
            "Before a unit's rule is learned, up to `refinements` predicates are proposed from its own flips on "
            "train records and join Φ for that unit. The paper uses one Φ for all units; 0 reproduces that.",
        ),
        (
            "smallest gain of a clause",
            "A clause joins a rule only if it raises the train MCC by .02, which generalises better on a few "
            "hundred records. The paper keeps any gain.",
        ),
        (
            "size of a splitter",
            "A learned splitter has at most 8 clauses, and one splits a run. The paper names no limit and unites the "
            "units of up to five splitters.",
        ),
        (
            "splitter with power",
            "Of the combined rule and its clauses the one with the largest train MCC × (m / n)² splits, m its smallest "
            "slice up to the n asked for, and more records are observed where an outcome is rare. The paper takes its "
            "rules as they are.",
        ),
        (
            "anchoring target",
            "Rules are fitted on D_b, the records of one regime. The published code fits over both regimes "
            "and keeps the best of three targets.",
        ),
        (
            "catastrophic units",
            "A unit that makes every answer wrong is kept and listed. The published code drops it.",
        ),
        (
            "held-out records",
            "They share at most 8 strata, cut by predicates so that both sides stay large, and both outcomes. The "
            "paper stratifies by clusters of predicate space and names no method.",
        ),
        (
            "rare predicates",
            "The filter by median absolute deviation (MAD) drops a predicate whose rarer outcome is unusually rare and "
            "under .5 %. The paper does not say what is an outlier in what.",
        ),
        (
            "short slices",
            "A slice that is too small is searched as it is and its power is reported. The published code "
            "tops it up from the other slice.",
        ),
        (
            "slices drawn at random",
            "Slices are uniform samples of D+ and D-, so that their bounds hold there. The paper covers them by "
            "k-center, as the condition rule-spectral does here, farthest first; the published code takes about two "
            "medoids among 64 random points for large slices.",
        ),
        (
            "division",
            "A quotient counts when at least its integer part is right and its decimals are a truncation. "
            "The published code accepts any string prefix of the quotient.",
        ),
        (
            "EAP-IG gradient",
            "The gradient is taken at the unit itself, the MLP output for mlp_out. The published code "
            "takes it at the MLP input.",
        ),
        (
            "pairs of equal length",
            "Attribution pairs only examples of equal token length, since it interpolates position by position; those "
            "without a partner are counted. The paper does not speak of length.",
        ),
        (
            "units of score zero",
            "Units whose attribution score is exactly 0 stay candidates. The paper keeps those of non-zero score.",
        ),
        (
            "proposed predicates",
            "Predicates are parsed into a closed language and evaluated by column; nothing that a language "
            "model writes is executed. The published code executes its Python in-process.",
        ),
        (
            "level of the upper bounds",
            "Each slice's upper bound is taken at α: the strength is that of the stronger slice, and only that "
            "slice's bound can fall below it. The paper takes both at α/2; parity does too.",
        ),
        (
            "inclusion",
            "Localized means Û_E ≥ τ, the paper's inclusion rule; τ-agonist means Ê ≥ τ. The paper's "
            "tables count the first; both are counted here.",
        ),
    )
)
"""In the order of the pipeline's influence on the numbers."""
_OF_ONE_TASK = {"division": "arithmetic"}


def choices_for(task: str) -> tuple[NamedChoice, ...]:
    """The choices that a run of this task makes."""
    return tuple(choice for choice in NAMED_CHOICES if _OF_ONE_TASK.get(choice.setting, task) == task)
