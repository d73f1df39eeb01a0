"""What stands beside map and tree: what a run has found so far, or the card of the node under the cursor.

Found are the shown units by their bound, how many reach τ beside them, a flip just now. Only shown units have a name,
a rank and a colour here; the others are counted until answers kept aside were asked. Of a unit of a run that has ended
the card is the answer to "why?", in its own words.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from mecharule_ops.events import UnitJudged
from mecharule_ops.nodes import Node
from mecharule_ops.numbers import percent, percent_at_least, plural
from mecharule_ops.plain_text import plain
from mecharule_ops.state.board import OPEN, REACHES, Board, Place
from mecharule_ops.state.run_state import RunState
from mecharule_ops.state.search_view import SearchView
from tui.words import JUDGED, arrow, bar, look_of, noun_of

FOUND_HELP = (
    "What was found so far. Green and ranked are the units that were shown: their share of answers kept aside that "
    "change, which chose no unit, and the least that it is (95 %). Others are counted. Enter opens the card of the "
    "unit under the cursor of map or tree."
)
FLIPPED = "→"
"""Stands between an answer before and after."""

WIDE = 42
"""Columns from which a line holds the rate beside its bound."""
BAR = 20
"""Columns of a bar."""
Answer = Sequence[tuple[str, str]]
"""Lines, each the name of its part, which may be empty, and what is said."""


def shown_units(state: RunState, place: Place | None = None) -> list[UnitJudged]:
    """The shown units of a run, or of one kind and direction, the one with the highest bound first."""
    found = [
        judged
        for (regime, neuron), judged in state.judged.items()
        if judged.rank is not None and place in (None, Place(regime, neuron[0]))
    ]
    return sorted(found, key=lambda judged: (-judged.lower, judged.neuron))


def found_text(state: RunState, board: Board, place: Place | None, width: int, headline: str = "") -> Text:
    """The panel; `headline` is the finding of a run that has ended, in its own words."""
    text = Text()
    if headline:
        text.append(f"{plain(headline)}\n\n")
    if place is None:
        return text.append("what is found grows here", "dim")
    shown = shown_units(state, place)
    tau, room = state.thresholds.tau, max(6, width - (32 if width >= WIDE else 26))
    for judged in shown:
        text.append(f"{JUDGED['shown'].glyph} {plain(judged.neuron):<8}", "bold green")
        text.append(bar(judged.flips / judged.n, room, "·"), "green")
        rate = f" {percent(judged.flips / judged.n)}," if width >= WIDE else ""
        text.append(f"{rate} at least {percent_at_least(judged.lower)}\n")
    if shown:
        text.append(f"{' ' * 10}{'┄' * max(0, int(tau * room) - 1)}┊ {percent(tau)} is looked for\n", "dim")
    layers = board.places.get(place, {}).values()
    reach, still_open = (sum(layer.fates.count(fate) for layer in layers) for fate in (REACHES, OPEN))
    judged_here = [one for (regime, name), one in state.judged.items() if Place(regime, name[0]) == place]
    undecided, noun = max(0, reach - len(judged_here)), noun_of(place.letter)
    if undecided:
        reaches = f"{plural(undecided, noun)} reach{'es' if undecided == 1 else ''}"
        reaches += f" {percent(tau)} of one half"
        text.append(f"{reaches}; answers kept aside decide which are shown\n")
    for certainty, look in JUDGED.items():
        many = sum(one.certainty == certainty for one in judged_here)
        if many and certainty != "shown":
            text.append(f"{look.glyph} {many} more {look.word}\n")
    if not (shown or undecided or judged_here):
        text.append(f"no {noun} reaches {percent(tau)} so far\n")
    if still_open:
        text.append(f"{still_open:,} not ruled out\n", "dim")
    return text.append_text(flip_text(state, width))


def flip_text(state: RunState, width: int) -> Text:
    """What some answers became without the unit found last; it has its name once it is shown."""
    seen = state.seen
    if seen is None or not seen.answers:
        return Text()
    judged = state.judged.get((seen.regime, seen.neuron))
    where = seen.neuron.split(".")[0]
    name = plain(seen.neuron) if judged and judged.rank else f"one {noun_of(where[0])} of layer {where[1:]}"
    when = "" if state.finished else ", just now"
    text = Text().append(f"─ a flip{when} ".ljust(width, "─") + "\n", "dim")
    text.append(f"without {name} ({arrow(seen.regime)}):\n")
    for answer in seen.answers:
        before, after = plain(answer.before.strip()), plain(answer.after.strip())
        text.append(f" {plain(answer.prompt)} {before}")
        if answer.flipped:
            text.append(f" {FLIPPED} ").append(after, "bold").append("\n")
        else:
            text.append(" = unharmed\n", "dim")
    return text


def card(state: RunState, view: SearchView, node: Node, width: int, told: Answer = ()) -> Text:
    """The card of one node; `told` is the answer to why a unit flips, if there is one."""
    name, at = node.printed(view.at.basis), view.at
    judged = state.judged.get((at.regime, name))
    look = look_of(node, view.thresholds, judged)
    text = Text().append(f"{look.glyph} {look.word}", look.style)
    text.append(f"  {name}  {arrow(at.regime)}", "bold")
    text.append(f"  {plural(node.size, at.basis.row.noun)} of layer {at.layer}\n", "dim")
    if node.verdict is None:
        return text.append("under test")
    room = max(6, min(BAR, width - 40))
    if judged is not None:
        text.append(bar(judged.flips / judged.n, room, "·"), look.style)
        least = percent_at_least(judged.lower)
        text.append(f" {judged.flips} of {judged.n} answers kept aside, at least {least}\n")
    for half, seen in zip("AB", (node.estimate.associated, node.estimate.unrelated), strict=True):
        if seen.n:
            text.append(bar(seen.flip_rate, room, "·"))
            text.append(f" {seen.flips} of {seen.n} of half {half} of the answers\n", "dim")
    if told:
        return text.append("\n").append_text(_answer(told))
    if node.size > 1 or judged is None:
        text.append(f"{_decided(view, node)}\n", "dim")
    if state.seen and (state.seen.regime, state.seen.neuron) == (at.regime, name):
        text.append_text(flip_text(state, width))
    return text


def _decided(view: SearchView, node: Node) -> str:
    """Which numbers decided a node's verdict."""
    tau = view.thresholds.tau
    bound, least = f"at most {percent(node.ucb, tau)} of a half", percent(tau)
    if node.verdict == "split":
        return f"{bound}, which reaches {least}: it may hold a unit that does, and was opened"
    if node.verdict == "kept":
        return f"{bound}, which reaches {least}: not ruled out"
    return f"{bound}, below {least}: ruled out{' with all its units' if node.size > 1 else ''}"


def _answer(told: Answer) -> Text:
    """An answer by its parts: the name of each, and what an answer became, in bold."""
    text = Text()
    for part, said in told:
        text.append(f"{plain(part)}. " if part else "", "bold")
        text.append(plain(said), "" if part or FLIPPED not in said else "bold").append("\n")
    return text
