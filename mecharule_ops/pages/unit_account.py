"""The account of a unit as a figure: drop against lead by record, flipped and unflipped told apart by glyph.

Colour only repeats it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from mecharule_ops.findings.accounts import Account, LeadsAndDrops
from mecharule_ops.pages.drawing import INK, draw, figure_stem, glyphs, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def account_figures(account: Account) -> Mapping[str, tuple[str, str]]:
    """Name → (SVG, caption); a figure without data is left out."""
    points = account.points
    if points is None or not points.lead:
        return {}
    name = f"{figure_stem('account', account.regime, account.neuron)}-leads"
    return {name: (draw(name, partial(_draw_leads, points)), _leads_caption(account, points))}


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


def _draw_leads(points: LeadsAndDrops, figure: Figure) -> None:
    axes = figure.subplots()
    lead, drop, flipped = (np.array(values) for values in (points.lead, points.drop, points.flipped))
    glyphs(axes, lead, drop, flipped, ("flips", "does not"))
    end = float(max(lead.max(), drop.max(), 0.0))
    start = float(min(lead.min(), drop.min(), 0.0))
    axes.plot([start, end], [start, end], "--", color=INK, linewidth=0.8)
    axes.annotate("drop = lead", (end, end), ha="right", va="bottom", fontsize=7, color=INK)
    axes.set(xlabel="lead (logits)", ylabel="drop (logits)")
    tidy(axes, legend=True)
