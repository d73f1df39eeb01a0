"""The figures of a run as SVG text, equal bytes for equal findings: its map, a search's tree, drop against lead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mecharule_ops.facts.fact import said
from mecharule_ops.findings.accounts import Account, LeadsAndDrops
from mecharule_ops.findings.counts import TreeNode
from mecharule_ops.findings.records import Findings, SearchOutcome
from mecharule_ops.pages.chain_plots import chain_figures
from mecharule_ops.pages.document import Figures
from mecharule_ops.pages.drawing import BLUE, GREY, INK, draw, figure_stem, glyphs, tidy
from mecharule_ops.types import Regime, Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAP = "map"
_NAMED = 12
"""Most units with their names in one panel."""
_LINES = ("-", "--", ":")
_SHADE = {
    Verdict.PRUNED: (GREY, ""),
    Verdict.SPLIT: (BLUE, ""),
    Verdict.KEPT: (GREY, "//"),
    Verdict.DROPPED: (GREY, "."),
}


def figures(findings: Findings) -> Figures:
    """Every figure of a run."""
    accounts = [account for outcome in findings.searches for account in outcome.accounts]
    each = (
        model_map(findings),
        *map(chain_figures, findings.chains),
        *map(account_figures, accounts),
        *(tree_figure(findings, index) for index in range(len(findings.searches))),
    )
    return {name: drawn for some in each for name, drawn in some.items()}


def model_map(findings: Findings) -> Figures:
    """Layers across, strength up, a panel a regime; empty where nothing was localized and no whole layer ablated."""
    shown = [outcome for outcome in findings.searches if outcome.agonists or outcome.whole_layers]
    regimes = sorted({outcome.regime for outcome in shown}, key=lambda regime: -regime.value)
    if not regimes:
        return {}
    layers = [whole.layer for outcome in shown for whole in outcome.whole_layers]
    layers += [agonist.neuron.layer for outcome in shown for agonist in outcome.agonists]

    def plot(figure: Figure) -> None:
        panels = figure.subplots(len(regimes), 1, sharex=True, squeeze=False)[:, 0]
        for axes, regime in zip(panels, regimes, strict=True):
            _panel(axes, [outcome for outcome in shown if outcome.regime is regime], regime, findings)
        panels[-1].set(xlabel="layer", xlim=(-0.7, max(layers) + 0.7))
        panels[-1].xaxis.get_major_locator().set_params(integer=True)

    return {MAP: (draw(MAP, plot, height=0.5 + 2.4 * len(regimes)), said("caption.map"))}


def _panel(axes: Axes, outcomes: list[SearchOutcome], regime: Regime, findings: Findings) -> None:
    for outcome, line in zip(outcomes, _LINES, strict=False):
        if layers := sorted((whole.layer, whole.estimate.strength) for whole in outcome.whole_layers):
            label = f"whole layer, {outcome.intervention.basis}"
            axes.step(*zip(*layers, strict=True), line, where="mid", color=GREY, linewidth=1, label=label)
    shown = {unit.neuron: unit for unit in findings.shown() if unit.search.regime is regime}
    units = [agonist for outcome in outcomes for agonist in outcome.agonists]
    if units:
        x, y = np.array([(unit.neuron.layer, unit.estimate.strength) for unit in units]).T
        glyphs(axes, x, y, np.array([unit.neuron in shown for unit in units]), ("shown", "not shown"))
    style: Any = {"textcoords": "offset points", "fontsize": 8, "color": INK, "va": "center"}
    named: list[tuple[int, float]] = []
    for unit in shown.values():
        layer, strength = place = unit.neuron.layer, unit.estimate.strength
        # A name is three layers wide and a fifteenth high; one that would cover another is left out.
        clear = all(abs(layer - x) >= 3 or abs(strength - y) >= 1 / 15 for x, y in named)
        if clear and len(named) < _NAMED:
            named.append(place)
            axes.annotate(str(unit.neuron), place, (5, 0), **style)
    axes.axhline(findings.tau, color=INK, linestyle="--", linewidth=0.8)
    axes.set(ylabel=f"flipped share, {regime.arrow}", ylim=(-0.03, 1.05))
    tidy(axes, legend=True)


def account_figures(account: Account) -> Figures:
    """Drop against lead by record, flipped and unflipped told apart by glyph; colour only repeats it."""
    points = account.points
    if points is None or not points.lead:
        return {}
    above = [drop > lead for lead, drop in zip(points.lead, points.drop, strict=True)]
    target = "flips" if account.becomes_right is None else "becomes right"
    parts = {"unit": account.neuron, "target": target, "of": len(above)}
    right = sum(said == flip for said, flip in zip(above, points.flipped, strict=True))
    name = f"{figure_stem('account', account.regime, account.neuron)}-leads"
    caption = said("caption.leads", right=right, **parts)
    return {name: (draw(name, partial(_draw_leads, points)), caption)}


def _draw_leads(points: LeadsAndDrops, figure: Figure) -> None:
    axes = figure.subplots()
    lead, drop, flipped = (np.array(values) for values in (points.lead, points.drop, points.flipped))
    glyphs(axes, lead, drop, flipped, ("flips", "does not"))
    start, end = min(lead.min(), drop.min(), 0.0), max(lead.max(), drop.max(), 0.0)
    axes.plot([start, end], [start, end], "--", color=INK, linewidth=0.8)
    axes.annotate("drop = lead", (end, end), ha="right", va="bottom", fontsize=7, color=INK)
    axes.set(xlabel="lead (logits)", ylabel="drop (logits)")
    tidy(axes, legend=True)


def tree_figure(findings: Findings, index: int) -> Figures:
    """The groups that the run's `index`-th search ablated."""
    tree, name = findings.searches[index].tree, f"tree-{index}"
    boxes = icicle(tree)
    caption = said("caption.tree", shown=len(boxes), of=len(tree))
    return {name: (draw(name, partial(_tree, boxes)), caption)} if tree else {}


