"""The figures of a unit's chain as SVG text: what it writes, what it reads, and through what its flips pass.

Everything is told apart by place, glyph, hatch and words; colour only repeats it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from mecharule_ops.facts.chain_facts import hold_words, of_group, quoted, remaining
from mecharule_ops.facts.fact import said
from mecharule_ops.findings.chain import Chain
from mecharule_ops.mechanism.holds import Above, Together
from mecharule_ops.mechanism.links import FLIPPED, UNFLIPPED, HeadReading, TokenList
from mecharule_ops.pages.document import Figures
from mecharule_ops.pages.drawing import BLUE, GREY, INK, ORANGE, draw, figure_stem, glyphs, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SOURCES, _NODES = 12, 6


def chain_figures(chain: Chain) -> Figures:
    """Those of one chain."""
    stem, drawn = figure_stem("chain", chain.regime, chain.unit), {}
    if chain.writes.groups:
        when = said("caption.writes.fixed" if chain.writes.fixed else "caption.writes.flipped")
        caption = said("caption.writes", unit=chain.unit, when=when)
        drawn[f"{stem}-writes"] = draw(f"{stem}-writes", partial(_writes, chain)), caption
    if len(chain.reads.heads) > 1:
        height = 0.9 + 0.24 * len(chain.reads.heads[0].sources[:_SOURCES])
        svg = draw(f"{stem}-reads", partial(_reads, chain.reads.heads), (8, height))
        drawn[f"{stem}-reads"] = svg, said("caption.reads")
    if chain.mediation.flips.flips and chain.mediation.through:
        svg = draw(f"{stem}-through", partial(_through, chain), (8, 2.4))
        drawn[f"{stem}-through"] = svg, said("caption.through")
    return drawn


def _writes(chain: Chain, figure: Figure) -> None:
    groups = chain.writes.groups
    shown = groups[0] if chain.writes.fixed else of_group(groups, FLIPPED) or groups[0]
    left, right = figure.subplots(1, 2)
    _bars(left, shown.answer, f"{shown.answer.size} answer tokens")
    _bars(right, shown.vocabulary, f"vocabulary of {shown.vocabulary.size:,}")


def _bars(axes: Axes, found: TokenList, title: str) -> None:
    pushes = [*found.raised, *reversed(found.lowered)]
    bars = [(_label(quoted(each.token)), each.push, f"{each.push:+.2f}", each.push > 0) for each in pushes]
    _barh(axes, [(*bar, BLUE if bar[3] else ORANGE) for bar in bars])
    axes.axvline(0, color=INK, linewidth=0.6)
    axes.margins(x=0.18)
    axes.set(xlabel="logits", title=title)


def _barh(axes: Axes, rows: Sequence[tuple[str, float, str, bool, str]]) -> None:
    """A bar a row, from above: its name, length, label, whether it is plain rather than hatched, and its colour."""
    names, lengths, labels, plain, colors = zip(*rows, strict=True)
    places = list(range(len(rows), 0, -1))
    bars = axes.barh(places, lengths, color=colors, edgecolor=INK, linewidth=0.4)
    for bar, is_plain in zip(bars, plain, strict=True):
        bar.set_hatch("" if is_plain else "//")
    axes.bar_label(bars, labels, padding=2, fontsize=7, color=INK)
    axes.set_yticks(places, names)
    tidy(axes)


def _reads(heads: Sequence[HeadReading], figure: Figure) -> None:
    """The pieces that are most attended of all records; flipped records beside the others."""
    names = [source.name for source in heads[0].sources[:_SOURCES]]
    drawn = [
        (len(names) - names.index(source.name), source.attention, source.toward, head.group == FLIPPED)
        for head in heads
        for source in head.sources
        if head.group in (FLIPPED, UNFLIPPED) and source.name in names
    ]
    at, attention, toward, flipped = map(np.array, zip(*drawn, strict=True))
    mass, carried = figure.subplots(1, 2, sharey=True)
    for axes, x in ((mass, attention), (carried, toward)):
        glyphs(
            axes,
            x,
            at + np.where(flipped, 0.15, -0.15),
            flipped,
            (f"{FLIPPED} records", f"{UNFLIPPED} records"),
        )
        axes.grid(axis="y", color=GREY, alpha=0.25)
        tidy(axes, legend=axes is carried)
    carried.axvline(0, color=INK, linewidth=0.6)
    mass.set_yticks(range(len(names), 0, -1), [_label(name) for name in names])
    mass.set(xlabel="share of attention", xlim=(-0.02, None))
    carried.set(xlabel="part of the lead, logits")


def _through(chain: Chain, figure: Figure) -> None:
    """Plain bars for kinds of later parts, hatched ones for the single units and layers that carry most; the rest."""
    through = [one for one in chain.mediation.through if one.hold is not Above.EVERYTHING]
    kinds = [one for one in through if isinstance(one.hold, Above)]
    single = [one for one in through if not isinstance(one.hold, Above | Together)]
    single.sort(key=lambda one: -one.gone.count)
    rows = [
        (hold_words(one.hold), one.gone.rate, f"{one.gone.count} of {one.gone.n}", one in kinds, BLUE)
        for one in (*kinds, *single[: _NODES - len(kinds)])
    ]
    if (left := remaining(chain)) is not None:
        direct = "directly, with everything above held"
        rows.append((direct, left.flip_rate, f"{left.flips} of {left.n} remain", True, ORANGE))
    axes = figure.subplots()
    _barh(axes, rows)
    axes.set(xlabel="share of the flips that do not happen", xlim=(0, 1.15))


def _label(text: str) -> str:
    """Without what a figure would read as mathematics."""
    return text.replace("$", r"\$")
