"""The model as a map: layers across, strength up, every localized unit at its place and the shown ones by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mecharule_ops.findings.records import Findings, SearchOutcome
from mecharule_ops.pages.drawing import GREY, INK, draw, glyphs, tidy
from mecharule_ops.types import Agonist, Neuron, Regime

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "map"
_NAMED = 12
"""Most units with their names in one panel."""
_LINES = ("-", "--", ":")
_CAPTION = (
    "The model, layer by layer: each localized unit at the share of its stronger slice that it flips. Filled circles "
    "are shown (the first by name), open squares are not shown; the dashed line is τ. Grey steps: the "
    "whole layer ablated at once."
)


def model_map(findings: Findings) -> dict[str, tuple[str, str]]:
    """`NAME` → (SVG, caption), a panel a regime; empty where nothing was localized and no whole layer was ablated."""
    shown = [outcome for outcome in findings.searches if outcome.agonists or outcome.whole_layers]
    regimes = sorted({outcome.regime for outcome in shown}, key=lambda regime: -regime.value)
    if not regimes:
        return {}

    def plot(figure: Figure) -> None:
        panels = figure.subplots(len(regimes), 1, sharex=True, squeeze=False)[:, 0]
        for axes, regime in zip(panels, regimes, strict=True):
            _panel(axes, [outcome for outcome in shown if outcome.regime is regime], regime, findings)
        panels[-1].set(xlabel="layer", xlim=(-0.7, max(map(_depth, shown)) + 0.7))
        panels[-1].xaxis.get_major_locator().set_params(integer=True)

    return {NAME: (draw(NAME, plot, height=0.5 + 2.4 * len(regimes)), _CAPTION)}


def _panel(axes: Axes, outcomes: list[SearchOutcome], regime: Regime, findings: Findings) -> None:
    for outcome, line in zip(outcomes, _LINES, strict=False):
        layers = sorted((whole.layer, whole.estimate.strength) for whole in outcome.whole_layers)
        if layers:
            label = f"whole layer, {outcome.intervention.basis}"
            axes.step(*zip(*layers, strict=True), line, where="mid", color=GREY, linewidth=1, label=label)
    units = tuple(agonist for outcome in outcomes for agonist in outcome.agonists)
    ranked: dict[Neuron, Agonist] = {
        unit.neuron: unit.agonist for unit in findings.shown() if unit.search.regime is regime
    }
    if units:
        layer = np.array([unit.neuron.layer for unit in units])
        strength = np.array([unit.estimate.strength for unit in units])
        shown = np.array([unit.neuron in ranked for unit in units])
        glyphs(axes, layer, strength, shown, ("shown", "not shown"))
    for unit in _apart(list(ranked.values())):
        axes.annotate(
            str(unit.neuron),
            _place(unit),
            (5, 0),
            textcoords="offset points",
            fontsize=8,
            color=INK,
            va="center",
        )
    axes.axhline(findings.tau, color=INK, linestyle="--", linewidth=0.8)
    axes.set(ylabel=f"flipped share, {regime.arrow}", ylim=(-0.03, 1.05))
    tidy(axes, legend=True)


def _apart(units: list[Agonist]) -> list[Agonist]:
    """The first units whose names do not cover one another: three layers wide and a fifteenth high each."""
    named: list[Agonist] = []
    for unit in units:
        layer, strength = _place(unit)
        if len(named) < _NAMED and all(
            abs(layer - other[0]) >= 3 or abs(strength - other[1]) >= 1 / 15 for other in map(_place, named)
        ):
            named.append(unit)
    return named


def _place(unit: Agonist) -> tuple[int, float]:
    return unit.neuron.layer, unit.estimate.strength


def _depth(outcome: SearchOutcome) -> int:
    layers = [unit.neuron.layer for unit in outcome.agonists]
    return max(layers + [whole.layer for whole in outcome.whole_layers])
