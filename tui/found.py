"""What a run has found so far: the shown units by their bound, how many reach τ beside them, a flip just now.

Only shown units have a name, a rank and a colour here; the others are counted until answers kept aside were asked.
"""

from __future__ import annotations

from rich.text import Text

from mecharule_ops.events import UnitJudged
from mecharule_ops.plain_text import plain
from mecharule_ops.state.board import OPEN, REACHES, Board, Place
from mecharule_ops.state.run_state import RunState
from tui.character_charts import bar
from tui.words import JUDGED, arrow, counted, noun_of, percent

FOUND_HELP = (
    "What was found so far. Green and ranked are the units that were shown: their share of answers kept aside that "
    "change, which chose no unit, and the least that it is (95 %). Others are counted. Enter opens the card of the "
    "unit under the cursor of map or tree."
)
FLIPPED = "→"
"""Stands between an answer before and after."""

WIDE = 42
"""Columns from which a line holds the rate beside its bound."""


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
        text.append(f"{rate} at least {percent(judged.lower)}\n")
    if shown:
        text.append(f"{' ' * 10}{'┄' * max(0, int(tau * room) - 1)}┊ {percent(tau)} is looked for\n", "dim")
    layers = board.places.get(place, {}).values()
    reach, still_open = (sum(layer.fates.count(fate) for layer in layers) for fate in (REACHES, OPEN))
    judged_here = [one for (regime, name), one in state.judged.items() if Place(regime, name[0]) == place]
    undecided, noun = max(0, reach - len(judged_here)), noun_of(place.letter)
    if undecided:
        text.append(
            f"{counted(undecided, noun)} reach{'es' if undecided == 1 else ''} {percent(tau)} of one half; "
        )
        text.append("answers kept aside decide which are shown\n")
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
    text = (
        Text()
        .append(f"─ a flip{when} ".ljust(width, "─") + "\n", "dim")
        .append(f"without {name} ({arrow(seen.regime)}):\n")
    )
    for answer in seen.answers:
        before, after = plain(answer.before.strip()), plain(answer.after.strip())
        text.append(f" {plain(answer.prompt)} {before}")
        if answer.flipped:
            text.append(f" {FLIPPED} ").append(after, "bold").append("\n")
        else:
            text.append(" = unharmed\n", "dim")
    return text
