"""What a run holds, as tables: units, rules, certificates, claims, search trees, candidates, slices."""

from __future__ import annotations

from collections.abc import Iterable

from mecharule_ops.facts.unit_rules import shown_of_all
from mecharule_ops.pages.document import Table
from mecharule_ops.pages.rows import KINDS, RULE, WORDS, CandidateRow, TreeRow, candidate_rows, tree_rows
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import check_direction, findings_of, regime_of
from tools._tables import shown
from tools.arguments import CandidatesArguments, ShowArguments, ShownTable, TableArguments
from tools.registry import Tell, ToolResult


def listed(run: Run, table: ShownTable, given: ShowArguments) -> ToolResult:
    """One table of a run, a row a thing; of tree and candidates one layer alone where one is named."""
    if table == "candidates":
        return _candidates(run, given, given.layer, candidate_rows(run))
    kind, rows_of = KINDS[table]
    rows = tree_rows(run, given.search) if kind is TreeRow else rows_of(run)
    kept = [row for row in rows if kind is not TreeRow or given.layer in (None, row.layer)]
    titles = {"units": "localized units of", "claims": "claims registered in", "tree": "search trees of"}
    title = f"{titles.get(table, f'{table} of')} run {run.id}"
    if table == "rules" and (said := shown_of_all(findings_of(run))):
        title += f": {said}"
    return shown(title, Table.of_rows(kind, kept), given, under=(WORDS, RULE), key=table, run=run.id)


def candidates(run: Run, given: CandidatesArguments, tell: Tell) -> ToolResult:
    """A row a unit: rank by |EAP-IG|, signed score, and whether the search localized it.

    Without scores, where nothing read them, in the order of channels and without ranks.
    """
    asked = regime_of(given.regime)
    if asked is not None:
        check_direction(run.id, asked, hidden=run.config.suppress_only)
    return _candidates(run, given, given.layer, candidate_rows(run, asked))


def _candidates(
    run: Run, given: TableArguments, layer: int | None, every: Iterable[CandidateRow]
) -> ToolResult:
    rows = [*every]
    by = (
        "by EAP-IG"
        if any(row.score is not None for row in rows)
        else "in the order of channels: EAP-IG was not asked (--set attribution=always asks it)"
    )
    table = Table.of_rows(CandidateRow, [row for row in rows if layer in (None, row.layer)])
    return shown(f"candidates of run {run.id} {by}", table, given, key="candidates", run=run.id)
