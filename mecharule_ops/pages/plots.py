"""The plots of a run's report as SVG text, equal bytes for equal findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from mecharule_ops.findings.counts import TreeNode
from mecharule_ops.findings.records import Findings, SearchOutcome
from mecharule_ops.pages.chain_plots import chain_figures
from mecharule_ops.pages.drawing import BLUE, GREY, INK, ORANGE, draw, glyphs, tidy
from mecharule_ops.pages.model_map import model_map
from mecharule_ops.pages.unit_account import account_figures
from mecharule_ops.types import Neuron, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_SHADE = {
    Verdict.PRUNED: (GREY, ""),
    Verdict.SPLIT: (BLUE, ""),
    Verdict.KEPT: (GREY, "//"),
    Verdict.DROPPED: (GREY, "."),
}


def figures(findings: Findings) -> Mapping[str, tuple[str, str]]:
    """Name → (SVG, caption), named as `content` names them; a plot without data is left out."""
    drawn = model_map(findings)
    for chain in findings.chains:
        drawn |= chain_figures(chain)
    for index, outcome in enumerate(findings.searches):
        for account in outcome.accounts:
            drawn |= account_figures(account)
        drawn |= search_figures(findings, index)
    return drawn


def search_figures(findings: Findings, index: int) -> Mapping[str, tuple[str, str]]:
    """The plots of the run's `index`-th search; named and left out as `figures` does."""
    outcome = findings.searches[index]
    found = {unit.neuron for unit in findings.shown_of(outcome)}
    placed = outcome.agonists or outcome.layer_union or outcome.whole_layers
    shown = len(icicle(outcome.tree))
    groups = f"{_TREE_CAPTION} {shown:,} of {len(outcome.tree):,} tested groups are drawn."
    kinds = (
        (f"layers-{index}", placed, partial(_layers, found), _LAYERS_CAPTION),
        (f"predicted-{index}", outcome.predicted, partial(_predicted, found), _PREDICTED_CAPTION),
        (f"tree-{index}", outcome.tree, _tree, groups),
    )
    return {
        name: (draw(name, partial(plot, outcome)), caption) for name, data, plot, caption in kinds if data
    }


_LAYERS_CAPTION = (
    "Units per layer: all localized (upper bound ≥ τ) and the shown ones among them (hatched); below, the "
    "share of records flipped by any localized unit of the layer, and by the whole layer ablated at once "
    "on its stronger slice."
)
_PREDICTED_CAPTION = (
    "Units tested alone by a guided search: the share of their stronger slice that first order said they flip, and the "
    "share that they do flip. Filled circles are shown, each with its place among all units by prediction; open "
    "squares are the others. On the diagonal it is right."
)
_TREE_CAPTION = (
    "The CHA tree: each box is an ablated group, as wide as its units, one level deeper than its parent. "
    "Blue was opened, grey was pruned (dotted: a single unit below τ), hatched is a localized unit; "
    "the fuller the colour, the more it flips."
)


def _layers(found: Set[Neuron], outcome: SearchOutcome, figure: Figure) -> None:
    counts, cover = figure.subplots(2, 1, sharex=True)
    every = [agonist.neuron.layer for agonist in outcome.agonists]
    strong = [unit.layer for unit in found]
    whole = {layer.layer: layer.estimate.strength for layer in outcome.whole_layers}
    union = {layer.layer: layer.flipped.rate for layer in outcome.layer_union if layer.flipped.n}
    layers = sorted(set(every) | set(whole) | set(union))
    counts.bar(layers, [every.count(layer) for layer in layers], color=BLUE, label="localized")
    counts.bar(layers, [strong.count(layer) for layer in layers], color=ORANGE, hatch="//", label="shown")
    if union:
        cover.plot(list(union), list(union.values()), "o-", color=ORANGE, label="union of localized")
    if whole:
        cover.plot(list(whole), list(whole.values()), "s--", color=GREY, label="whole layer")
    counts.set_ylabel("units")
    counts.yaxis.get_major_locator().set_params(integer=True)
    cover.set(ylabel="flipped share", xlabel="layer", ylim=(-0.03, 1.03))
    cover.xaxis.get_major_locator().set_params(integer=True)
    for axes in (counts, cover):
        tidy(axes, legend=True)


def _predicted(found: Set[Neuron], outcome: SearchOutcome, figure: Figure) -> None:
    axes = figure.subplots()
    predicted, measured = (
        np.array([getattr(unit, name) for unit in outcome.predicted]) for name in ("predicted", "measured")
    )
    among = np.array([unit.neuron in found for unit in outcome.predicted])
    glyphs(axes, predicted, measured, among, ("shown", "other unit"))
    for unit in outcome.predicted:
        if unit.neuron in found:
            axes.annotate(f" {unit.rank}", (unit.predicted, unit.measured), fontsize=7, color=INK)
    axes.plot([0, 1], [0, 1], "--", color=INK, linewidth=0.8)
    axes.set(xlabel="predicted strength", ylabel="measured strength", xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    tidy(axes, legend=True)


def _tree(outcome: SearchOutcome, figure: Figure) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    axes = figure.subplots()
    boxes = icicle(outcome.tree)
    for verdict, (color, hatch) in _SHADE.items():
        some = [box for box in boxes if box.tree_node.verdict is verdict]
        if not some:
            continue
        patches = [Rectangle((box.left, box.tree_node.depth), box.width, 0.92) for box in some]
        faintest = 0.55 if verdict is Verdict.KEPT else 0.25
        alpha = [faintest + (0.95 - faintest) * _step(box.tree_node.estimate.strength) for box in some]
        axes.add_collection(
            PatchCollection(patches, facecolor=color, alpha=alpha, hatch=hatch, edgecolor=INK, linewidth=0.2)
        )
    roots: dict[int, int] = {}
    for box in boxes:
        roots.setdefault(box.tree_node.layer, box.left)
    axes.set_xticks(list(roots.values()), [str(layer) for layer in roots])
    deepest = max(box.tree_node.depth for box in boxes)
    axes.set(xlim=(0, max(box.left + box.width for box in boxes)), ylim=(deepest + 1, 0))
    axes.set_yticks([depth + 0.46 for depth in range(deepest + 1)], [str(d) for d in range(deepest + 1)])
    axes.set(xlabel="layer (its first unit)", ylabel="depth")
    tidy(axes)


def _step(share: float) -> float:
    """The share to the nearest fifth, so that boxes of one fullness share one pattern."""
    return round(5 * share) / 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """One group: `left` and `width` in units of channels, `depth` in levels."""

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
    roots = [node for node in ordered if (node.layer, node.parent) not in present]
    cursor: dict[tuple[int, int], int] = {}
    boxes, edge = [], 0
    for root in sorted(roots, key=lambda node: (node.layer, node.node)):
        cursor[root.layer, root.node] = edge
        edge += root.size
    fresh = dict(cursor)
    for node in ordered:
        key = (node.layer, node.node)
        if key in fresh:
            left = fresh[key]
        else:
            assert node.parent is not None
            left = cursor[node.layer, node.parent]
            cursor[node.layer, node.parent] += node.size
        cursor[key] = left
        boxes.append(Box(tree_node=node, left=left, width=node.size))
    return tuple(boxes)
