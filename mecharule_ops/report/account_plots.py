"""The figures of a unit's account as SVG text: drop against lead by record, and what its free-form predictor goes by.

Flipped and unflipped, true and false are told apart by glyph; colour only repeats it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from mecharule_ops.findings.accounts import Account, LeadsAndDrops
from mecharule_ops.report.account_lines import EXPLAINS_THE_PREDICTOR
from mecharule_ops.report.drawing import INK, draw, figure_stem, glyphs, tidy
from mecharule_ops.rules.predictor import Pushes

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def account_figures(account: Account) -> Mapping[str, tuple[str, str]]:
    """Name → (SVG, caption); a figure without data is left out."""
    stem, drawn = figure_stem("account", account.regime, account.neuron), {}
    points, pushes = account.points, account.pushes
    if points is not None and points.lead:
        drawn[f"{stem}-leads"] = (
            draw(f"{stem}-leads", partial(_leads, points)),
            _leads_caption(account, points),
        )
    if pushes is not None and pushes.predicates:
        svg = draw(f"{stem}-pushes", partial(_pushes, pushes), height=0.9 + 0.3 * len(pushes.predicates))
        drawn[f"{stem}-pushes"] = svg, _pushes_caption(account, pushes)
    return drawn


def _leads_caption(account: Account, points: LeadsAndDrops) -> str:
    right = sum(
        (drop > lead) == flip
        for lead, drop, flip in zip(points.lead, points.drop, points.flipped, strict=True)
    )
    target = (
        "flips" if account.becomes_right is None else "becomes right, which asks more than that it changes"
    )
    return (
        f"Held-out records by how close the model was to another token (lead) and how far ablating {account.neuron} "
        "lowers that lead to first order (drop). Above the diagonal first order says that the answer changes. Filled "
        f"circles: the answer {target}; open squares: it does not. {right} of {len(points.lead)} lie on their side."
    )


def _pushes_caption(account: Account, pushes: Pushes) -> str:
    records = len(pushes.predicates[0].holds)
    return (
        f"What the free-form model of the prompt goes by when it predicts the flips of {account.neuron}, on {records} "
        "held-out records: Shapley values in log-odds, right is towards a flip. Filled circles: the predicate holds; "
        f"open squares: it does not. Of the predictor alone: {EXPLAINS_THE_PREDICTOR}."
    )


def _leads(points: LeadsAndDrops, figure: Figure) -> None:
    axes = figure.subplots()
    lead, drop, flipped = (np.array(values) for values in (points.lead, points.drop, points.flipped))
    glyphs(axes, lead, drop, flipped, ("flips", "does not"))
    end = float(max(lead.max(), drop.max(), 0.0))
    start = float(min(lead.min(), drop.min(), 0.0))
    axes.plot([start, end], [start, end], "--", color=INK, linewidth=0.8)
    axes.annotate("drop = lead", (end, end), ha="right", va="bottom", fontsize=7, color=INK)
    axes.set(xlabel="lead (logits)", ylabel="drop (logits)")
    tidy(axes, legend=True)


def _pushes(pushes: Pushes, figure: Figure) -> None:
    axes = figure.subplots()
    rows = len(pushes.predicates)
    for row, push in enumerate(pushes.predicates):
        towards, holds = np.array(push.towards), np.array(push.holds)
        glyphs(
            axes,
            towards,
            rows - row + _spread(towards),
            holds,
            ("holds", "does not") if row == 0 else ("", ""),
        )
    axes.axvline(0, color=INK, linewidth=0.6)
    axes.set_yticks(range(rows, 0, -1), [push.predicate for push in pushes.predicates])
    axes.set(xlabel="towards a flip (log-odds)", ylim=(0.4, rows + 0.6))
    tidy(axes, legend=True)


def _spread(values: Sequence[float] | np.ndarray, width: float = 0.36) -> np.ndarray:
    """Offsets that keep equal values apart: those of one fiftieth of the span beside each other, as in a beeswarm."""
    values = np.asarray(values, float)
    span = float(values.max() - values.min()) or 1.0
    bins = np.round((values - values.min()) / span * 50).astype(int)
    offsets = np.zeros(len(values))
    for each in np.unique(bins):
        members = np.flatnonzero(bins == each)
        steps = np.arange(len(members)) - (len(members) - 1) / 2
        offsets[members] = steps * min(0.09, width * 2 / max(1, len(members)))
    return offsets
