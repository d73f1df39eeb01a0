"""What a run cost: ablations against exhaustive search, and where the time went (paper, §5)."""

from __future__ import annotations

from mecharule_ops.findings.records import Findings, SearchCost, StageCost
from mecharule_ops.numbers import percent, plural
from mecharule_ops.report.document import Block, Table
from mecharule_ops.saying.searches import search_names

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
    counted = any(stage.example_forwards for stage in stages)
    rows = tuple(
        (stage.stage, f"{stage.seconds:,.1f} s", *([f"{stage.example_forwards:,}"] if counted else []))
        for stage in longest[:STAGES]
    )
    header = ("stage", "wall clock", *(["example-forwards"] if counted else []))
    total = sum(stage.seconds for stage in stages)
    blocks: list[Block] = [f"Wall clock: {total:,.1f} s in {plural(len(stages), 'stage')}."]
    blocks.append(Table(header=header, rows=rows, align="lrr"[: len(header)]))
    if rest := longest[STAGES:]:
        seconds = sum(stage.seconds for stage in rest)
        blocks.append(f"… and {plural(len(rest), 'shorter stage')}, {seconds:,.1f} s in all.")
    return tuple(blocks)
