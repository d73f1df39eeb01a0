"""How much a search found of what testing every unit alone finds, and whether pruning was safe (E2)."""

from __future__ import annotations

from statistics import median

from mecharule_ops.findings.records import RecallRow, SearchAudit, SearchOutcome, Share
from mecharule_ops.report.document import Block, Table, k_of_n, plural
from mecharule_ops.report.prose import audit_sentence


def recall_blocks(outcome: SearchOutcome) -> tuple[Block, ...]:
    """Dom(1) where it was measured, then recall by strength bin, what an audit bounds, or that it is unknown."""
    dominance = [_dominance(outcome)] if outcome.dominance else []
    if outcome.exhaustive is None and outcome.audit is not None:
        return (*dominance, audit_sentence(outcome.audit), _strata(outcome.audit))
    if outcome.exhaustive is None:
        return (*dominance, "Testing every unit alone was not run here: recall is unknown, not assumed.")
    return (*dominance, "Recall of the search against testing every unit alone:", _recall(outcome))


def _strata(audit: SearchAudit) -> Table:
    """A row a way in which the search left units: how many there were, were drawn, and reach τ."""
    rows = tuple(
        (stratum.name, f"{stratum.units:,}", f"{stratum.tested:,}", f"{stratum.found:,}")
        for stratum in audit.strata
    )
    return Table(
        header=("units that the search left", "units", "tested alone now", "τ-agonists"),
        rows=rows,
        align="lrrr",
    )


def _recall(outcome: SearchOutcome) -> Table:
    """A row a strength bin: found of the τ-agonists, and of all units that exhaustive search localizes."""
    found = {(row.criterion, _bin(row)): row.found for row in outcome.recall}
    bins = dict.fromkeys(_bin(row) for row in sorted(outcome.recall, key=lambda row: (row.whole, row.low)))
    rows = tuple(
        (name, k_of_n(found.get(("point", name))), k_of_n(found.get(("ucb", name)))) for name in bins
    )
    return Table(
        header=("strength Ê", "found, Ê ≥ τ (τ-agonists)", "found, Û ≥ τ (localized)"), rows=rows, align="lrr"
    )


def _bin(row: RecallRow) -> str:
    return "all" if row.whole else f"[{row.low:.2g}, {row.high:.2g}{']' if row.high == 1.0 else ')'}"


def _dominance(outcome: SearchOutcome) -> str:
    ratios = [group.ratio for group in outcome.dominance]
    stronger = k_of_n(Share(count=sum(ratio > 1 for ratio in ratios), n=len(ratios)))
    return (
        "Dom(1) is the strength of the strongest tested unit of an opened group over that of the group: median "
        f"{median(ratios):.2f} over {plural(len(ratios), 'opened group')}. In {stronger} of them a unit measured "
        "stronger than its group; where that is no sampling noise, pruning is not safe."
    )
