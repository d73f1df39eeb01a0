"""Pictures in characters: units per layer, flip rates with their intervals, recall by bin.

Every bar stands beside its number, so a picture never carries anything alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from mecharule_ops.plain_text import plain
from mecharule_ops.state.run_state import RunState
from mecharule_ops.state.search_id import EXHAUSTIVE, SearchId
from tui.session import Singles, ranked
from tui.words import arrow, bounds, rate, slices_of

if TYPE_CHECKING:
    from mecharule_ops.findings.accounts import LeadsAndDrops
    from mecharule_ops.findings.records import Findings

NARROW = 56
"""Columns below which less is said beside a bar."""
_EIGHTHS = " ▏▎▍▌▋▊▉"
MOST_UNITS = 24
"""Units whose flip rates are drawn, the shown first."""


def bar(share: float, width: int) -> str:
    """A bar of `share` in [0, 1] of `width` cells, to an eighth of a cell."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + _EIGHTHS[rest] * (rest > 0)).ljust(width)


def interval(low: float, value: float, high: float, width: int) -> str:
    """An interval on [0, 1] with its estimate: `  ├──●────┤   `."""
    first, at, last = (min(width - 1, int(share * width)) for share in (low, value, high))
    cells = [" "] * width
    for cell in range(first, last + 1):
        cells[cell] = "─"
    cells[first], cells[last] = "├", "┤"
    cells[at] = "●"
    return "".join(cells)


Scale = tuple[float, float]
"""The ends of an axis that holds 0."""


def _cell(value: float, scale: Scale, width: int) -> int:
    """The cell of a value; what is not 0 keeps off the cell of 0 where there is room."""
    span = (scale[1] - scale[0]) or 1.0
    zero, cell = (min(width - 1, int((one - scale[0]) / span * width)) for one in (0.0, value))
    if cell == zero and value:
        cell += 1 if value > 0 else -1
    return min(max(cell, 0), width - 1)


def axis(scale: Scale, width: int) -> str:
    """The ends of a scale and its 0, above what is drawn on it: `-4.3   0     +7.6`; an end gives way to the 0."""
    zero = _cell(0.0, scale, width)
    low, high = (f"{end:+.1f}" if end else "" for end in scale)
    left = low if len(low) < zero else ""
    right = high if len(high) < width - 1 - zero else ""
    return f"{left:<{zero}}0{right:>{width - 1 - zero}}"


def leads_and_drops(points: LeadsAndDrops, width: int, height: int = 10) -> list[str]:
    """Records by lead (to the right) and drop (up): `●` flips, `○` does not, `◐` both in one cell, `·` drop = lead.

    First order says that the answer changes above the dots.
    """
    low = min(0.0, *points.lead, *points.drop)
    high = max(*points.lead, *points.drop)
    span = (high - low) or 1.0

    def cell(value: float, cells: int) -> int:
        return min(cells - 1, int((value - low) / span * cells))

    canvas = [[" "] * width for _ in range(height)]
    for column in range(width):
        canvas[cell(low + span * (column + 0.5) / width, height)][column] = "·"
    for lead, drop, flipped in zip(points.lead, points.drop, points.flipped, strict=True):
        row, column = canvas[cell(drop, height)], cell(lead, width)
        glyph = "●" if flipped else "○"
        row[column] = "◐" if row[column] in "●○◐" and row[column] != glyph else glyph
    return ["".join(row) for row in reversed(canvas)]


def layers(state: RunState, width: int) -> list[Text]:
    """A line a search: shown units, those that reach τ, localized ones, and what the root's ablation flips."""
    lines = [Text("Units shown per layer", "bold")]
    counts = {name: _found(state, name) for name in state.searches}
    most = max((shown for shown, *_ in counts.values()), default=0)
    room = max(6, min(24, width - 56))
    for name, view in state.searches.items():
        if SearchId.parse(name).kind == EXHAUSTIVE:
            continue
        shown, strong, localized = counts[name]
        roots = [view.nodes[node].strength or 0.0 for node in view.children()]
        whole = f"group E {rate(max(roots))}" if roots else "not tested yet"
        place = name.rsplit(":", 1)[-1]
        line = Text(f"{place:>5} {arrow(view.regime)} ")
        line.append(bar(shown / most if most else 0.0, room), "green")
        said = f"{shown} shown, {strong} at τ, {localized} localized, {whole}"
        lines.append(
            line.append(f" {said if width >= NARROW else f'{shown} shown of {localized} localized'}")
        )
    return lines if len(lines) > 1 else [*lines, Text("no search has begun", "dim")]


