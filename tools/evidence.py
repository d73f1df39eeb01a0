"""The certificates of a run."""

from __future__ import annotations

from mecharule_ops.pipeline.opening import opened
from mecharule_ops.report.document import Table
from tools._tables import shown
from tools.arguments import Evidence
from tools.registry import Tell
from tools.result import ToolResult


def evidence(given: Evidence, tell: Tell) -> ToolResult:
    """A row a certificate: id, kind, units, examples, claim. A changed certificate is refused by name."""
    with opened(given.run) as run:
        rows = tuple(
            (
                certificate.id,
                certificate.kind,
                ", ".join(certificate.units),
                str(len(certificate.example_ids)),
                certificate.claim,
            )
            for certificate in run.store.certificates()
        )
        table = Table(header=("certificate", "kind", "units", "examples", "claim"), rows=rows, align="lllrl")
        return shown(f"certificates of run {run.id}", table, given, run=run.id)
