"""The three kinds of figures that experiments draw: bars and lines with intervals over seeds, and a grid of numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mecharule_ops.experiments.seed_intervals import Interval
from mecharule_ops.report.drawing import BLUE, GREY, INK, ORANGE, draw, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = (BLUE, ORANGE, GREY, "#4f9d69", "#a05fb4", "#b4504a")
_MARKS = "osD^vP"


def bars(
    name: str, groups: Sequence[str], series: Mapping[str, Sequence[Interval]], *, xlabel: str, ylabel: str
) -> str:
    """Bars of every series side by side in each group, with their intervals."""

    def plot(figure: Figure) -> None:
        axes = figure.subplots()
        width = 0.8 / len(series)
        for place, (label, values) in enumerate(series.items()):
            where = [at + (place - (len(series) - 1) / 2) * width for at in range(len(groups))]
            means = [0.0 if math.isnan(value.mean) else value.mean for value in values]
            axes.bar(where, means, width, color=_COLOURS[place % 6], label=label)
            axes.errorbar(where, means, _reach(values), fmt="none", ecolor=INK, elinewidth=0.8, capsize=2)
        axes.set_xticks(range(len(groups)), groups)
        axes.set(xlabel=xlabel, ylabel=ylabel)
        tidy(axes, legend=len(series) > 1)

    return draw(name, plot)


def lines(
    name: str,
    panels: Mapping[str, Mapping[str, Sequence[Interval]]],
    xs: Mapping[str, Sequence[str]],
    *,
    xlabel: str = "",
    ylabel: str,
) -> str:
    """A panel a title, a line of counts a series, over the panel's own ticks, with intervals."""

    def plot(figure: Figure) -> None:
        for place, (axes, title) in enumerate(
            zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True)
        ):
            for number, (label, values) in enumerate(panels[title].items()):
                axes.errorbar(
                    range(len(values)),
                    [value.mean for value in values],
                    _reach(values),
                    color=_COLOURS[number % 6],
                    marker=_MARKS[number % 6],
                    markersize=4,
                    capsize=2,
                    label=label,
                )
            axes.set_xticks(range(len(xs[title])), xs[title], fontsize=7)
            axes.set_ylim(bottom=0)
            axes.set_title(title, fontsize=9)
            axes.set(xlabel=xlabel, ylabel=ylabel if place == 0 else "")
            tidy(axes, legend=place == len(panels) - 1)

    return draw(name, plot)


def grid(name: str, labels: Sequence[str], values: Sequence[Sequence[float]]) -> str:
    """A square of numbers in [−1, 1], the fuller the colour the larger; an empty cell is unknown."""

    def plot(figure: Figure) -> None:
        from matplotlib.colors import LinearSegmentedColormap, to_rgba

        anchors = ((0.0, ORANGE, 0.8), (0.5, ORANGE, 0.1), (0.5, BLUE, 0.1), (1.0, BLUE, 0.8))
        shades = [(at, to_rgba(colour, depth)) for at, colour, depth in anchors]
        axes = figure.subplots()
        colours = LinearSegmentedColormap.from_list("agreement", shades)
        axes.pcolormesh(np.array(values), cmap=colours, vmin=-1, vmax=1)
        for (row, column), value in np.ndenumerate(values):
            if not math.isnan(value):
                axes.text(column + 0.5, row + 0.5, f"{value:.2f}", ha="center", va="center", fontsize=8)
        axes.invert_yaxis()
        ticks = [at + 0.5 for at in range(len(labels))]
        axes.set_xticks(ticks, labels, rotation=20, ha="right")
        axes.set_yticks(ticks, labels)
        tidy(axes)

    return draw(name, plot)


def _reach(values: Sequence[Interval]) -> list[list[float]]:
    """How far each interval reaches below and above its mean; 0 where there is none."""
    below = [value.mean - value.low for value in values]
    above = [value.high - value.mean for value in values]
    return [[0.0 if math.isnan(reach) else reach for reach in side] for side in (below, above)]
