"""A report document as one self-contained HTML page: no script, no external file, light and dark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files

from mecharule_ops.pages.document import Block, Bullets, Document, Section, Table
from mecharule_ops.plain_text import plain, tied

_STYLE = files(__package__).joinpath("page.css").read_text(encoding="utf-8")

_LONG = 40
"""A cell with more characters may wrap; a number never does."""


def html_of(document: Document, figures: Mapping[str, tuple[str, str]]) -> str:
    """The page. `figures` maps a section's figure names to (SVG, caption); a name without one is left out.

    Every text is escaped; the SVG is inlined as given and must come from `plots`.
    """
    title = escape(plain(document.title))
    body = "\n".join(_section(section, figures) for section in document.sections)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{_STYLE}</style>\n</head>\n"
        f"<body>\n<h1>{title}</h1>\n{body}\n</body>\n</html>\n"
    )


def fragment_of(title: str, sections: Sequence[Section], figures: Mapping[str, tuple[str, str]]) -> str:
    """Sections to stand inside another page, such as a notebook's output, in that page's style; as `html_of`."""
    body = "\n".join(_section(section, figures) for section in sections)
    return f"<article>\n<h1>{_text(title)}</h1>\n{body}\n</article>\n"


def _section(section: Section, figures: Mapping[str, tuple[str, str]]) -> str:
    first, drawn = (
        [figure_of(*figures[name]) for name in names if name in figures]
        for names in (section.opening, section.figures)
    )
    blocks = [*first, *map(_block, section.blocks)]
    head = f"<h2>{_text(section.title)}</h2>"
    if section.folded:
        return "\n".join([f"<details><summary>{head}</summary>", *blocks, *drawn, "</details>"])
    return "\n".join(["<section>", head, *blocks, *drawn, "</section>"])


def figure_of(svg: str, caption: str) -> str:
    """One drawing with its caption under it."""
    return f"<figure>\n<div>{svg}</div>\n<figcaption>{_text(caption)}</figcaption>\n</figure>"


def _text(text: str) -> str:
    return escape(tied(plain(text)))


def _block(block: Block) -> str:
    if isinstance(block, str):
        return f"<p>{_text(block)}</p>"
    if isinstance(block, Bullets):
        items = "".join(f"<li>{_text(item)}</li>" for item in block.items)
        return f"<ul>{items}</ul>"
    return _table(block)


def _table(table: Table) -> str:
    head = _row(table.header, table.align, "th")
    notes = table.notes or ((),) * len(table.rows)
    bars = table.bars or (None,) * len(table.rows)
    body = "\n".join(
        _row(row, table.align, "td", bar) + "".join(_note(note, len(row)) for note in lines)
        for row, lines, bar in zip(table.rows, notes, bars, strict=True)
    )
    return f'<div class="wide"><table>\n<thead>{head}</thead>\n<tbody>\n{body}\n</tbody>\n</table></div>'


def _row(cells: tuple[str, ...], align: str, tag: str, bar: float | None = None) -> str:
    under = ["" if bar is None else f'<i class="bar" style="width:{bar:.0%}"></i>', *[""] * (len(cells) - 1)]
    inside = "".join(
        f"<{tag}{_class(cell, side)}>{_text(cell)}{drawn}</{tag}>"
        for cell, side, drawn in zip(cells, align, under, strict=True)
    )
    return f"<tr>{inside}</tr>"


def _class(cell: str, side: str) -> str:
    if side == "r":
        return ' class="r"'
    return ' class="long"' if len(cell) > _LONG else ""


def _note(note: str, columns: int) -> str:
    """A line across all columns, under the row that it is about; it stays in view when the table scrolls."""
    return f'<tr class="note"><td colspan="{columns}"><div>{_text(note)}</div></td></tr>'
