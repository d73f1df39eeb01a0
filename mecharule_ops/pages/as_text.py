"""A report document as plain text for a terminal and as Markdown."""

from __future__ import annotations

import csv
import io
import re
import textwrap
from collections.abc import Mapping, Sequence

from mecharule_ops.pages.document import Block, Bullets, Document, Table
from mecharule_ops.plain_text import plain, tied

_GAP = "  "
_SHORTEST_COLUMN = 6
_LONGEST_WORD = 14
"""A longer word, such as an unbroken rule, may be broken."""


def text_of(document: Document, width: int) -> str:
    """Plain text of at most `width` columns (an even narrower table keeps 6 columns a cell); no colour."""
    lines = [plain(document.title), "=" * min(width, len(document.title))]
    for section in document.sections:
        lines += ["", plain(section.title), "-" * min(width, len(section.title))]
        for block in section.blocks:
            lines += [*block_lines(block, width), ""]
        lines.pop()
    return "\n".join(line.rstrip() for line in lines) + "\n"


def markdown_of(document: Document, pictures: Mapping[str, tuple[str, str]] | None = None) -> str:
    """GitHub-flavoured Markdown; every text is escaped, so that rule text cannot become markup.

    `pictures` maps a section's figure names to (path, caption); a name without one is left out.
    """
    known = pictures or {}
    parts = [f"# {_escape(document.title)}"]
    for section in document.sections:
        parts.append(f"## {_escape(section.title)}")
        parts += [_picture(*known[name]) for name in section.opening if name in known]
        parts += [markdown_block(block) for block in section.blocks]
        parts += [_picture(*known[name]) for name in section.figures if name in known]
    return "\n\n".join(parts) + "\n"


def csv_of(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table as CSV; a cell that a spreadsheet would run as a formula is quoted by an apostrophe."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(
        [header, *([_harmless(cell) for cell in row] for row in rows)]
    )
    return out.getvalue()


def _harmless(cell: object) -> object:
    if not isinstance(cell, str):
        return cell
    is_number = cell.replace(".", "", 1).lstrip("+-").isdigit()
    return f"'{cell}" if cell[:1] in {"=", "+", "-", "@"} and not is_number else cell


def block_lines(block: Block, width: int) -> list[str]:
    """One block as `text_of` prints it: a wrapped paragraph, a list, or a table with its header."""
    if isinstance(block, str):
        return _wrap(plain(block), width)
    if isinstance(block, Bullets):
        return [line for item in block.items for line in _wrap(plain(item), width, "- ", "  ")]
    return _text_table(block, width)


def _wrap(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    lines = textwrap.wrap(
        tied(text), width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )
    return [line.replace("\u00a0", " ") for line in lines]


def _text_table(table: Table, width: int) -> list[str]:
    """Of rich, Table has no line across all columns under a row, and breaks lines at the blanks that `tied` ties."""
    rows = [tuple(plain(cell) for cell in row) for row in (table.header, *table.rows)]
    widths = _fit(rows, table.align, width)
    lines = []
    for index, row in enumerate(rows):
        lines += _text_row(row, widths, table.align)
        if index == 0:
            lines.append(_GAP.join("-" * column for column in widths))
        elif table.notes:
            lines += [
                line
                for note in table.notes[index - 1]
                for line in _wrap(plain(note), width, "    ", "      ")
            ]
    return lines


def _fit(rows: list[tuple[str, ...]], align: str, width: int) -> list[int]:
    """Column widths that add up to `width` where they can.

    The widest column of words gives way first, down to its longest word; then the widest column of any kind.
    """
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    words = [max(len(word) for cell in column for word in cell.split() or [""]) for column in columns]
    floors = [
        max(_SHORTEST_COLUMN, min(word, _LONGEST_WORD)) if side == "l" else natural
        for word, side, natural in zip(words, align, widths, strict=True)
    ]
    for limits in (floors, [_SHORTEST_COLUMN] * len(widths)):
        _shrink(widths, limits, width - len(_GAP) * (len(widths) - 1))
    return widths


def _shrink(widths: list[int], limits: list[int], room: int) -> None:
    """Take one column after another off the widest that is above its limit until they fit, in place."""
    while sum(widths) > room:
        above = [
            index for index, (column, limit) in enumerate(zip(widths, limits, strict=True)) if column > limit
        ]
        if not above:
            return
        widths[max(above, key=lambda index: widths[index])] -= 1


def _text_row(row: tuple[str, ...], widths: list[int], align: str) -> list[str]:
    """One printed row; a cell wider than its column goes on below it."""
    cells = [_wrap(cell, column) or [""] for cell, column in zip(row, widths, strict=True)]
    lines = []
    for depth in range(max(map(len, cells))):
        parts = []
        for cell, column, side in zip(cells, widths, align, strict=True):
            part = cell[depth] if depth < len(cell) else ""
            parts.append(part.rjust(column) if side == "r" else part.ljust(column))
        lines.append(_GAP.join(parts))
    return lines


def _escape(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>|#~&!$])", r"\\\1", plain(text))


def _picture(path: str, caption: str) -> str:
    return f"![{_escape(caption)}]({path})\n\n{_escape(caption)}"


def markdown_block(block: Block) -> str:
    """One block as `markdown_of` prints it."""
    if isinstance(block, str):
        return _escape(block)
    if isinstance(block, Bullets):
        return "\n".join(f"- {_escape(item)}" for item in block.items)
    rules = ["---:" if side == "r" else "---" for side in block.align]
    rows = [tuple(map(_escape, block.header)), tuple(rules)]
    rows += [tuple(map(_escape, row)) for row in block.rows]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    notes = [
        f"- {_escape(row[0])}: {_escape(' '.join(lines_of))}"
        for row, lines_of in zip(block.rows, block.notes, strict=bool(block.notes))
        if lines_of
    ]
    return "\n".join([*lines, *(["", *notes] if notes else [])])
