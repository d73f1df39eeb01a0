"""Rules of success over a run's own vocabulary, extracted anew on its train records (paper, §4.2)."""

from __future__ import annotations

from mecharule_ops.pipeline.opening import opened
from mecharule_ops.report.document import Table
from mecharule_ops.rules.ruleshap import learn_rule
from tools._tables import shown
from tools.arguments import Extract
from tools.registry import Tell
from tools.result import ToolResult


def extract(given: Extract, tell: Tell) -> ToolResult:
    """Clauses by train MCC, best first, and the rule that their greedy OR makes; held-out records are not read."""
    with opened(given.run) as run:
        matrix, labels = run.table.matrix[run.train], run.labels[run.train]
        tell(f"RuleSHAP over {matrix.shape[1]} predicates and {len(labels):,} train records")
        learned = learn_rule(matrix, run.vocabulary["kept"], labels, seed=run.config.seed)
        identifier = run.id
    rule = learned.status.value if learned.rule is None else str(learned.rule)
    mcc = "" if learned.train is None else f" (train MCC {learned.train.mcc:.2f})"
    rows = tuple(
        (str(ranked.clause), f"{ranked.mcc:.3f}", f"{ranked.coverage:.2f}", f"{ranked.importance:+.3f}")
        for ranked in learned.clauses
    )
    table = Table(header=("clause", "train MCC", "coverage", "importance"), rows=rows, align="lrrr")
    title = f"rule of success in run {identifier}: {rule}{mcc}"
    return shown(title, table, given, run=identifier, rule=rule)
