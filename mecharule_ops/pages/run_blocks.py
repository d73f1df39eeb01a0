"""What a run was, what it cost, and how much it found of what testing every unit alone finds.

Model, task, thresholds, versions; ablations against exhaustive search (paper, §5); recall, and whether pruning was safe
(E2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median

from mecharule_ops.cha.audit import StratumResult
from mecharule_ops.facts.searches import (
    audit_sentence,
    recall_words,
    search_names,
    shared_replacement,
    tested_all,
)
from mecharule_ops.findings.counts import RecallRow, SearchCost
from mecharule_ops.findings.records import Findings, SearchOutcome, StageCost
from mecharule_ops.numbers import k_of_n, percent, plural
from mecharule_ops.pages.document import Block, Column, Table
from mecharule_ops.types import Share, Value


def run_blocks(findings: Findings) -> tuple[Block, ...]:
    """A row a setting."""
    counts = findings.predicates
    rows = (
        ("model", f"{findings.model} (hash {findings.model_hash})"),
        ("tokenizer hash", findings.tokenizer_hash),
        ("task", findings.task),
        ("task settings", listing(findings.task_settings)),
        ("task score", f"{k_of_n(findings.task_score)} of the records, unablated"),
        ("replacement", shared_replacement(findings) or "differs by search; see their titles"),
        (
            "thresholds",
            f"τ {findings.tau:g}, ε {findings.epsilon:g}, α {findings.alpha:g} {findings.alpha_policy}",
        ),
        ("predicates", f"{counts.proposed} proposed, {counts.refused} refused, {counts.kept} kept"),
        ("proposer", findings.proposer),
        ("seed", str(findings.seed)),
        ("versions", listing(findings.versions)),
    )
    return (Table(header=("setting", "value"), rows=rows, align="ll"),)


def listing(entries: Mapping[str, Value]) -> str:
    """The entries in one line, by name: `numpy 2.3.5, torch 2.13.0`; `none recorded` when there are none."""
    return ", ".join(f"{key} {_shown(value)}" for key, value in sorted(entries.items())) or "none recorded"


def _shown(value: Value) -> str:
    """A value as printed; text with blanks or none is quoted, so that its ends can be seen."""
    text = str(value)
    return repr(value) if isinstance(value, str) and text.split() != [text] else text


STAGES = 10
"""Stages in the table of wall clock; the shorter ones are one line."""


def cost_blocks(findings: Findings) -> tuple[Block, ...]:
    """Queries and example-forwards of each search, then the longest stages."""
    key = (
        "A query is one group ablation; an example-forward is one ablated generation. N is the number of units "
        "searched; a full tree over them has 2N−1 nodes."
    )
    return (key, _searches(findings), *_stage_blocks(findings.stages))


def _searches(findings: Findings) -> Table:
    """A row a search, and one for its exhaustive run: queries against N and 2N−1, and example-forwards."""
    rows = []
    for name, outcome in zip(search_names(findings), findings.searches, strict=True):
        rows.append(_search_row(name, outcome.cost))
        if outcome.exhaustive is not None:
            rows.append(_search_row("· every unit alone", outcome.exhaustive.cost))
    header = ("search", "queries", "of N", "of 2N−1", "example-forwards", "of exhaustive")
    return Table(header=header, rows=tuple(rows), align="lrrrrr")


def _search_row(name: str, spent: SearchCost) -> tuple[str, ...]:
    n, forwards, full = spent.candidates, spent.all_forwards, spent.exhaustive_example_forwards
    predictions = (
        f", {spent.prediction_forwards:,} of them first-order predictions"
        if spent.prediction_forwards
        else ""
    )
    return (
        name,
        f"{spent.queries:,}",
        f"{percent(spent.share_of_n)} of {n:,}",
        f"{percent(spent.share_of_2n_minus_1)} of {max(0, 2 * n - 1):,}",
        f"{forwards:,}{predictions}",
        f"{percent(spent.share_of_exhaustive_forwards)} of {full:,}",
    )


def _stage_blocks(stages: tuple[StageCost, ...]) -> tuple[Block, ...]:
    """The longest stages; example-forwards only where they were counted by stage."""
    if not stages:
        return ()
    longest = sorted(stages, key=lambda stage: -stage.seconds)
    columns: list[Column[StageCost]] = [
        ("stage", "l", lambda stage: stage.stage),
        ("wall clock", "r", lambda stage: f"{stage.seconds:,.1f} s"),
    ]
    if any(stage.example_forwards for stage in stages):
        columns.append(("example-forwards", "r", lambda stage: f"{stage.example_forwards:,}"))
    total = sum(stage.seconds for stage in stages)
    said = f"Wall clock: {total:,.1f} s in {plural(len(stages), 'stage')}."
    blocks: list[Block] = [said, Table.of(longest[:STAGES], columns)]
    if rest := longest[STAGES:]:
        seconds = sum(stage.seconds for stage in rest)
        blocks.append(f"… and {plural(len(rest), 'shorter stage')}, {seconds:,.1f} s in all.")
    return tuple(blocks)


def recall_blocks(outcome: SearchOutcome) -> tuple[Block, ...]:
    """Overtopping where it was measured, then recall by strength bin, what an audit bounds, or that it is unknown."""
    told = tuple(_overtopping(outcome))
    if outcome.exhaustive is None and outcome.audit is not None:
        return (*told, audit_sentence(outcome, outcome.audit), Table.of(outcome.audit.strata, _STRATA))
    if outcome.exhaustive is None:
        return (*told, "Testing every unit alone was not run here: recall is unknown, not assumed.")
    heading = "Recall of the search against testing every unit alone, with its lower bound at 95 %:"
    return (*told, heading, _recall(outcome))


_STRATA: tuple[Column[StratumResult], ...] = (
    ("units that the search left", "l", lambda stratum: stratum.name),
    ("units", "r", lambda stratum: f"{stratum.units:,}"),
    ("tested alone now", "r", lambda stratum: f"{stratum.tested:,}"),
    ("τ-agonists", "r", lambda stratum: f"{stratum.found:,}"),
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
