"""A report document as one self-contained HTML page: no script, no external file, light and dark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from mecharule_ops.numbers import tied
from mecharule_ops.plain_text import plain
from mecharule_ops.report.document import Block, Bullets, Document, Section, Table

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2330; --muted: #576073; --paper: #ffffff; --line: #d5dae3;
  --soft: #f3f5f9; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e3e7ee; --muted: #9aa5b8; --paper: #14181f; --line: #343c4a; --soft: #1d232d; }
}
* { box-sizing: border-box; }
body { color: var(--ink); background: var(--paper); font: 1rem/1.55 system-ui, sans-serif;
  max-width: 64rem; margin: 2rem auto 4rem; padding: 0 1rem; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 1.5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; line-height: 1.3; border-top: 1px solid var(--line); padding-top: 1.25rem;
  margin: 2.5rem 0 0.75rem; overflow-wrap: anywhere; }
details { border-top: 1px solid var(--line); }
summary { cursor: pointer; padding: 0.75rem 0; }
summary h2 { display: inline; border: 0; padding: 0; margin: 0; }
p, li { max-width: 46rem; overflow-wrap: anywhere; }
ul { padding-left: 1.25rem; }
li { margin: 0.4rem 0; }
.wide { overflow-x: auto; margin: 1rem 0 1.5rem; }
table { border-collapse: collapse; font-size: 0.875rem; line-height: 1.45;
  font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: 0.3rem 0.75rem; white-space: nowrap;
  border-top: 1px solid var(--line); }
th { background: var(--soft); font-weight: 600; border-top: 0; }
.r { text-align: right; }
.bar { display: block; height: 0.3rem; min-width: 1px; background: currentColor; opacity: 0.6;
  print-color-adjust: exact; }
.long { white-space: normal; overflow-wrap: anywhere; min-width: 14rem; max-width: 40rem; }
.note td { border-top: 0; padding-top: 0; white-space: normal; color: var(--muted); }
.note div { position: sticky; left: 0.75rem; width: min(44rem, calc(100vw - 3.5rem));
  overflow-wrap: anywhere; }
figure { margin: 2rem 0; }
figure div { overflow-x: auto; }
figure svg { display: block; width: 100%; min-width: 36rem; max-width: 52rem; height: auto; }
figcaption { font-size: 0.875rem; color: var(--muted); max-width: 46rem; margin-top: 0.5rem; }
"""

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
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n"
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
