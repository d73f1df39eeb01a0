"""A claim of when a unit flips, as a person reads it: its counts, what decided, how often its flips were read."""

from __future__ import annotations

from collections.abc import Sequence

from mecharule_ops.numbers import plural
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.tabulating import looks_at
from mecharule_ops.types import Neuron, Regime


def counts_words(unit: str, words: str, counts: Sequence[int]) -> str:
    """`where a carry leaves the units, m1.37 flips 84 of 98 held-out records; elsewhere 8 of 24`."""
    flips, n, other, other_n = counts
    return (
        f"where {words}, {unit} flips {flips:,} of {n:,} held-out records; elsewhere {other:,} of {other_n:,}"
    )


MORE_OFTEN = "it flips more often there, by how much is open"
"""Of a claim that is undecided though its p alone tells the two rates apart."""


def figures_words(
    what: str, value: float, low: float | None, high: float | None, threshold: float, p: float | None
) -> str:
    """`difference +0.44 [+0.14, +0.65], 0.21 was needed, corrected p 0.00036`."""
    interval = "" if low is None or high is None else f" [{low:+.2f}, {high:+.2f}]"
    corrected = "" if p is None else f", corrected p {p:.2g}"
    return f"{what} {value:+.2f}{interval}, {threshold:.2f} was needed{corrected}"


def looks_words(run: Run, unit: str, regime: Regime) -> str:
    """`Held-out flips of m1.37 (1→0) were read for 7 conditions so far, by investigate and tabulate`.

    A condition that two verbs read is one. What the run itself did on these records stands behind.
    """
    kept = looks_at(run, unit, regime)
    told = "were read by no verb so far"
    if kept:
        conditions = plural(len({look["condition"] for look in kept}), "condition")
        told = f"were read for {conditions} so far, by {' and '.join(sorted({look['by'] for look in kept}))}"
    found = None if "+" in unit else run.findings.unit(Neuron.parse(unit), regime)
    scored = found is not None and (found.rule is not None or found.account is not None)
    before = "; rules of this run were scored on these records before" if scored else ""
    return f"Held-out flips of {unit} ({regime.arrow}) {told}{before}"
