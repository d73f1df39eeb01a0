"""Predicates scored against success on the train records of a run, and rules extracted from its own (paper, §4.2)."""

from __future__ import annotations

from dataclasses import replace

from mecharule_ops.errors import UsageError
from mecharule_ops.predicates.cuts import PredicateColumns
from mecharule_ops.predicates.table import build_table
from mecharule_ops.report.document import Table
from mecharule_ops.rules.ruleshap import learn_rule
from mecharule_ops.run.opening import opened
from tools._tables import shown
from tools.arguments import ExtractArguments, ScoreArguments, TableArguments
from tools.registry import Tell, ToolResult


def score(given: ScoreArguments, tell: Tell) -> ToolResult:
    """A row a predicate: AUC, average precision above base rate, Δ/σ; or why it is refused.

    Only train records are read. Exit code 2 when one is refused. Raises `UsageError` without a predicate.
    """
    texts = [text.strip() for text in given.predicates.split(";") if text.strip()]
    if not texts:
        raise UsageError("expected a predicate such as 'a > b', got none; `;` stands between several")
    with opened(given.run) as run:
        table, refusals = build_table(
            texts, run.columns, run.labels, run.train, prompt_columns=run.task.prompt_columns
        )
        identifier = run.id
    rows = [
        (predicate.text, f"{one.auc:.3f}", f"{one.ap_lift:+.3f}", f"{one.separation:+.2f}", "")
        for predicate, one in zip(table.predicates, table.scores, strict=True)
    ]
    rows += [(refusal.text, "–", "–", "–", refusal.reason) for refusal in refusals]
    header = ("predicate", "AUC", "AP lift", "Δ/σ", "refused because")
    scores = Table(header=header, rows=tuple(rows), align="lrrrl")
    title = f"predicates against success on the train records of run {identifier}"
    result = shown(title, scores, TableArguments(run=given.run, limit=max(1, len(rows))), run=identifier)
    return replace(result, exit_code=UsageError.exit_code) if refusals else result


def extract(given: ExtractArguments, tell: Tell) -> ToolResult:
    """Clauses by train MCC, best first, and the rule that their greedy OR makes; held-out records are not read."""
    with opened(given.run) as run:
        texts, labels = tuple(run.vocabulary["kept"]), run.labels[run.train]
        table = PredicateColumns(texts=texts, matrix=run.table.matrix[run.train])
        tell(f"RuleSHAP over {len(texts)} predicates and {len(labels):,} train records")
        learned = learn_rule(table, labels, seed=run.config.seed)
        identifier = run.id
    rule = learned.status.value if learned.rule is None else str(learned.rule)
    mcc = "" if learned.train is None else f" (train MCC {learned.train.mcc:.2f})"
    rows = tuple(
        (str(ranked.clause), f"{ranked.mcc:.3f}", f"{ranked.coverage:.2f}", f"{ranked.importance:+.3f}")
        for ranked in learned.clauses
    )
    best = Table(header=("clause", "train MCC", "coverage", "importance"), rows=rows, align="lrrr")
    title = f"rule of success in run {identifier}: {rule}{mcc}"
    return shown(title, best, given, run=identifier, rule=rule)
