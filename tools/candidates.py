"""The units of a run in the order of their attribution, with what the search made of them."""

from __future__ import annotations

from mecharule_ops.findings.suppression import RISKY
from mecharule_ops.pipeline.opening import check_direction, opened, regime_of
from mecharule_ops.report.document import Table
from mecharule_ops.types import Candidates as Ranked
from mecharule_ops.types import Neuron
from tools._tables import joined, shown
from tools.arguments import Candidates
from tools.registry import Tell
from tools.result import ToolResult

Row = tuple[str, ...]


def candidates(given: Candidates, tell: Tell) -> ToolResult:
    """A row a unit: rank by |EAP-IG|, signed score, and whether the search localized it."""
    with opened(given.run) as run:
        asked = regime_of(given.regime)
        if asked is not None:
            check_direction(run.id, asked, hidden=run.config.suppress_only)
        told = [one for one in run.regimes if one is not RISKY or not run.config.suppress_only]
        regimes = told if asked is None else [asked]
        found = {
            (search.regime, agonist.neuron): "τ-agonist" if agonist.is_tau_agonist else "localized"
            for search in (run.findings.searches if run.finished else ())
            for agonist in search.agonists
        }
        tables = []
        for basis in run.config.bases:
            for regime in regimes:
                rows = _ranked(run.candidates(basis, regime), given.layer)
                said = tuple((*row, found.get((regime, unit), "")) for unit, row in rows)
                header = ("rank", "unit", "score", "search")
                tables.append(
                    (f"{basis.value} {regime.arrow}", Table(header=header, rows=said, align="rlrl"))
                )
        identifier = run.id
    return shown(f"candidates of run {identifier} by EAP-IG", joined(tables), given, run=identifier)


def _ranked(kept_units: Ranked, layer: int | None) -> list[tuple[Neuron, Row]]:
    """Kept units, strongest first."""
    kept = [
        (float(score), Neuron(kept_units.basis, part.layer, int(channel)))
        for part in kept_units.layers
        for channel, score in zip(part.channels, part.scores, strict=True)
    ]
    kept.sort(key=lambda pair: (-abs(pair[0]), pair[1]))
    rows = [(unit, (f"{rank:,}", str(unit), f"{score:+.4f}")) for rank, (score, unit) in enumerate(kept, 1)]
    return [(unit, row) for unit, row in rows if layer in (None, unit.layer)]
