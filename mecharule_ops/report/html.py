"""A report document as one self-contained HTML page: no script, no external file, light and dark."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from mecharule_ops.report.document import Block, Bullets, Document, Section, Table, plain

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2430; --paper: #ffffff; --line: #c9ced8; --soft: #f3f5f9; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e3e7ee; --paper: #14181f; --line: #3a4250; --soft: #1e242e; }
}
body { color: var(--ink); background: var(--paper); font: 16px/1.5 system-ui, sans-serif;
  max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2 { line-height: 1.2; }
h2 { border-top: 1px solid var(--line); padding-top: 1rem; margin-top: 2rem; }
p, li { max-width: 48rem; overflow-wrap: anywhere; }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: 0.875rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: 0.25rem 0.75rem 0.25rem 0;
  border-bottom: 1px solid var(--line); }
th { background: var(--soft); }
.r { text-align: right; }
td { max-width: 28rem; overflow-wrap: anywhere; }
figure { margin: 1.5rem 0; overflow-x: auto; }
figure svg { max-width: 100%; height: auto; }
figcaption { font-size: 0.875rem; max-width: 48rem; }
"""


def html_of(document: Document, figures: Mapping[str, tuple[str, str]]) -> str:
    """The page. `figures` maps a section's figure names to (SVG, caption); a name without one is left out.

    Every text is escaped; the SVG is inlined as given and must come from `report_plots`.
    """
    title = escape(plain(document.title))
    body = "\n".join(_section(section, figures) for section in document.sections)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<h1>{title}</h1>\n{body}\n</body>\n</html>\n"
    )


def _section(section: Section, figures: Mapping[str, tuple[str, str]]) -> str:
    drawn = [_figure(*figures[name]) for name in section.figures if name in figures]
    blocks = [_block(block) for block in section.blocks]
    return "\n".join(["<section>", f"<h2>{escape(plain(section.title))}</h2>", *blocks, *drawn, "</section>"])


def _figure(svg: str, caption: str) -> str:
    return f"<figure>\n{svg}\n<figcaption>{escape(plain(caption))}</figcaption>\n</figure>"


def _block(block: Block) -> str:
    if isinstance(block, str):
        return f"<p>{escape(plain(block))}</p>"
    if isinstance(block, Bullets):
        items = "".join(f"<li>{escape(plain(item))}</li>" for item in block.items)
        return f"<ul>{items}</ul>"
    return _table(block)


def _table(table: Table) -> str:
    head = _row(table.header, table.align, "th")
    body = "\n".join(_row(row, table.align, "td") for row in table.rows)
    return f'<div class="wide"><table>\n<thead>{head}</thead>\n<tbody>\n{body}\n</tbody>\n</table></div>'


def _row(cells: tuple[str, ...], align: str, tag: str) -> str:
    sides = ("" if side == "l" else ' class="r"' for side in align)
    inside = "".join(
        f"<{tag}{side}>{escape(plain(cell))}</{tag}>" for cell, side in zip(cells, sides, strict=True)
    )
    return f"<tr>{inside}</tr>"
