"""The report of a finished run, and its recorded events told again, as fast as asked."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from textwrap import fill

from mecharule_ops.errors import UsageError
from mecharule_ops.events import Event
from mecharule_ops.findings.as_json import to_json
from mecharule_ops.findings.records import Findings
from mecharule_ops.plain_text import write_file
from mecharule_ops.questions.support import strongest
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import find_certificate, findings_of, opened
from mecharule_ops.saying.glossary import explained
from tools._accounts import example_fact
from tools.arguments import ShowArguments
from tools.registry import Tell, ToolResult


def show(given: ShowArguments, tell: Tell) -> ToolResult:
    """What was found on one screen, or the whole report as text, Markdown or a page; the data are the findings."""
    from mecharule_ops import report

    with opened(given.run) as run:
        findings = findings_of(run)
        data = json.loads(to_json(findings))
        if given.html is None:
            text = _text(findings, given, example_of(run))
            return ToolResult(data=data, text=text)
    write_file(given.html, report.render_html(findings))
    return ToolResult(data={"run": findings.run, "file": given.html}, text=f"wrote {given.html}")


def _text(findings: Findings, given: ShowArguments, example: str) -> str:
    from mecharule_ops import report

    if given.md:
        return report.render_markdown(findings)
    if not given.full:
        return report.render_screen(findings, example=example)
    text = report.render_text(findings)
    return f"{text}\n{fill(explained(text), report.WIDEST)}\n"


def example_of(run: Run) -> str:
    """Answers before and after under the ablation of the strongest unit; empty without one or of a concealed task."""
    unit = strongest(run.findings)
    if unit is None or run.task.concealed:
        return ""
    certificate = find_certificate(run, (unit.neuron,), unit.regime)
    return (
        "" if certificate is None else f"Without {unit.neuron}: {example_fact(certificate, False).sentence}."
    )


LONGEST_PAUSE = 5.0
"""Seconds waited at most between two events: a run that was resumed the next day has long gaps."""


def replay(
    name: str, show: Callable[[Event], None], speed: float, wait: Callable[[float], None] = time.sleep
) -> ToolResult:
    """How many events were told. `speed` 1 keeps the recorded pauses, 10 a tenth of them, 0 none.

    Raises `UsageError` for a negative speed.
    """
    if speed < 0:
        raise UsageError(f"expected a speed of 0 or more, got {speed:g}")
    told, before = 0, None
    with opened(name) as run:
        for _, moment, event in run.store.events():
            if speed and before is not None:
                wait(min(LONGEST_PAUSE, max(0.0, moment - before) / speed))
            before = moment
            told += 1
            show(event)
        return ToolResult(data={"run": run.id, "events": told}, text=f"{told} events of run {run.id}")
