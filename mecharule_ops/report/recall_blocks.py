"""How much a search found of what testing every unit alone finds, and whether pruning was safe (E2)."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from mecharule_ops.findings.records import RecallRow, SearchAudit, SearchOutcome
from mecharule_ops.numbers import k_of_n, plural
from mecharule_ops.report.document import Block, Table
from mecharule_ops.saying.searches import audit_sentence, recall_words, tested_all
from mecharule_ops.types import Share


def recall_blocks(outcome: SearchOutcome) -> tuple[Block, ...]:
    """Overtopping where it was measured, then recall by strength bin, what an audit bounds, or that it is unknown."""
    told = tuple(_overtopping(outcome))
    if outcome.exhaustive is None and outcome.audit is not None:
        return (*told, audit_sentence(outcome, outcome.audit), _strata(outcome.audit))
    if outcome.exhaustive is None:
        return (*told, "Testing every unit alone was not run here: recall is unknown, not assumed.")
    heading = "Recall of the search against testing every unit alone, with its lower bound at 95 %:"
    return (*told, heading, _recall(outcome))


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
    every = tested_all([outcome])
    rows = tuple(
        (name, *(recall_words(found.get((kind, name)), every=every) for kind in ("point", "ucb")))
        for name in bins
    )
    return Table(
        header=("strength Ê", "found, Ê ≥ τ (τ-agonists)", "found, Û ≥ τ (localized)"), rows=rows, align="lrr"
    )


def _bin(row: RecallRow) -> str:
    return "all" if row.whole else f"[{row.low:.2g}, {row.high:.2g}{']' if row.high == 1.0 else ')'}"


def _overtopping(outcome: SearchOutcome) -> Iterator[str]:
    """How far small subgroups explain their groups, and how far τ-agonists flip the same records."""
    if groups := outcome.dominance:
        stronger = k_of_n(Share(count=sum(group.ratio > 1 for group in groups), n=len(groups)))
        yield (
            "Dom(m) is the strength of the strongest tested subgroup of at most m units over that of its opened group: "
            f"median {median(group.ratio for group in groups):.2f} for m = 1 and "
            f"{median(group.small_ratio for group in groups):.2f} for m = 4 over {plural(len(groups), 'opened group')}."
            f" In {stronger} of them a unit measured stronger than its group; where that is no sampling noise, pruning "
            "is not safe."
        )
    if overlaps := [pair.shared.rate for pair in outcome.overlaps if pair.shared.n]:
        yield (
            f"Records flipped by both of two τ-agonists, of those flipped by either (Jaccard): median "
            f"{median(overlaps):.2f}, from {min(overlaps):.2f} to {max(overlaps):.2f} over "
            f"{plural(len(overlaps), 'pair')}."
        )
