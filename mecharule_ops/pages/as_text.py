"""Blocks of a report as plain text for a terminal, and tables as CSV."""

import csv
import io
import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import zip_longest

from mecharule_ops.pages.document import Block, Card, Section, Table
from mecharule_ops.plain_text import plain, tied

WIDTH = max(40, shutil.get_terminal_size().columns)
"""Columns of the terminal in which the program began, 80 where it has none; `COLUMNS` says otherwise."""
_GAP = "  "
_COMMAND = re.compile("`mecharule [^`]*`")
_LONGEST_WORD = 14
"""A longer word, such as an unbroken rule, may be broken."""


def text_of(title: str, sections: Iterable[Section], width: int) -> str:
    """Plain text of at most `width` columns; no colour."""
    lines = [plain(title), "=" * min(width, len(title))]
    for section in sections:
        lines += ["", plain(section.title), "-" * min(width, len(section.title))]
        for block in section.blocks:
            lines += [*block_lines(block, width), ""]
        lines.pop()
    return "\n".join(line.rstrip() for line in lines) + "\n"


def csv_of(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table as CSV; a cell that a spreadsheet would run as a formula is quoted by an apostrophe."""
    out = io.StringIO()
    cells = ([_harmless(cell) for cell in row] for row in rows)
    csv.writer(out, lineterminator="\n").writerows([header, *cells])
    return out.getvalue()


def latex_of(table: Table) -> str:
    """A table as a LaTeX tabular."""
    escaped = {sign: rf"\{sign}" for sign in "&%$#_{}"}
    escaped |= {"\\": r"\textbackslash{}", "→": r"$\to$", "τ": r"$\tau$"}
    signs = str.maketrans(escaped)
    rows = (" & ".join(cell.translate(signs) for cell in row) for row in (table.header, *table.rows))
    head, *body = (rf"{row} \\" for row in rows)
    return "\n".join([rf"\begin{{tabular}}{{{table.align}}}", head, r"\hline", *body, r"\end{tabular}"])


def _harmless(cell: object) -> object:
    if not isinstance(cell, str):
        return cell
    is_number = cell.replace(".", "", 1).lstrip("+-").isdigit()
    return f"'{cell}" if cell[:1] in {"=", "+", "-", "@"} and not is_number else cell


def block_lines(block: Block, width: int) -> list[str]:
    """One block as `text_of` prints it: a wrapped paragraph, a list, or a table with its header."""
    if isinstance(block, str):
        return wrapped(block, width)
    if isinstance(block, tuple):
        return [line for item in block for line in wrapped(item, width, "- ", "  ")]
    if isinstance(block, Card):
        row = wrapped(_GAP.join(filter(None, block.row)), width, rest="    ")
        return [*row, *(f"    {line}" for one in block.opened.blocks for line in block_lines(one, width - 4))]
    return [*_table_lines(block, width)]


def within(text: str, width: int) -> str:
    """A text with its long lines wrapped; rows of a table, whose cells stand apart, stay as they were laid out."""
    told = list[str]()
    for line in text.split("\n"):
        told += [line] if len(line) <= width or _GAP in line.strip() else wrapped(line, width)
    return "\n".join(told)


def wrapped(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    """The text in lines, the later ones behind `rest`; what is tied stays together, so do commands, however long."""
    text = _COMMAND.sub(lambda said: said[0].replace(" ", "\u00a0"), tied(plain(text)))
    wrap = partial(textwrap.wrap, break_on_hyphens=False, break_long_words="`mecharule\u00a0" not in text)
    lines = wrap(text, width, initial_indent=first, subsequent_indent=rest)
    return [line.replace("\u00a0", " ") for line in lines]


def _table_lines(table: Table, width: int) -> Iterator[str]:
    """Rows below their header; each is a paragraph of named cells where no width has room for their words."""
    header, *rows = [tuple(map(plain, row)) for row in (table.header, *table.rows)]
    widths = _widths([header, *rows], table.align, width - len(_GAP) * (len(header) - 1))

    def columns(row: Sequence[str]) -> Iterator[str]:
        cells = [wrapped(cell, column) or [""] for cell, column in zip(row, widths, strict=True)]
        for parts in zip_longest(*cells, fillvalue=""):
            sides = zip(parts, widths, table.align, strict=True)
            yield _GAP.join(part.rjust(w) if side == "r" else part.ljust(w) for part, w, side in sides)

    if widths:
        yield from (*columns(header), _GAP.join("-" * column for column in widths))
    for row, notes in zip(rows, table.notes or [()] * len(rows), strict=True):
        named = (f"{name} {cell}" for name, cell in zip(header, row, strict=True) if cell)
        yield from columns(row) if widths else wrapped(" · ".join(named), width, rest="    ")
        for note in notes:
            yield from wrapped(note, width, "    ", "      ")


def _widths(rows: Sequence[Sequence[str]], align: str, room: int) -> list[int]:
    """Column widths that add up to at most `room`, each with room for its longest word, or none.

    The widest column of words gives way first, down to its longest word; then the widest of any kind that can.
    """
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    words = [max(len(word) for cell in column for word in cell.split() or [""]) for column in columns]
    least = [min(word, _LONGEST_WORD) for word in words]
    if sum(least) > room:
        return []
    while sum(widths) > room:
        able = [at for at, width in enumerate(widths) if width > least[at]]
        widths[max(able, key=lambda at: (align[at] != "r", widths[at]))] -= 1
    return widths
