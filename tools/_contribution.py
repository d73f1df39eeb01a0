"""What a language model added to a run, put under the run's report."""

from __future__ import annotations

from dataclasses import replace

from mecharule_ops.pipeline.run import Run
from mecharule_ops.store.keys import CONTRIBUTION
from tools.result import ToolResult


def with_contribution(report: ToolResult, run: Run) -> ToolResult:
    """The report with its lines and figures; as it is where no model proposed anything."""
    if not run.store.has(CONTRIBUTION):
        return report
    kept = run.store.get(CONTRIBUTION)
    text = "\n".join([report.text.rstrip("\n"), "", *kept["lines"]])
    return replace(report, text=text, data={**report.data, "language_model": kept})
