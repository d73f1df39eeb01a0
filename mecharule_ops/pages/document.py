"""The shape of a report before it is text, Markdown or HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
Column = tuple[str, str, Callable[[T], str]]
"""A column's name, its side (`l` or `r`), and what stands in it for one of the things that a table lists."""


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

    @classmethod
    def of(cls, items: Iterable[T], columns: Sequence[Column[T]]) -> Table:
        """A row a thing."""
        return cls(
            header=tuple(name for name, _, _ in columns),
            rows=tuple(tuple(cell(item) for _, _, cell in columns) for item in items),
            align="".join(side for _, side, _ in columns),
        )


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
