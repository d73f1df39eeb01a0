"""What a run was and what it cost: model, task, thresholds, versions; ablations against exhaustive search, and time."""

from __future__ import annotations

from collections.abc import Mapping

from mecharule_ops.findings.records import Findings, SearchCost, StageCost
from mecharule_ops.numbers import k_of_n, percent, plural
from mecharule_ops.report.document import Block, Table
from mecharule_ops.saying.searches import search_names, shared_replacement
from mecharule_ops.types import Value


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