def _found(state: RunState, search: str) -> tuple[int, int, int]:
    """Units of a search that are shown, that reach τ, that are localized."""
    found = [agonist for (name, _), agonist in state.agonists.items() if name == search]
    judged = [state.judged.get((agonist.regime, agonist.neuron)) for agonist in found]
    shown = sum(each is not None and each.rank is not None for each in judged)
    return shown, sum(agonist.is_tau_agonist for agonist in found), len(found)


def flip_rates(state: RunState, singles: Singles, width: int) -> list[Text]:
    """Two lines a unit, D+ and D-: the flip rate on [0, 1] between the bounds of that unit alone."""
    lines = [Text("Flip rates (0 to 1), intervals of one unit each", "bold")]
    room = max(12, min(40, width - 41))
    for agonist in ranked(state)[:MOST_UNITS]:
        view, number = state.searches.get(agonist.search), singles.get((agonist.search, agonist.neuron), -1)
        node = view.nodes.get(number) if view else None
        if view is None or node is None:
            continue
        for name, flips, n in slices_of(node):
            label = f"{plain(agonist.neuron)} {arrow(agonist.regime)}" if name == "D+" else ""
            lines.append(_rate_line(f"{label:>13} {name} ", flips, n, view.thresholds.alpha, room))
    return lines if len(lines) > 1 else [*lines, Text("nothing is localized yet", "dim")]


def _rate_line(label: str, flips: int, n: int, alpha: float, room: int) -> Text:
    if not n:
        return Text(f"{label}no examples", "dim")
    low, high = bounds(flips, n, alpha / 2)
    line = Text(label).append(interval(low, flips / n, high, room), "cyan")
    return line.append(f" {rate(flips / n)} [{rate(low)},{rate(high)}] {flips}/{n}")


def recall(findings: Findings | None, width: int) -> list[Text]:
    """A line a strength bin: how many exhaustive agonists the search localized."""
    from mecharule_ops.saying.searches import recall_words

    lines = [Text("Recall under exhaustive ablation, by strength", "bold")]
    room = max(6, min(24, width - 40))
    for outcome in findings.searches if findings else ():
        for row in outcome.recall:
            if row.criterion != "point" or not row.found.n:
                continue
            name = "all" if row.whole else f"{rate(row.low)}–{rate(row.high)}"
            line = Text(f"{outcome.intervention.basis.value:>10} {outcome.regime.arrow} {name:>8} ")
            line.append(bar(row.found.rate, room), "magenta")
            every = outcome.singletons_tested >= outcome.cost.candidates
            lines.append(line.append(f" {recall_words(row.found, every=every)} found"))
    return lines if len(lines) > 1 else [*lines, Text("no exhaustive run to compare with", "dim")]


def coverage(state: RunState, width: int) -> list[Text]:
    """A line a layer: records that its localized units flip between them, of those counted so far."""
    lines = [Text("Records flipped by a layer's localized units", "bold")]
    room = max(6, min(24, width - 40))
    for layer in state.coverage.values():
        line = Text(f"{plain(layer.layer)} {arrow(layer.regime)} ".rjust(12))
        line.append(bar(layer.flipped / layer.n if layer.n else 0.0, room), "blue")
        lines.append(line.append(f" {layer.flipped:,}/{layer.n:,}"))
    return lines if len(lines) > 1 else [*lines, Text("counted once the search has ended", "dim")]


def figures(state: RunState, singles: Singles, findings: Findings | None, width: int) -> Text:
    """All pictures, one under another."""
    blocks: Sequence[list[Text]] = (
        layers(state, width),
        flip_rates(state, singles, width),
        coverage(state, width),
        recall(findings, width),
    )
    return Text("\n\n").join(Text("\n").join(block) for block in blocks)
