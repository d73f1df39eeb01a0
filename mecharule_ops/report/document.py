"""The shape of a report before it is text, Markdown or HTML, and the few ways a number is printed in it."""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass

from mecharule_ops.findings.records import Share
from mecharule_ops.types import FlipCount


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of printed cells."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    align: str
    """One of `l` or `r` a column."""
    notes: tuple[tuple[str, ...], ...] = ()
    """For each row the full-width lines under it; empty when no row has any."""
    bars: tuple[float, ...] = ()
    """For each row a share that a page draws as a bar under its first cell; empty for none."""

    def __post_init__(self) -> None:
        assert all(len(row) == len(self.header) == len(self.align) for row in self.rows), self.header
        assert {len(self.notes), len(self.bars)} <= {0, len(self.rows)}, self.header


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list of sentences."""

    items: tuple[str, ...]


Block = str | Table | Bullets
"""A paragraph, a table or a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A titled part of the report."""

    title: str
    blocks: tuple[Block, ...]
    opening: tuple[str, ...] = ()
    """Names of the plots that stand before the blocks; only HTML shows plots."""
    figures: tuple[str, ...] = ()
    """Names of those after the blocks."""
    folded: bool = False
    """Whether a page shows its title alone until a reader opens it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A whole report."""

    title: str
    sections: tuple[Section, ...]


def plain(text: str) -> str:
    """The text on one line, without control, format or surrogate characters (terminal and bidi tricks)."""
    spaced = " ".join(text.split())
    return "".join("�" if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co"} else char for char in spaced)


def tied(text: str) -> str:
    """The text with no-break spaces, so that `44 %` and `τ ≥ 0.2` stay on one line."""
    return re.sub(r"(?<=\d) (?=%)|(?<=[≥=]) (?=\d)|(?<=τ) (?=[≥=])", "\u00a0", text)


def sentence(text: str) -> str:
    """The text with a capital at its head and a full stop at its end."""
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def k_of_n(count: FlipCount | Share | None) -> str:
    """`28/64 (44 %)`; a rate is never printed without its counts. `–` for None."""
    if count is None:
        return "–"
    k = count.flips if isinstance(count, FlipCount) else count.count
    return f"{k:,}/{count.n:,} ({percent(k / count.n)})" if count.n else "0/0"


def percent(rate: float) -> str:
    """`44 %`, with one decimal below 10 % and two below 1 %; never 0 % or 100 % for anything else."""
    if math.isnan(rate):
        return "–"
    value = 100 * rate
    if value in (0.0, 100.0):
        return f"{value:.0f} %"
    digits = 0 if 10 <= value < 99.5 else 1 if value >= 1 else 2
    shown = f"{value:.{digits}f}"
    if float(shown) == 0:
        return "< 0.01 %"
    return f"{shown} %" if float(shown) != 100 else "> 99.9 %"


def two_decimals(value: float | None) -> str:
    """`0.78`; `–` for None or NaN."""
    return "–" if value is None or math.isnan(value) else f"{value:.2f}"


def signed(value: float) -> str:
    """`+0.39`, never `-0.00`; `–` for NaN."""
    return "–" if math.isnan(value) else f"{round(value, 2) + 0.0:+.2f}"


def plural(count: int, noun: str, many: str | None = None) -> str:
    """`1 unit`, `2 units`; `many` is a plural that takes more than an s."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {many or noun + 's'}"
