"""The localized units of a run."""

from __future__ import annotations

from mecharule_ops.pipeline.opening import findings_of, opened, short_name
from mecharule_ops.report.tables import agonists
from tools._tables import joined, shown
from tools.arguments import Neurons
from tools.registry import Tell
from tools.result import ToolResult


def neurons(given: Neurons, tell: Tell) -> ToolResult:
    """A row a localized unit with flips a slice, bounds, selectivity, its effect and whether it is selective."""
    with opened(given.run) as run:
        findings = findings_of(run)
    tables = [(short_name(outcome), agonists(findings, outcome)) for outcome in findings.searches]
    return shown(f"localized units of run {findings.run}", joined(tables), given, run=findings.run)
