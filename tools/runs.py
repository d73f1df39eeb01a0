"""The runs on this machine."""

from __future__ import annotations

from datetime import UTC, datetime

from mecharule_ops.report.document import Table
from mecharule_ops.store.run_directory import RunSummary, list_runs, runs_directory
from tools._tables import shown
from tools.arguments import Runs, TableArguments
from tools.registry import Tell
from tools.result import ToolResult


def runs(given: Runs, tell: Tell) -> ToolResult:
    """A row a run, newest first, with how it ended; a damaged file is listed as corrupt."""
    folder = runs_directory()
    rows = tuple(_row(run) for run in list_runs(folder))
    table = Table(header=("run", "begun", "task", "model", "status"), rows=rows, align="lllll")
    return shown(f"runs in {folder}", table, TableArguments(limit=given.limit), folder=str(folder))


def _row(run: RunSummary) -> tuple[str, ...]:
    begun = "" if run.created is None else datetime.fromtimestamp(run.created, UTC).strftime("%Y-%m-%d %H:%M")
    return (run.id, begun, run.task, run.model, run.status)
