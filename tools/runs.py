"""The list of runs. No model is named here, so that listing loads no numerical package."""

from __future__ import annotations

from datetime import UTC, datetime

from mecharule_ops.report.document import Table
from mecharule_ops.store.run_directory import RunSummary, list_runs, runs_directory
from tools._tables import shown
from tools.arguments import RunsArguments, TableArguments
from tools.registry import Tell, ToolResult


def runs(given: RunsArguments, tell: Tell) -> ToolResult:
    """A row a run, the one that ended last first, with how it ended; a damaged file is listed as corrupt."""
    folder = runs_directory()
    rows = tuple(_row(run) for run in list_runs(folder))
    table = Table(header=("run", "when (UTC)", "task", "model", "status"), rows=rows, align="lllll")
    return shown(f"runs in {folder}", table, TableArguments(limit=given.limit), folder=str(folder))


def _row(run: RunSummary) -> tuple[str, ...]:
    when = "" if run.when is None else datetime.fromtimestamp(run.when, UTC).strftime("%Y-%m-%d %H:%M")
    return (run.id, when, run.task, run.model, run.status)
