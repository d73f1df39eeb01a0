"""What a run found: the report on one screen or whole, a table of it."""

from __future__ import annotations

import json

from mecharule_ops.errors import UsageError
from mecharule_ops.findings.as_json import to_json
from mecharule_ops.findings.records import Findings
from mecharule_ops.plain_text import write_file
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import find_certificate, findings_of
from tools._accounts import example_fact
from tools.arguments import ShowArguments
from tools.listing import listed
from tools.registry import Tell, ToolResult
from tools.sections import section


def show(run: Run, given: ShowArguments, tell: Tell) -> ToolResult:
    """A table, a section, or what was found on one screen, or the whole report as text, Markdown or a page.

    The data of a report are the findings.
    """
    from mecharule_ops import pages

    if given.table is not None and given.section is not None:
        raise UsageError("expected --table or --section, got both; leave one out")
    if given.table is not None:
        return listed(run, given.table, given)
    if given.section is not None or given.term is not None:
        return section(run, given)
    findings = findings_of(run)
    if given.html is None:
        return ToolResult(data=json.loads(to_json(findings)), text=_text(findings, given, example_of(run)))
    write_file(given.html, pages.render_html(findings))
    return ToolResult(data={"run": findings.run, "file": given.html}, text=f"wrote {given.html}")


def _text(findings: Findings, given: ShowArguments, example: str) -> str:
    from mecharule_ops import pages

    if given.md:
        return pages.render_markdown(findings)
    if not given.full:
        return pages.render_screen(findings, example=example)
    return pages.render_text(findings)


def example_of(run: Run) -> str:
    """Answers before and after under the ablation of the strongest unit; empty without one or of a concealed task."""
    unit = run.findings.strongest()
    if unit is None or run.task.concealed:
        return ""
    certificate = find_certificate(run, (unit.neuron,), unit.search.regime)
    return (
        "" if certificate is None else f"Without {unit.neuron}: {example_fact(certificate, False).sentence}."
    )
