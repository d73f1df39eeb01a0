"""What is known of the node under the cursor: how much changes without it and how sure that is, by the events so far.

Of a unit of a run that has ended all else is the answer to "why?", in its own words.
"""

from __future__ import annotations

from rich.text import Text

from mecharule_ops.plain_text import plain
from mecharule_ops.state.run_state import RunState
from mecharule_ops.state.search_view import SearchView
from tui.character_charts import bar
from tui.found import FLIPPED, flip_text
from tui.tree_rows import why_decided
from tui.words import arrow, counted, look_of, noun_of, percent, slices_of

BAR, LONGEST_PART = 20, 12
"""Columns of a bar, and letters of the name of an answer's part."""


def card(state: RunState, view: SearchView, number: int, width: int, told: str = "") -> Text:
    """The card of one node; `told` is the answer to why a unit flips, if there is one."""
    node = view.nodes[number]
    judged = state.judged.get((view.regime, node.units))
    look, letter = look_of(node, view.thresholds, judged), node.units[:1]
    text = Text().append(f"{look.glyph} {look.word}", look.style)
    text.append(f"  {plain(node.units) or f'node {number}'}  {arrow(view.regime)}", "bold")
    text.append(
        f"  {counted(node.size, noun_of(letter) if letter else 'unit')} of layer {view.layer}\n", "dim"
    )
    if node.verdict is None:
        return text.append(f"under test: asked on {counted(node.tried, 'answer')} so far")
    room = max(6, min(BAR, width - 40))
    if judged is not None:
        text.append(bar(judged.flips / judged.n, room, "·"), look.style)
        text.append(f" {judged.flips} of {judged.n} answers kept aside, at least {percent(judged.lower)}\n")
    for half, (_, flips, n) in zip("AB", slices_of(node), strict=True):
        if n:
            text.append(bar(flips / n, room, "·")).append(
                f" {flips} of {n} of half {half} of the answers\n", "dim"
            )
    if told:
        return text.append("\n").append_text(_answer(told))
    if node.size > 1 or judged is None:
        text.append(f"{why_decided(view, node)}\n", "dim")
    if state.seen and (state.seen.regime, state.seen.neuron) == (view.regime, node.units):
        text.append_text(flip_text(state, width))
    return text


def _answer(told: str) -> Text:
    """An answer by its parts: what begins with a part's name in bold."""
    text = Text()
    for line in told.splitlines():
        name, dot, rest = line.partition(". ")
        is_part = bool(dot) and len(name) <= LONGEST_PART and name[:1].isupper()
        text.append(f"{plain(name)}. " if is_part else "", "bold")
        text.append(
            plain(rest if is_part else line), "" if is_part or FLIPPED not in line else "bold"
        ).append("\n")
    return text
