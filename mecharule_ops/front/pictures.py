"""Pictures and page parts of a run as a notebook shows them: the report's own figures and sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mecharule_ops.errors import StoreError
from mecharule_ops.report.document import Document, Section
from mecharule_ops.report.drawing import standalone
from mecharule_ops.report.html import figure_of, fragment_of
from mecharule_ops.report.text import text_of

WIDTH = 100
"""Columns of a part printed as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One figure of the report; a notebook draws it."""

    name: str
    """As the report names it, such as `layers-0`."""
    drawing: str
    """The SVG as a page holds it."""
    caption: str

    @property
    def svg(self) -> str:
        """The SVG as a file of its own: dark ink on white."""
        return standalone(self.drawing)

    def save(self, file: str | Path) -> Path:
        """Writes the SVG. Raises `StoreError`."""
        try:
            Path(file).write_text(self.svg, encoding="utf-8")
        except OSError as error:
            raise StoreError(f"expected to write {file}, the system says: {error.strerror}") from error
        return Path(file)

    def _repr_html_(self) -> str:
        return figure_of(self.drawing, self.caption)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.caption}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Sections of the report with their figures: a notebook shows them, `str` gives their text."""

    title: str
    sections: tuple[Section, ...]
    pictures: tuple[Picture, ...] = ()

    def _repr_html_(self) -> str:
        drawn = {one.name: (one.drawing, one.caption) for one in self.pictures}
        return fragment_of(self.title, [replace(one, folded=False) for one in self.sections], drawn)

    def __str__(self) -> str:
        return text_of(Document(title=self.title, sections=self.sections), WIDTH)

    __repr__ = __str__


def pictures(figures: Mapping[str, tuple[str, str]], kinds: Sequence[str] = ("",)) -> tuple[Picture, ...]:
    """Figures of the report whose names begin with one of `kinds`, in their order."""
    return tuple(
        Picture(name=name, drawing=svg, caption=caption)
        for name, (svg, caption) in figures.items()
        if name.startswith(tuple(kinds))
    )
