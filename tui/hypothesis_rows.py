"""The hypothesis ledger as it is shown: a row an entry, and the entry under the cursor in full.

A prediction is asserted until its test has run; what decides it was fixed before.
"""

from __future__ import annotations

from collections import Counter

from rich.text import Text

from mecharule_ops.plain_text import plain
from mecharule_ops.state.run_state import HypothesisView, RunState
from tui.words import Look, counted, rate

HEADER = ("id", "state", "unit", "measured", "needs", "n", "holds where", "hypothesis")
_LOOKS = {
    "open": Look(word="OPEN", glyph="◌", style="bold"),
    "supported": Look(word="SUPPORTED", glyph="✓", style="bold green"),
    "refuted": Look(word="REFUTED", glyph="✗", style="bold red"),
    "underpowered": Look(word="UNDERPOWERED", glyph="◐", style="yellow"),
}


def hypothesis_rows(state: RunState) -> list[tuple[str, ...]]:
    """Every entry in the order registered, as printed under `HEADER`."""
    return [_row(entry) for entry in state.hypotheses.values()]


def _row(entry: HypothesisView) -> tuple[str, ...]:
    said, decided = entry.registered, entry.decided
    look = _LOOKS[entry.state]
    return (
        plain(said.hypothesis),
        f"{look.glyph} {look.word}",
        plain(said.subject),
        rate(decided.value if decided else None),
        rate(said.threshold),
        f"{decided.n:,}" if decided else "–",
        plain(said.condition),
        plain(said.statement),
    )


def ledger_sentence(state: RunState) -> str:
    """`3 hypotheses: 1 open, 2 refuted`."""
    counts = Counter(entry.state for entry in state.hypotheses.values())
    if not counts:
        return "no hypothesis is registered; refining rules registers them, each before its test"
    parts = [f"{counts[name]} {name}" for name in _LOOKS if counts[name]]
    total = counts.total()
    return f"{total} {'hypothesis' if total == 1 else 'hypotheses'}: {', '.join(parts)}"


def hypothesis_text(entry: HypothesisView) -> Text:
    """One entry: the prediction, what decides it, and what came out."""
    said, decided, look = entry.registered, entry.decided, _LOOKS[entry.state]
    text = Text().append(f"{look.glyph} {look.word}", look.style)
    text.append(f"  {plain(said.subject)}  {plain(said.hypothesis)}\n", "bold")
    text.append(f"grade: {'asserted' if decided is None else 'held-out'}\n", "dim")
    text.append(f"{plain(said.statement)}\n")
    text.append("flips where  ", "bold").append(f"{plain(said.condition)}\n")
    text.append("decided by   ", "bold").append(f"{plain(said.test)}, at least {rate(said.threshold)}\n")
    if decided is None:
        return text.append("its test has not run", "dim")
    value = "could not be decided: too few of one side" if decided.value is None else rate(decided.value)
    text.append("measured     ", "bold").append(f"{value} on {counted(decided.n, 'record')}")
    return text.append(f", {decided.positives:,} of them flips")
