"""Where attribution puts its strongest units and where ablation finds them (paper, appendix C).

Attribution ranks by |EAP-IG score|; the search by the measured strength of its localized units. The first is no
causal claim; that the two differ is what is measured here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from mecharule_ops.experiments.baselines import strengths
from mecharule_ops.experiments.counts import REGIMES
from mecharule_ops.experiments.plan import FinishedRun
from mecharule_ops.experiments.statistics import rank_correlation, spelled, t_interval
from mecharule_ops.findings.records import SearchOutcome
from mecharule_ops.report.document import Table
from mecharule_ops.saying.flips import by_strength
from mecharule_ops.types import Neuron, Regime

TOP = 50


def top_attributed(scores: Float[np.ndarray, "layer channel"], search: SearchOutcome) -> list[Neuron]:
    """The units with the largest |score|, at most `TOP`; ties in the order of their names."""
    order = np.argsort(-np.abs(scores).reshape(-1), kind="stable")[:TOP]
    basis, width = search.intervention.basis, scores.shape[1]
    return [Neuron(basis, int(place) // width, int(place) % width) for place in order]


def top_localized(search: SearchOutcome) -> list[Neuron]:
    """The strongest localized units, at most `TOP`."""
    return [agonist.neuron for agonist in by_strength(search.agonists)[:TOP]]


def layer_table(runs: Sequence[FinishedRun]) -> Table:
    """By layer and regime: how many of either top list lie there, summed over seeds, and how many in both."""
    rows = []
    for regime in REGIMES:
        attributed, localized, both = Counter[int](), Counter[int](), Counter[int]()
        for scores, search in _searches(runs, regime):
            first, second = top_attributed(scores, search), top_localized(search)
            attributed.update(unit.layer for unit in first)
            localized.update(unit.layer for unit in second)
            both.update(unit.layer for unit in set(first) & set(second))
        rows += [
            (regime.arrow, str(layer), str(attributed[layer]), str(localized[layer]), str(both[layer]))
            for layer in sorted({*attributed, *localized})
        ]
    header = ("regime", "layer", f"attribution's top {TOP}", f"strongest {TOP} localized", "in both")
    return Table(header=header, rows=tuple(rows), align="lrrrr")


def rank_sentence(runs: Sequence[FinishedRun]) -> str:
    """Spearman's ρ of |score| and measured strength, where every unit was tested alone."""
    parts = []
    for regime in REGIMES:
        found = t_interval([_rho(scores, search) for scores, search in _searches(runs, regime)])
        if found.n:
            found = replace(found, low=max(-1.0, found.low), high=min(1.0, found.high))
            parts.append(f"{spelled(found, 2, signed=True)} in {regime.arrow}")
    if not parts:
        return (
            "Not every unit was tested alone, so the rank correlation of attribution and strength is unknown."
        )
    return (
        f"Spearman's ρ of |attribution| and the strength of every unit, mean over seeds: {', '.join(parts)}."
    )


def _searches(
    runs: Sequence[FinishedRun], regime: Regime
) -> list[tuple[Float[np.ndarray, "layer channel"], SearchOutcome]]:
    return [(run.scores[regime], search) for run in runs if (search := run.search(regime)) is not None]


def _rho(scores: Float[np.ndarray, "layer channel"], search: SearchOutcome) -> float:
    measured = strengths(search)
    if not measured:
        return math.nan
    attributed = [abs(float(scores[unit.layer, unit.channel])) for unit in measured]
    return rank_correlation(attributed, list(measured.values()))
