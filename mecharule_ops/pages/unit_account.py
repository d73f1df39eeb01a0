"""The account of a unit: what predicts its flips and what that is worth, as lines for a person and as figures.

In the figure, drop against lead by record, flipped and unflipped are told apart by glyph; colour only repeats it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from mecharule_ops.facts.account_facts import beside_words, caveats
from mecharule_ops.facts.chain_lines import Link
from mecharule_ops.facts.rules import family_words, short
from mecharule_ops.findings.accounts import (
    Account,
    Band,
    DropError,
    LeadsAndDrops,
    PredictionKind,
    PredictionScore,
)
from mecharule_ops.numbers import k_of_n, percent
from mecharule_ops.pages.drawing import INK, draw, figure_stem, glyphs, tidy
from mecharule_ops.rules.families import FamilyRule
from mecharule_ops.types import FlipCount

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def account_links(account: Account) -> tuple[Link, ...]:
    """Every part in order; a part that was not measured is left out."""
    links = (
        ("flips", _flips(account)),
        ("predicted", _predicted(account)),
        *_families(account),
        ("drop", _drop(account.drop_error)),
        ("linear", _linearity(account.prediction(PredictionKind.INTEGRATED))),
    )
    return tuple((name, lines) for name, lines in links if lines)


def _flips(account: Account) -> tuple[str, ...]:
    count = FlipCount(flips=account.flips, n=account.records)
    return (f"{k_of_n(count)} of the records; {account.held_out:,} of them, held out, score what follows",)


def _predicted(account: Account) -> tuple[str, ...]:
    """The first-order prediction beside what is simpler, then what happened by how far the drop lies from the lead."""
    score, right = account.first_order, account.becomes_right
    if score is None:
        return ("no held-out record could be asked",)
    if score.held_out is None:
        return ("too few held-out records of one side for an interval", *caveats(account))
    what = "it flips" if right is None else "the answer changes"
    said = f"{what} where its drop exceeds the lead (logit difference), nothing fitted:"
    lines = [f"{said} {beside_words(score, account.predictions)}"]
    if right is not None and right.held_out is not None:
        lines.append(f"that the new answer is right: {beside_words(right, account.beside_right)}")
    if account.bands:
        lines.append(f"it happens in {', '.join(map(_band, account.bands))}")
    return (*lines, *caveats(account))


def _band(band: Band) -> str:
    count = k_of_n(FlipCount(flips=band.happened, n=band.records))
    mcc = f", MCC {band.held_out}" if band.name == "between" and band.held_out is not None else ""
    return f"{count} where {band.name}{mcc}"


def _linearity(score: PredictionScore | None) -> tuple[str, ...]:
    if score is None or score.held_out is None:
        return ()
    return (
        f"integrated over two points, at the price of an ablation, the drop says MCC {score.held_out}: a check, no "
        "prediction",
    )


def _families(account: Account) -> tuple[Link, ...]:
    """A link a family; one for all where all have no rule for the same reason."""
    statuses = {rule.status for rule in account.families}
    if (
        len(statuses) == 1
        and account.families[0].rule is None
        and not any(rule.free_form for rule in account.families)
    ):
        return (("rules", (f"none: {account.families[0].status.value}",)),)
    return tuple((rule.family.value, (_family(rule),)) for rule in account.families)


def _family(rule: FamilyRule) -> str:
    share = rule.share_of_free_form
    return family_words(rule) + ("" if share is None or share > 1 else f", {percent(share)} of it")


def _drop(error: DropError | None) -> tuple[str, ...]:
    if error is None:
        return ()
    return (
        f"the lead falls by {error.measured:.2f} logits (median of {error.records}), first order says "
        f"{round(error.first_order, 2) + 0.0:.2f}; the two differ by {error.error:.2f} (median)"
        + ("" if error.spearman is None else f", rank correlation {short(error.spearman)}"),
    )


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
