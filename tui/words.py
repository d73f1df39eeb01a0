"""How states, rates and counts are said: a word, a glyph and a style each, so that no colour is needed.

Then the lines above and below a run: what runs, how it goes, what it cost, what can be done.

Every text that a model, a rule or a file brought passes through `said`, which knows no markup.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from rich.text import Text

from mecharule_ops.events import UnitJudged
from mecharule_ops.plain_text import plain
from mecharule_ops.state.run_state import RunState
from mecharule_ops.state.search_view import NodeView
from mecharule_ops.thresholds import Thresholds

_EIGHTHS = " ▏▎▍▌▋▊▉"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One state, said three times over."""

    word: str
    glyph: str
    style: str


OPENED = Look(word="opened", glyph="▾", style="bold")
RULED_OUT = Look(word="ruled out", glyph="∙", style="dim")
JUDGED = {
    "shown": Look(word="shown", glyph="●", style="bold green"),
    "suggestive": Look(word="suggestive", glyph="◐", style=""),
    "open": Look(word="not shown", glyph="○", style=""),
}
"""How sure it is of a unit that reaches τ, once answers kept aside were asked; colour is for what is shown alone."""
REACHES = Look(word="reaches τ", glyph="○", style="")
NOT_RULED_OUT = Look(word="not ruled out", glyph="◦", style="dim")
ASKED = Look(word="asked", glyph="◌", style="bold")


def said(text: str, style: str = "") -> Text:
    """A line of text exactly as written, less control characters."""
    return Text(plain(text), style=style, no_wrap=False)


def look_of(node: NodeView, thresholds: Thresholds, judged: UnitJudged | None) -> Look:
    """How a node's verdict is said; a kept unit below τ is only localized, one above it as it was `judged`."""
    if node.verdict == "kept":
        if judged is not None:
            return JUDGED[judged.certainty]
        return REACHES if thresholds.reached_by(node.strength) else NOT_RULED_OUT
    return {"split": OPENED, "pruned": RULED_OUT, "dropped": RULED_OUT}.get(node.verdict or "", ASKED)


SPINNER = "⠋⠙⠴⠦"


def short_percent(value: float, beside: float | None = None) -> str:
    """`44 %`, as everywhere; with as many digits as tell it from a rate `beside`."""
    from mecharule_ops.numbers import percent as said

    return said(value, beside)


def short_percent_at_least(value: float) -> str:
    """The same rounded down."""
    from mecharule_ops.numbers import percent_at_least as said

    return said(value)


def noun_of(letter: str) -> str:
    """What one unit of the basis with this letter is called."""
    from mecharule_ops.bases import Basis

    return next(basis.row.noun for basis in Basis if basis.letter == letter)


def arrow(regime: int) -> str:
    """The flip direction of a regime."""
    return "1→0" if regime else "0→1"


