"""The units of a run in the order of their attribution, with what the search made of them."""

from __future__ import annotations

from typing import cast

import numpy as np

from mecharule_ops.candidates import top_candidates
from mecharule_ops.report.document import Table
from mecharule_ops.types import Basis, Neuron, Regime
from tools._opening import check_direction, opened, regime_of
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
        shown_regimes = [label for label in run.config.regimes if label or not run.config.suppress_only]
        regimes = [asked] if asked is not None else [Regime(label) for label in shown_regimes]
        found = {
            (search.regime, agonist.neuron): "τ-agonist" if agonist.is_tau_agonist else "localized"
            for search in (run.findings.searches if run.store.has("findings") else ())
            for agonist in search.agonists
        }
        tables = []
        for basis in run.config.bases:
            for regime in regimes:
                scores = cast(np.ndarray, run.store.get(f"attribution-{basis.value}-{regime.value}"))
                rows = _ranked(basis, scores, run.config.cap, given.layer)
                said = tuple((*row, found.get((regime, unit), "")) for unit, row in rows)
                header = ("rank", "unit", "score", "search")
                tables.append(
                    (f"{basis.value} {regime.arrow}", Table(header=header, rows=said, align="rlrl"))
                )
        identifier = run.id
    return shown(f"candidates of run {identifier} by EAP-IG", joined(tables), given, run=identifier)


def _ranked(basis: Basis, scores: np.ndarray, cap: int, layer: int | None) -> list[tuple[Neuron, Row]]:
    """Kept units, strongest first."""
    kept = [
        (float(score), Neuron(basis, part.layer, int(channel)))
        for part in top_candidates(basis, scores, cap=cap).layers
        for channel, score in zip(part.channels, part.scores, strict=True)
    ]
    kept.sort(key=lambda pair: (-abs(pair[0]), pair[1]))
    rows = [(unit, (f"{rank:,}", str(unit), f"{score:+.4f}")) for rank, (score, unit) in enumerate(kept, 1)]
    return [(unit, row) for unit, row in rows if layer in (None, unit.layer)]
