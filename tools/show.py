"""The report of a finished run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from mecharule_ops.errors import StoreError
from mecharule_ops.findings.as_json import to_json
from mecharule_ops.findings.records import Findings
from mecharule_ops.pipeline.opening import findings_of, opened
from mecharule_ops.pipeline.run import Run
from mecharule_ops.store.keys import CONTRIBUTION
from tools.arguments import Show
from tools.registry import Tell
from tools.result import ToolResult


def show(given: Show, tell: Tell) -> ToolResult:
    """What was found on one screen, or the whole report as text, Markdown or a page; the data are the findings."""
    from mecharule_ops import report

    with opened(given.run) as run:
        findings = findings_of(run)
        data = json.loads(to_json(findings))
        if given.html is None:
            return with_contribution(ToolResult(data=data, text=_text(findings, given)), run)
    try:
        Path(given.html).write_text(report.render_html(findings), encoding="utf-8")
    except OSError as error:
        raise StoreError(f"expected to write {given.html}, the system says: {error.strerror}") from error
    return ToolResult(data={"run": findings.run, "file": given.html}, text=f"wrote {given.html}")


def _text(findings: Findings, given: Show) -> str:
    from mecharule_ops import report

    if given.md:
        return report.render_markdown(findings)
    return report.render_text(findings) if given.full else report.render_screen(findings)


def with_contribution(report: ToolResult, run: Run) -> ToolResult:
    """The report with its lines and figures; as it is where no model proposed anything."""
    if not run.store.has(CONTRIBUTION):
        return report
    kept = run.store.get(CONTRIBUTION)
    text = "\n".join([report.text.rstrip("\n"), "", *kept["lines"]])
    return replace(report, text=text, data={**report.data, "language_model": kept})
