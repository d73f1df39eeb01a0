"""The figures of a unit's chain as SVG text: what it writes, what it reads, and through what its flips pass.

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
from mecharule_ops.pages.drawing import BLUE, GREY, INK, ORANGE, draw, figure_stem, glyphs, tidy

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
        name = f"{stem}-through"
        drawn[name] = draw(name, partial(_through, chain), height=2.4), _THROUGH_CAPTION
    return drawn


_READS_CAPTION = (
    "Mean share of the head's attention by named piece of the text, on records that its ablation flips (filled "
    "circles) and on the others (open squares); right, the part of the lead that the values read there carry, to "
    "first order, in logits."
)
_THROUGH_CAPTION = (
    "The way of the flips: with these units held at their clean values while the unit is ablated, so many of its flips "
    "do not happen. What is held overlaps: shares do not add up."
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


def _through(chain: Chain, figure: Figure) -> None:
    """Plain bars for kinds of later parts, hatched ones for single units and layers, then what remains directly."""
    axes = figure.subplots()
    held = _held(chain)
    rows = [(hold_words(one.hold), one.gone.rate, f"{one.gone.count} of {one.gone.n}") for one in held]
    if (left := remaining(chain)) is not None:
        rows.append(
            ("directly, with everything above held", left.flip_rate, f"{left.flips} of {left.n} remain")
        )
    places = range(len(rows), 0, -1)
    shares, colors = [rate for _, rate, _ in rows], [BLUE] * len(held) + [ORANGE] * (len(rows) - len(held))
    bars = axes.barh(list(places), shares, color=colors, edgecolor=INK, linewidth=0.4)
    for bar, one in zip(bars, held, strict=False):
        bar.set_hatch("" if isinstance(one.hold, Above) else "//")
    axes.bar_label(bars, [counts for _, _, counts in rows], padding=2, fontsize=7, color=INK)
    axes.set_yticks(list(places), [name for name, _, _ in rows])
    axes.set(xlabel="share of the flips that do not happen", xlim=(0, 1.15))
    tidy(axes)


def _held(chain: Chain) -> list[Through]:
    """The kinds of what lies above, then the units and layers that carry most."""
    through = [one for one in chain.mediation.through if one.hold is not Above.EVERYTHING]
    kinds = [one for one in through if isinstance(one.hold, Above)]
    single = [one for one in through if not isinstance(one.hold, Above | Together)]
    single.sort(key=lambda one: -one.gone.count)
    return [*kinds, *single[: _NODES - len(kinds)]]


def _label(text: str) -> str:
    """Without what a figure would read as mathematics."""
    return text.replace("$", r"\$")
