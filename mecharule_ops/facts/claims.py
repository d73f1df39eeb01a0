"""A claim of when a unit flips, as a person reads it: its counts on held-out records, and the figures that decided."""

from __future__ import annotations

from collections.abc import Sequence


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
