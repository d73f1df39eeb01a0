"""The figures of a run as SVG text, equal bytes for equal findings: its map, drop against lead."""

from __future__ import annotations

import textwrap
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mecharule_ops.facts import found, searches, unit_facts
from mecharule_ops.facts.fact import said
from mecharule_ops.findings.accounts import Account, LeadsAndDrops
from mecharule_ops.findings.records import Findings, SearchOutcome, Unit
from mecharule_ops.pages import chain_plots, document, rows
from mecharule_ops.pages.drawing import GREEN, GREY, INK, Plot, draw, figure_stem, glyphs, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import SubplotSpec

SLIDE, MAP, NARROW = "slide", "map", "map-narrow"
_PANELS = 2
"""Most searches that are mapped."""
_NAMED = 12
"""Most units with their names in one panel."""


def figures(findings: Findings, example: str = "") -> document.Figures:
    """Every figure of a run; `example` is of the strongest unit, before and after."""
    accounts = [account for outcome in findings.searches for account in outcome.accounts]
    chains = map(chain_plots.chain_figures, findings.chains)
    each = finding_figure(findings, example), *chains, *map(account_figures, accounts)
    return {name: drawn for some in each for name, drawn in some.items()}


def finding_figure(findings: Findings, example: str = "") -> document.Figures:
    """What was found as a picture beside text, and for a narrow window; empty as `finding_plots` are."""
    beside = f" {said('caption.beside')}" if findings.strongest() else ""
    plots, captions = finding_plots(findings, example), {MAP: f"{said('caption.map')}{beside}", NARROW: ""}
    return {name: (draw(name, *plots[name]), told) for name, told in captions.items() if plots}


