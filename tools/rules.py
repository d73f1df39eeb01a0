"""When the units of a run flip: every learned rule, of their accounts and anchored to them, shown or not."""

from __future__ import annotations

from mecharule_ops.pipeline.opening import findings_of, opened, short_name
from mecharule_ops.report.tables import RULE
from mecharule_ops.report.tables import rules as rule_table
from mecharule_ops.saying.unit_rules import shown_of_all
from tools._tables import joined, shown
from tools.arguments import Rules
from tools.registry import Tell
from tools.result import ToolResult


def rules(given: Rules, tell: Tell) -> ToolResult:
    """A row a localized unit and family: its rule, whether it is shown, held-out MCC, that of free-form trees."""
    with opened(given.run) as run:
        findings = findings_of(run)
    tables = [(short_name(outcome), rule_table(findings, outcome)) for outcome in findings.searches]
    counted = f": {said}" if (said := shown_of_all(findings)) else ""
    return shown(f"rules of run {findings.run}{counted}", joined(tables), given, under=RULE, run=findings.run)
