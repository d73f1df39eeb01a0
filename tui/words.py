"""How states, rates and counts are said: a word, a glyph and a style each, so that no colour is needed.

Every text that a model, a rule or a file brought passes through `said`, which knows no markup.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from rich.text import Text

from mecharule_ops.plain_text import plain
from mecharule_ops.state.search_view import NodeView
from mecharule_ops.thresholds import Thresholds


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One state, said three times over."""

    word: str
    glyph: str
    style: str


OPEN = Look(word="OPEN", glyph="▾", style="bold")
PRUNED = Look(word="PRUNED", glyph="○", style="dim")
DROPPED = Look(word="DROPPED", glyph="○", style="dim")
AGONIST = Look(word="AGONIST", glyph="●", style="bold green")
LOCALIZED = Look(word="LOCALIZED", glyph="◐", style="yellow")
ASKED = Look(word="ASKED", glyph="◌", style="dim")


def said(text: str, style: str = "") -> Text:
    """A line of text exactly as written, less control characters."""
    return Text(plain(text), style=style, no_wrap=False)


def look_of(node: NodeView, thresholds: Thresholds) -> Look:
    """How a node's verdict is said; a kept unit below τ is only localized."""
    if node.verdict == "kept":
        return AGONIST if thresholds.reached_by(node.strength) else LOCALIZED
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


def clock(seconds: float) -> str:
    """`3:07`, or `1:03:07` from an hour on."""
    whole = int(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


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