def counted(count: int, noun: str) -> str:
    """`1 unit`, `2 units`; `numbers.plural` would load numerical packages when the app starts."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def clock(seconds: float) -> str:
    """`3:07`, or `1:03:07` from an hour on."""
    whole = int(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


def bar(share: float, width: int, rest_of_it: str = " ") -> str:
    """A bar of `share` in [0, 1] of `width` cells, to an eighth of a cell; it stands beside its number."""
    full, rest = divmod(round(min(max(share, 0.0), 1.0) * width * 8), 8)
    return ("█" * full + _EIGHTHS[rest] * (rest > 0)).ljust(width, rest_of_it)


class Activity(Enum):
    """What the work is doing; the value is the word in the header."""

    READING = "READING"
    READ = "READ"
    WORKING = "LIVE"
    STOPPING = "STOPPING"
    STOPPED = "STOPPED, checkpoint kept"
    ENDED = "ENDED"
    FAILED = "FAILED"


_PARTS = ("answers", "search", "audit", "rules", "why")
_STAGES = {
    "behaviour": ("answers", "the model answers every prompt"),
    "predicates": ("answers", "conditions on the prompts"),
    "splitter rule": ("answers", "how to halve the answers"),
    "no-op guard": ("answers", "an ablation of nothing changes nothing"),
    "first order": ("search", "what first order predicts of every unit"),
    "EAP-IG": ("search", "attribution of every unit"),
    "whole layers": ("search", "whole layers, one after another"),
    "CHA": ("search", "groups under test"),
    "guided search": ("search", "units and groups under test"),
    "exhaustive": ("search", "every unit alone"),
    "audit": ("audit", "a random sample of what was not tested"),
    "held-out flips": ("audit", "what was found, on answers kept aside"),
    "anchored rules": ("rules", "rules for when they flip"),
    "controls": ("rules", "random units beside them"),
    "certificates": ("rules", "proofs to replay"),
    "further records": ("why", "more answers"),
    "accounts": ("why", "when each flips, and why"),
    "chain of": ("why", "how it gets to the answer"),
}
"""The stages of a run by how their names begin: the part of it that each is in, and what is computed there."""


def _stage(name: str) -> tuple[str, str]:
    return next((told for begin, told in _STAGES.items() if name.startswith(begin)), ("answers", plain(name)))


def doing(state: RunState) -> str:
    """What is being computed, in words, with how far it is."""
    stage = state.stage
    if stage is None:
        return ""
    return _stage(stage.stage)[1] + (f" {stage.done:,} of {stage.total:,}" if stage.total else "")


def rail(state: RunState) -> list[Text]:
    """`✓ answers`, `▶ SEARCH`, `○ audit`, `○ rules`, `○ why`."""
    last = state.stage.stage if state.stage else next(reversed(list(state.stages)), "")
    at = len(_PARTS) if state.finished else _PARTS.index(_stage(last)[0])
    return [
        Text(f"▶ {part.upper()}", "bold")
        if place == at
        else Text(f"{'✓' if place < at else '○'} {part}", "dim")
        for place, part in enumerate(_PARTS)
    ]


def time_left(seconds: float | None) -> str:
    """Minutes, or seconds in fives where few are left; empty where it is not known."""
    if seconds is None:
        return ""
    return f"~{seconds / 60:.0f} min left" if seconds >= 100 else f"~{max(5, 5 * round(seconds / 5))} s left"


def headline(state: RunState, activity: str, left: str, width: int) -> Text:
    """The run, its task and model; to the right the stages and the time left, as far as there is room."""
    header = state.header
    text = Text(no_wrap=True)
    if header is None:
        return text.append(f" MechaRule  {activity}", "bold")
    text.append(f" {plain(header.run)} ", "bold")
    text.append(f" {plain(header.task)} · {plain(header.model)} · {' and '.join(map(arrow, header.regimes))}")
    stages = rail(state) if activity in ("LIVE", "REPLAY") else []
    word = Text(f" {activity} ", "bold reverse") if activity != Activity.WORKING.value else Text()
    now, end = [part for part in stages if "▶" in part.plain], Text(f"  {left}" if left else "")
    for some in (stages, now, []):
        tail = Text("  ").join([Text(" "), *some, word]) + end
        if text.cell_len + tail.cell_len <= width:
            return text.append(" " * (width - text.cell_len - tail.cell_len)).append_text(tail)
    text.truncate(max(0, width - word.cell_len - 1))
    return text.append(" ").append_text(word)


def progress(state: RunState, elapsed: float) -> str:
    """`186 of at most 317 tests · 5:18 · 301 of 1,297 answers right`."""
    cost, price, parts = state.cost, state.price, []
    if cost is not None:
        most = (
            f" of at most {price.evaluations:,}"
            if price and price.evaluations >= cost.group_evaluations
            else ""
        )
        parts.append(f"{cost.group_evaluations:,}{most} tests")
    parts.append(clock(elapsed))
    told = state.stages.get("behaviour")
    return " · ".join(parts + ([plain(told.summary)] if told else []))


def activity_word(activity: Activity, state: RunState) -> str:
    """The word in the header; a stored run may have ended before its end."""
    if activity in (Activity.ENDED, Activity.READ):
        return "DONE" if state.finished else "UNFINISHED"
    return activity.value


def status_line(state: RunState, activity: Activity, failure: str) -> str:
    """How the run stands, in a sentence."""
    if activity is Activity.FAILED:
        return f"failed: {plain(failure)}"
    if activity is Activity.STOPPED:
        return "stopped, checkpoint kept; ^R resumes"
    if activity is Activity.STOPPING:
        return "stopping after this batch; the checkpoint is kept"
    if state.finished:
        return plain(state.status)
    if activity in (Activity.ENDED, Activity.READ):
        return "not finished; ^R continues it"
    if state.header is None and activity is Activity.WORKING:
        return "loading the engine, which takes longest the first time"
    return doing(state)
