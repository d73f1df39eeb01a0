"""How well predicates that somebody thought of tell success from failure, on the train records of a run."""

from __future__ import annotations

from mecharule_ops.errors import UsageError
from mecharule_ops.pipeline.opening import opened
from mecharule_ops.predicates.table import build_table
from mecharule_ops.report.document import Table
from tools._tables import shown
from tools.arguments import Score, TableArguments
from tools.registry import Tell
from tools.result import ToolResult


def score(given: Score, tell: Tell) -> ToolResult:
    """A row a predicate: AUC, average precision above base rate, Δ/σ; or why it is refused.

    Only train records are read. Raises `UsageError` without a predicate.
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
    return shown(title, scores, TableArguments(run=given.run, limit=max(1, len(rows))), run=identifier)