def _tree(boxes: Sequence[Box], figure: Figure) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    axes = figure.subplots()
    for verdict, (color, hatch) in _SHADE.items():
        some = [box for box in boxes if box.tree_node.verdict is verdict]
        if not some:
            continue
        patches = [Rectangle((box.left, box.tree_node.depth), box.width, 0.92) for box in some]
        faintest = 0.55 if verdict is Verdict.KEPT else 0.25
        # To the nearest fifth, so that boxes of one fullness share one pattern.
        full = [round(5 * box.tree_node.estimate.strength) / 5 for box in some]
        style: Any = {"facecolor": color, "hatch": hatch, "edgecolor": INK, "linewidth": 0.2}
        alpha = [faintest + (0.95 - faintest) * share for share in full]
        axes.add_collection(PatchCollection(patches, alpha=alpha, **style))
    roots: dict[int, int] = {}
    for box in boxes:
        roots.setdefault(box.tree_node.layer, box.left)
    axes.set_xticks(list(roots.values()), [str(layer) for layer in roots])
    depths = range(max(box.tree_node.depth for box in boxes) + 1)
    axes.set(xlim=(0, max(box.left + box.width for box in boxes)), ylim=(len(depths), 0))
    axes.set_yticks([depth + 0.46 for depth in depths], [str(depth) for depth in depths])
    axes.set(xlabel="layer (its first unit)", ylabel="depth")
    tidy(axes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """One group: `left` and `width` in units of channels."""

    tree_node: TreeNode
    left: int
    width: int


def icicle(nodes: Sequence[TreeNode], most: int = 2000) -> tuple[Box, ...]:
    """A box a node, parents before children, at most `most`: the shallowest nodes are kept.

    Layers lie side by side in order, a node's children side by side inside it. A node whose parent is not
    among `nodes` counts as a root of its layer. O(n log n).
    """
    ordered = sorted(nodes, key=lambda node: (node.depth, node.layer, node.node))[:most]
    present = {(node.layer, node.node) for node in ordered}
    free: dict[tuple[int, int | None] | None, int] = {}  # Where the next child begins; of None the next root.
    boxes = []
    for node in sorted(ordered, key=lambda node: (node.layer, node.depth, node.node)):
        parent = (node.layer, node.parent) if (node.layer, node.parent) in present else None
        left = free.get(parent, 0)
        boxes.append(Box(tree_node=node, left=left, width=node.size))
        free[parent], free[node.layer, node.node] = left + node.size, left
    return tuple(boxes)
