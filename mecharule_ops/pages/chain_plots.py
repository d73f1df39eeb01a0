"""The figures of a unit's chain as SVG text: what it writes, what it reads, and the way to the answer as a graph.

Everything is told apart by place, glyph, hatch and words; colour only repeats it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from mecharule_ops.facts.chain_facts import hold_words, of_group, quoted, remaining
from mecharule_ops.findings.chain import Chain
from mecharule_ops.mechanism.holds import Above, Together
from mecharule_ops.mechanism.links import FLIPPED, UNFLIPPED, HeadReading, TokenList
from mecharule_ops.mechanism.mediation import Through
from mecharule_ops.numbers import k_of_n
from mecharule_ops.pages.drawing import BLUE, GREY, INK, ORANGE, draw, figure_stem, glyphs, tidy
from mecharule_ops.types import FlipCount

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SOURCES, _NODES = 12, 6


def chain_figures(chain: Chain) -> Mapping[str, tuple[str, str]]:
    """Name → (SVG, caption); a figure without data is left out."""
    stem = figure_stem("chain", chain.regime, chain.unit)
    drawn = {}
    if chain.writes.groups:
        name = f"{stem}-writes"
        drawn[name] = draw(name, partial(_writes, chain)), _writes_caption(chain)
    if len(chain.reads.heads) > 1:
        name, rows = f"{stem}-reads", len(_names(chain.reads.heads))
        drawn[name] = draw(name, partial(_reads, chain), height=0.9 + 0.24 * rows), _READS_CAPTION
    if chain.mediation.flips.flips and chain.mediation.through:
        name = f"{stem}-graph"
        drawn[name] = draw(name, partial(_graph, chain), height=3.6), _GRAPH_CAPTION
    return drawn


_READS_CAPTION = (
    "Mean share of the head's attention by named piece of the text, on records that its ablation flips (filled "
    "circles) and on the others (open squares); right, the part of the lead that the values read there carry, to "
    "first order, in logits."
)
_GRAPH_CAPTION = (
    "The way of the flips: with the units in a box held at their clean values while the unit is ablated, so many of "
    "its flips do not happen. The boxes overlap: shares do not add up. Below, where the answer first changes."
)


def _writes_caption(chain: Chain) -> str:
    which = (
        "when it lies above its replacement (below it every sign is turned)"
        if chain.writes.fixed
        else "on records that its ablation flips"
    )
    return (
        f"Tokens whose logits {chain.unit} raises (plain bars) and lowers (hatched bars) most by what it writes "
        f"directly, {which}: left among the answer tokens, right in the whole vocabulary; less the mean of each set."
    )


def _writes(chain: Chain, figure: Figure) -> None:
    groups = chain.writes.groups
    shown = groups[0] if chain.writes.fixed else of_group(groups, FLIPPED) or groups[0]
    left, right = figure.subplots(1, 2)
    _bars(left, shown.answer, f"{shown.answer.size} answer tokens")
    _bars(right, shown.vocabulary, f"vocabulary of {shown.vocabulary.size:,}")


def _bars(axes: Axes, found: TokenList, title: str) -> None:
    pushes = [*found.raised, *reversed(found.lowered)]
    places = range(len(pushes), 0, -1)
    bars = axes.barh(
        list(places),
        [push.push for push in pushes],
        color=[BLUE if push.push > 0 else ORANGE for push in pushes],
        edgecolor=INK,
        linewidth=0.4,
    )
    for bar, push in zip(bars, pushes, strict=True):
        bar.set_hatch("" if push.push > 0 else "//")
    axes.bar_label(bars, [f"{push.push:+.2f}" for push in pushes], padding=2, fontsize=7, color=INK)
    axes.set_yticks(list(places), [_label(quoted(push.token)) for push in pushes])
    axes.axvline(0, color=INK, linewidth=0.6)
    axes.margins(x=0.18)
    axes.set(xlabel="logits", title=title)
    tidy(axes)


def _reads(chain: Chain, figure: Figure) -> None:
    heads = chain.reads.heads
    names = _names(heads)
    places = {name: len(names) - index for index, name in enumerate(names)}
    mass, carried = figure.subplots(1, 2, sharey=True)
    drawn = [
        (places[source.name] + (0.15 if head.group == FLIPPED else -0.15), source, head.group == FLIPPED)
        for head in heads
        for source in head.sources
        if head.group in (FLIPPED, UNFLIPPED) and source.name in places
    ]
    at = np.array([height for height, _, _ in drawn])
    flipped = np.array([each for _, _, each in drawn], bool)
    labels = f"{FLIPPED} records", f"{UNFLIPPED} records"
    glyphs(mass, np.array([source.attention for _, source, _ in drawn]), at, flipped, labels)
    glyphs(carried, np.array([source.toward for _, source, _ in drawn]), at, flipped, labels)
    carried.axvline(0, color=INK, linewidth=0.6)
    mass.set_yticks(list(places.values()), [_label(name) for name in names])
    mass.set(xlabel="share of attention", xlim=(-0.02, None))
    carried.set(xlabel="part of the lead, logits")
    for axes in (mass, carried):
        axes.grid(axis="y", color=GREY, alpha=0.25)
        tidy(axes, legend=axes is carried)


def _names(heads: tuple[HeadReading, ...]) -> list[str]:
    """The pieces drawn: the most attended of all records."""
    return [source.name for source in heads[0].sources[:_SOURCES]] if heads else []


def _graph(chain: Chain, figure: Figure) -> None:
    axes = figure.subplots()
    axes.set(xlim=(0, 10), ylim=(-0.2, 4.2))
    axes.axis("off")
    flips = chain.mediation.flips
    _box(axes, 1.1, 2.4, f"{chain.unit}\nablated\n{k_of_n(flips)} flip")
    _box(axes, 8.9, 2.4, _answer(chain))
    nodes = _nodes(chain)
    heights = [4.0 - 3.2 * (index + 0.5) / max(len(nodes), 1) for index in range(len(nodes))]
    for one, height in zip(nodes, heights, strict=True):
        share = one.gone.rate
        gone = k_of_n(FlipCount(flips=one.gone.count, n=one.gone.n))
        _box(axes, 5.0, height, f"{hold_words(one.hold)}: {gone}", dashed=not isinstance(one.hold, Above))
        for start, stop in (((1.9, 2.4), (3.8, height)), ((6.2, height), (8.05, 2.4))):
            _arrow(axes, start, stop, 0.4 + 3.0 * share, solid=one.gone.count > 0)
    if (left := remaining(chain)) is not None:
        _arrow(axes, (1.1, 1.75), (8.9, 1.75), 0.4 + 3.0 * left.flip_rate, solid=left.flips > 0, bend=0.28)
        axes.text(
            5.0, 0.22, f"directly: {k_of_n(left)} remain with everything above held", ha="center", fontsize=8
        )


def _nodes(chain: Chain) -> list[Through]:
    """The kinds of what lies above, then the units and layers that carry most."""
    through = [one for one in chain.mediation.through if one.hold is not Above.EVERYTHING]
    kinds = [one for one in through if isinstance(one.hold, Above)]
    single = [one for one in through if not isinstance(one.hold, Above | Together)]
    single.sort(key=lambda one: -one.gone.count)
    return [*kinds, *single[: _NODES - len(kinds)]]


def _answer(chain: Chain) -> str:
    place = chain.breaks.places[0] if chain.breaks.places else None
    change = chain.breaks.changes[0] if chain.breaks.changes else None
    lines = ["answer"]
    if place is not None:
        lines.append(f"{place.place}\n{k_of_n(place.count)}")
    if change is not None:
        lines.append(_label(f"{quoted(change.before)} → {quoted(change.after)} {change.count}×"))
    return "\n".join(lines)


def _box(axes: Axes, x: float, y: float, text: str, *, dashed: bool = False) -> None:
    style = {"boxstyle": "round,pad=0.35", "facecolor": "none", "edgecolor": INK, "linewidth": 0.8}
    box = {**style, "linestyle": "--" if dashed else "-"}
    axes.text(x, y, text, ha="center", va="center", fontsize=8, bbox=box)


def _arrow(
    axes: Axes,
    start: tuple[float, float],
    stop: tuple[float, float],
    width: float,
    *,
    solid: bool,
    bend: float = 0.0,
) -> None:
    style = {
        "arrowstyle": "-|>",
        "linewidth": width,
        "linestyle": "-" if solid else ":",
        "color": BLUE if solid else GREY,
        "connectionstyle": f"arc3,rad={bend}",
        "shrinkA": 0,
        "shrinkB": 0,
    }
    axes.annotate("", xy=stop, xytext=start, arrowprops=style)


def _label(text: str) -> str:
    """Without what a figure would read as mathematics."""
    return text.replace("$", r"\$")