def finding_plots(findings: Findings, example: str = "") -> dict[str, Plot]:
    """The model as a map, an example, the strongest unit beside random ones; for a page the pictures alone.

    These stand beside one another, in a narrow window above one another.

    Each with its size. `example` is of the strongest unit, before and after. Empty where nothing was localized and no
    whole layer ablated.
    """
    named, unit = zip(findings.searches, searches.search_titles(findings), strict=True), findings.strongest()
    mapped = [one for one in named if one[0].agonists or one[0].whole_layers][:_PANELS]
    panels = len(mapped) + bool(unit)

    def slide(figure: Figure) -> None:
        style: Any = {"ha": "left", "color": INK}
        figure.suptitle(_filled(found.top_line(findings), 84), x=0.01, fontsize=11, weight="bold", **style)
        below = f"{found.opening(findings)[0]} Replay: `mecharule verify {findings.run} --all`"
        figure.supxlabel(_filled(below, 130), x=0.01, fontsize=7, **style)
        grid = figure.add_gridspec(len(mapped), 2 if unit else 1)
        for place, (outcome, name) in enumerate(mapped):
            _map(figure, grid[place, 0], outcome, findings, name)
        if unit:
            right = grid[:, 1].subgridspec(3, 1, height_ratios=(3, 5, 7))
            texts = figure.add_subplot(right[0]), figure.add_subplot(right[2])
            parts = unit_facts.unit_parts(unit.neuron, unit.account, unit.chain, findings.run)
            reads = parts[unit_facts.READS]
            how = "" if reads.offers else f"\n{reads.sentence}."
            for axes, told in zip(texts, (example, found.when_line(findings) + how), strict=True):
                axes.set_axis_off()
                style |= {"va": "top", "fontsize": 8, "in_layout": False}
                text = "\n".join(_filled(line, 56) for line in told.splitlines())
                axes.text(-0.45, 1, text, transform=axes.transAxes, **style)
            _beside_random(figure.add_subplot(right[1]), unit, findings.alpha)

    def alone(rows: int, figure: Figure) -> None:
        grid = figure.add_gridspec(rows, panels // rows)
        for place, (outcome, name) in enumerate(mapped):
            _map(figure, grid[place], outcome, findings, name)
        if unit:
            _beside_random(figure.add_subplot(grid[panels - 1]), unit, findings.alpha)

    sizes = {
        MAP: (partial(alone, 1), (max(8, 4 * panels), 3)),
        NARROW: (partial(alone, panels), (4.2, 2.8 * panels)),
    }
    return {SLIDE: (slide, (8, 4.5)), **sizes} if mapped else {}


def _filled(text: str, width: int) -> str:
    return textwrap.fill(text, width).replace("$", r"\$")


def _map(figure: Figure, place: SubplotSpec, outcome: SearchOutcome, findings: Findings, name: str) -> None:
    """Layers across, units up; in a strip of its own above them what whole layers flip."""
    shown = [unit.neuron for unit in findings.shown_of(outcome)]
    units = [agonist for agonist in outcome.agonists if agonist.is_tau_agonist]
    x, y = (np.array([getattr(unit.neuron, what) for unit in units]) for what in ("layer", "channel"))
    span = len(outcome.whole_layers) or 1 + max(x, default=0)
    top = max([1, outcome.cost.candidates // span - 1, *y.tolist()])
    strip = axes = figure.add_subplot(place)
    if whole := outcome.whole_layers:
        grid = place.subgridspec(2, 1, height_ratios=(1, 3))
        axes.set_subplotspec(grid[1])
        strip = figure.add_subplot(grid[0], sharex=axes)
        strip.bar([one.layer for one in whole], [one.estimate.strength for one in whole], color=GREY)
        strip.set(ylim=(0, 1), ylabel="whole\nlayer", yticks=(0, 1), yticklabels=("0", "100 %"))
        strip.tick_params(labelbottom=False)
        tidy(strip)
    filled = np.array([unit.neuron in shown for unit in units], dtype=bool)
    glyphs(axes, _spread(x, y), y, filled, ("shown", "not shown"), GREEN)
    named: list[tuple[float, float, float]] = []
    for neuron in shown[:_NAMED]:
        height, wide = neuron.channel / top, 0.023 * span * (1 + len(str(neuron)))
        # A name is a fifth high; where it would cover another one or a point it stands left of its own, or is left out.
        for start, aside, side in ((neuron.layer, 5, "left"), (neuron.layer - wide, -5, "right")):
            covers = (start < x) & (x < start + wide) & (abs(y / top - height - 0.05) < 0.1)
            near = ((at, end) for at, end, up in named if abs(height - up) < 0.2)
            if not covers.any() and all(start + wide <= at or end <= start for at, end in near):
                named.append((start, start + wide, height))
                style: Any = {"textcoords": "offset points", "fontsize": 8, "color": INK, "ha": side}
                axes.annotate(str(neuron), (neuron.layer, neuron.channel), (aside, 3), **style)
                break
    axes.set(xlabel="layer", ylabel=outcome.intervention.basis.row.noun, ylim=(-0.08 * top, 1.12 * top))
    strip.set_title(name, fontsize=8, color=INK)
    axes.locator_params(integer=True)
    tidy(axes)


def _spread(layers: np.ndarray, heights: np.ndarray) -> np.ndarray:
    """Where points lie across: those of a layer that would cover one another stand side by side."""
    near = (layers[:, None] == layers) & (abs(heights[:, None] - heights) < 0.06 * max([1, *heights]))
    before = np.tril(near, -1).sum(1)
    return np.asarray(layers + 0.3 * ((before + 1) // 2) * np.where(before % 2, 1, -1))


def _beside_random(axes: Axes, unit: Unit, alpha: float) -> None:
    """What the strongest unit flips of answers kept aside, from its lower bound on, above each random unit."""
    held_out, evidence = unit.search.held_out, unit.evidence
    assert held_out is not None, "it would not be shown"
    assert evidence is not None, "it would not be shown"
    for flips, many in Counter(held_out.random).items():
        # Units of one rate lie above one another.
        spread = np.linspace(0, 1, 25)[: min(many, 25)]
        axes.plot(np.full(len(spread), flips / held_out.records), spread, "o", color=GREY, markersize=2)
    rate = evidence.flips.flips / evidence.flips.n
    axes.plot([evidence.lower, rate], [1.4, 1.4], color=GREEN, linewidth=2)
    axes.plot([rate], [1.4], "o", color=GREEN, markersize=5)
    if (least := held_out.rate_of_random(alpha)) is not None:
        axes.axvline(least, color=INK, linestyle="--", linewidth=0.8)
    axes.set_yticks([0.5, 1.4], [f"random {unit.search.intervention.basis.row.noun}s", str(unit.neuron)])
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.2, 1.9), xlabel="share of answers kept aside that it flips")
    axes.set_title(f"{unit.neuron}: {rows.kept_aside(rows.unit_row(unit))}", fontsize=8, color=INK)
    tidy(axes)


def account_figures(account: Account) -> document.Figures:
    """Drop against lead by record, flipped and unflipped told apart by glyph; colour only repeats it."""
    points = account.points
    if points is None or not points.lead:
        return {}
    above = [drop > lead for lead, drop in zip(points.lead, points.drop, strict=True)]
    target = "flips" if account.becomes_right is None else "becomes right"
    parts = {"unit": account.neuron, "target": target, "of": len(above)}
    right = sum(said == flip for said, flip in zip(above, points.flipped, strict=True))
    name = f"{figure_stem('account', account.regime, account.neuron)}-leads"
    return {name: (draw(name, partial(_draw_leads, points)), said("caption.leads", right=right, **parts))}


def _draw_leads(points: LeadsAndDrops, figure: Figure) -> None:
    axes = figure.subplots()
    lead, drop, flipped = (np.array(values) for values in (points.lead, points.drop, points.flipped))
    glyphs(axes, lead, drop, flipped, ("flips", "does not"))
    start, end = min(lead.min(), drop.min(), 0.0), max(lead.max(), drop.max(), 0.0)
    axes.plot([start, end], [start, end], "--", color=INK, linewidth=0.8)
    axes.annotate("drop = lead", (end, end), ha="right", va="bottom", fontsize=7, color=INK)
    axes.set(xlabel="lead (logits)", ylabel="drop (logits)")
    tidy(axes, legend=True)
