"""The hypothesis ledger of a run, as its events tell it."""

from __future__ import annotations

from mecharule_ops.pipeline.opening import opened
from mecharule_ops.report.document import Table
from mecharule_ops.state.run_state import HypothesisView
from tools._tables import shown
from tools.arguments import Hypotheses
from tools.registry import Tell
from tools.result import ToolResult


def hypotheses(given: Hypotheses, tell: Tell) -> ToolResult:
    """A row a hypothesis, in the order registered; none before a refinement."""
    with opened(given.run) as run:
        known, identifier = run.told.hypotheses, run.id
    header = ("id", "unit", "state", "value", "needed", "n", "flips", "statement")
    rows = tuple(_row(view) for view in known.values())
    table = Table(header=header, rows=rows, align="lllrrrrl")
    return shown(f"hypotheses of run {identifier}", table, given, run=identifier)


def _row(view: HypothesisView) -> tuple[str, ...]:
    told, outcome = view.registered, view.decided
    measured = (
        ("–", "–", "–")
        if outcome is None
        else (
            "–" if outcome.value is None else f"{outcome.value:.2f}",
            str(outcome.n),
            str(outcome.positives),
        )
    )
    value, n, positives = measured
    return (
        told.hypothesis,
        told.subject,
        view.state,
        value,
        f"{told.threshold:.2f}",
        n,
        positives,
        told.statement,
    )
