"""What a row of the table of faults comes to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number of a row."""

    what: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One kind of fault: what was tried, how often, and what was found."""

    tried: str
    """What was done, with how many."""
    cases: int
    figures: tuple[Figure, ...] = ()
    """Bounds and counts that were measured."""
    problems: tuple[str, ...] = ()
    """Each thing that is not as promised, one line; none where the goal is met."""
    not_run: tuple[str, ...] = ()
    """What this machine or scale left out, one line each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How much is tried, and where."""

    folder: Path
    """Empty, for whatever the row writes."""
    scale: float = 1.0
    """Share of the full number of cases."""
    seed: int = 0
    tell: Callable[[str], None] = field(default=lambda line: None)
    """Hears one line of progress now and then."""
    soak_seconds: float = 180.0

    def count(self, full: int, least: int = 1) -> int:
        """So many of the full number of cases."""
        return max(least, round(full * self.scale))
