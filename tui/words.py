"""How states, rates and counts are said: a word, a glyph and a style each, so that no colour is needed.

Then the lines above and below a run: what runs, how it goes, what it cost, what can be done.

Every text that a model, a rule or a file brought passes through `said`, which knows no markup.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from rich.text import Text

from mecharule_ops.events import UnitJudged
from mecharule_ops.plain_text import plain
from mecharule_ops.state.run_state import RunState
from mecharule_ops.state.search_view import NodeView
from mecharule_ops.thresholds import Thresholds
from tui.seconds import clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One state, said three times over."""

    word: str
    glyph: str
    style: str


OPEN = Look(word="OPEN", glyph="▾", style="bold")
PRUNED = Look(word="PRUNED", glyph="○", style="dim")
DROPPED = Look(word="DROPPED", glyph="○", style="dim")
JUDGED = {
    "shown": Look(word="SHOWN", glyph="●", style="bold green"),
    "suggestive": Look(word="SUGGESTIVE", glyph="◐", style=""),
    "open": Look(word="NOT SHOWN", glyph="○", style=""),
}
"""How sure it is of a unit that reaches τ, once answers kept aside were asked; colour is for what is shown alone."""
REACHES = Look(word="REACHES τ", glyph="○", style="")
LOCALIZED = Look(word="LOCALIZED", glyph="○", style="dim")
ASKED = Look(word="ASKED", glyph="◌", style="dim")


PREDICTION_LOOKS = {
    "open": Look(word="OPEN", glyph="◌", style="bold"),
    "supported": Look(word="SUPPORTED", glyph="✓", style="bold green"),
    "refuted": Look(word="REFUTED", glyph="✗", style="bold red"),
    "weaker": Look(word="WEAKER", glyph="○", style="dim"),
    "underpowered": Look(word="UNDERPOWERED", glyph="◐", style="yellow"),
    "undecided": Look(word="UNDECIDED", glyph="◐", style="yellow"),
}
"""How the state of a prediction is said; only the rivals of an investigation are `weaker`."""


def said(text: str, style: str = "") -> Text:
    """A line of text exactly as written, less control characters."""
    return Text(plain(text), style=style, no_wrap=False)


def look_of(node: NodeView, thresholds: Thresholds, judged: UnitJudged | None) -> Look:
    """How a node's verdict is said; a kept unit below τ is only localized, one above it as it was `judged`."""
    if node.verdict == "kept":
        if judged is not None:
            return JUDGED[judged.certainty]
        return REACHES if thresholds.reached_by(node.strength) else LOCALIZED
    return {"split": OPEN, "pruned": PRUNED, "dropped": DROPPED}.get(node.verdict or "", ASKED)


def rate(value: float | None) -> str:
    """`.44`, `1.0`, `–` for None or NaN: two decimals without the leading zero."""
    if value is None or value != value:
        return "–"
    shown = f"{abs(value):.2f}"
    sign = "-" if value < 0 and shown != "0.00" else ""
    return sign + (shown[1:] if shown.startswith("0") else "1.0" if shown == "1.00" else shown)


def threshold(thresholds: Thresholds) -> str:
    """What a strength is held against: `.20`."""
    return rate(thresholds.tau)


def signed_rate(value: float | None) -> str:
    """`+.39`, `-.05`."""
    text = rate(value)
    return text if text.startswith(("-", "–")) else f"+{text}"


def arrow(regime: int) -> str:
    """The flip direction of a regime."""
    return "1→0" if regime else "0→1"


def counted(count: int, noun: str) -> str:
    """`1 unit`, `2 units`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


@lru_cache(65536)
def bounds(flips: int, n: int, alpha: float) -> tuple[float, float]:
    """One-sided Clopper–Pearson lower and upper bound, each at level 1 − α."""
    from mecharule_ops.confidence import lower_bound, upper_bound

    return lower_bound(flips, n, alpha), upper_bound(flips, n, alpha)


def slices_of(node: NodeView) -> tuple[tuple[str, int, int], tuple[str, int, int]]:
    """The name of each slice of a node, its flips and its examples."""
    return (
        ("D+", node.associated_flips, node.associated_n),
        ("D-", node.unrelated_flips, node.unrelated_n),
    )


def node_lower_bound(node: NodeView, thresholds: Thresholds) -> float:
    """The larger lower bound of the two slices, each at α/2."""
    return max(bounds(flips, n, thresholds.alpha / 2)[0] for _, flips, n in slices_of(node))


class Activity(Enum):
    """What the work is doing; the value is the word in the header."""

    READING = "READING"
    READ = "READ"
    WORKING = "LIVE"
    STOPPING = "STOPPING"
    STOPPED = "STOPPED, checkpoint kept"
    ENDED = "ENDED"
    FAILED = "FAILED"


def headline(state: RunState, activity: str, pace: str) -> Text:
    """` MechaRule  model · task · 1→0 · τ .20 ε .20 α .05 n 64   run 0c1f LIVE 6/s`."""
    header = state.header
    if header is None:
        return Text(f" MechaRule  {activity}", "bold", no_wrap=True)
    regimes = " and ".join(map(arrow, header.regimes))
    settings = f"τ {threshold(header.thresholds)} ε {rate(header.epsilon)} α {rate(header.alpha)} n {header.slice_size}"
    text = Text(no_wrap=True).append(f" run {plain(header.run)} ", "bold")
    text.append(f"{activity}{pace}", "bold reverse")
    text.append(f"  {plain(header.model)} · {plain(header.task)} · {regimes} · {settings}")
    return text.append(f" · {plain(header.basis)} {plain(header.baseline)} {plain(header.phase)}", "dim")


def progress(state: RunState, elapsed: float) -> str:
    """`search 12/30 · 412/~1,840 ablations · .9% of brute · 3:10`."""
    parts = []
    if state.stage is not None:
        total = f" {state.stage.done:,}/{state.stage.total:,}" if state.stage.total else ""
        parts.append(f"{plain(state.stage.stage)}{total}")
    cost = state.cost
    if cost is not None:
        of = f"/~{state.price.evaluations:,}" if state.price else ""
        parts.append(f"{cost.group_evaluations:,}{of} ablations")
        if cost.reused:
            parts.append(f"{cost.reused:,} reused")
        if cost.speculative:
            parts.append(f"{cost.speculative:,} forwards ahead")
    units = sum(view.units for view in state.searches.values())
    if units:
        parts.append(f"{_percent(state.counts.tested / units)} of brute")
    return " · ".join([*parts, clock(elapsed)])


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%" if share >= 0.1 else f"{100 * share:.1f}%"


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
    shown = sum(judged.rank is not None for judged in state.judged.values())
    strong = sum(agonist.is_tau_agonist for agonist in state.agonists.values())
    rules = sum(rule.predicts for rule in state.rules.values())
    return f"{shown} shown, {counted(strong, 'unit')} at τ, {len(state.agonists)} localized, {rules} rules so far"
