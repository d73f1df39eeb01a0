"""A repair as it is read on the screen: the point, bars before and after, controls beside, then the report's rest.

Every sentence and every cell is the report's; here they are only placed and drawn. Bars and intervals stand beside
their numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rich.text import Text

from mecharule_ops.findings.repair_outcome import Repair
from mecharule_ops.numbers import k_of_n
from mecharule_ops.plain_text import plain
from mecharule_ops.report.as_text import block_lines
from mecharule_ops.report.document import Block, Document, Section, Table
from mecharule_ops.report.repairs import EXAMPLES, ON_TEST, RESULT, compared, repair_document
from mecharule_ops.saying.repair_facts import changed_words, mended_words, points_words, what_repair_is
from mecharule_ops.types import OutcomeWords, Share
from tui.character_charts import axis, changed_bars, interval_around_zero

REPAIR_HELP = (
    "One repair: gates that ablate a unit only where their rule holds. Right answers before and after are those of "
    "test records that chose nothing; each line under them is a 95 % interval of the change, with │ where nothing "
    "changes. A control whose interval holds │ does nothing that was shown. ] and [ turn to other repairs, y copies "
    "all, e writes the report and the gates to files, m makes a repair."
)
WIDE = 110
"""Columns from which a comparison takes one line."""
_REACH = 1.5
"""The axis goes this many times as far as what the gates do and could do; a control that does more has an arrow."""
_A_COLUMN = 9
"""Columns of the screen that a table needs for each of its own."""
_MOST_BAR, _MOST_INTERVAL, _LEAST_INTERVAL = 60, 24, 10
_LOOKS = {"HELPS": ("✓", "bold green"), "HARMS": ("✗", "bold red"), "OPEN": ("◐", "bold yellow")}
"""The glyph and style of a status, whose value is its words."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeldRepairs:
    """The repairs of one run, latest first, and what its task says of texts and outcomes."""

    run: str
    repairs: tuple[Repair, ...]
    words: OutcomeWords
    concealed: bool

    def document(self, place: int) -> Document:
        """The report of one of them."""
        return repair_document(self.repairs[place], self.words, concealed=self.concealed)


def title(held: HeldRepairs, place: int) -> str:
    """`1 of 2 · Repair of run 0c1f: 0→1, mlp_out, input gates`; the place only among several."""
    if not held.repairs:
        return f"Repairs of run {plain(held.run)}: none"
    which = f"{place + 1} of {len(held.repairs)} · " if len(held.repairs) > 1 else ""
    return f"{which}{plain(held.document(place).title)}"


def empty_text(held: HeldRepairs, width: int, key: str) -> Text:
    """What a repair is, and how to make one; `key` makes one here."""
    text = Text().append(f"Run {plain(held.run)} holds no repair yet.\n\n", "bold")
    text.append("\n".join(block_lines(what_repair_is(held.words), width)))
    text.append("\n\n" + _wrapped(f"{key} makes one here, its price said first. On the command line:", width))
    return text.append(f"\n`mecharule repair {plain(held.run)}`")


def repair_text(held: HeldRepairs, place: int, width: int) -> Text:
    """The whole of one repair in lines of at most `width` columns."""
    found, document = held.repairs[place], held.document(place)
    text = Text()
    for section in sorted(document.sections, key=lambda one: one.title not in (RESULT, ON_TEST)):
        blocks = list(section.blocks)
        if section.title == RESULT:
            text.append_text(_result(found, section, width)).append_text(_bars(found, held.words, width))
            continue
        text.append(f"{section.title}\n", "bold underline")
        if section.title == ON_TEST:
            text.append_text(_comparison(found, width))
            blocks = blocks[1:]
        for block in blocks:
            if section.title == EXAMPLES and isinstance(block, Table):
                text.append_text(_examples(block, width))
            else:
                text.append("\n".join(_lines(block, width)) + "\n")
        text.append("\n")
    text.rstrip()
    return text


def _result(found: Repair, section: Section, width: int) -> Text:
    """The point first, after the glyph of the status; then the status in words; then the rest."""
    glyph, style = _LOOKS.get(found.status.name, ("○", "bold"))
    styles = [*(("bold", style) if found.test is not None else (style,)), *[""] * len(section.blocks)]
    text = Text()
    for index, block in enumerate(section.blocks):
        said = f"{glyph} {block}" if index == 0 else block
        text.append("\n".join(block_lines(said, width)) + "\n", styles[index])
    return text.append("\n")


def _bars(found: Repair, words: OutcomeWords, width: int) -> Text:
    """Two bars on the same scale: what was right before, what is after; nothing where the test was not opened."""
    result = found.test
    if result is None:
        return Text()
    wanted = mended_words(words, found.regime)
    counts = [k_of_n(Share(count=count, n=result.n)) for count in (result.before, result.after)]
    room = max(8, min(_MOST_BAR, width - 9 - max(map(len, counts))))
    text = Text().append(f"{wanted.capitalize()} on the test records\n", "bold underline")
    for name, bar, count in zip(("before", "after"), changed_bars(result, room), counts, strict=True):
        text.append(f"{name:<7}").append(bar, "cyan").append(f" {count}\n")
    text.append(f"change {points_words(result)}\n")
    legend = f"█ {wanted} both times · ░ broken by a gate · ▓ fixed by one"
    return text.append(_wrapped(legend, width), "dim").append("\n\n")


def _comparison(found: Repair, width: int) -> Text:
    """The gates and everything beside them: an interval around no change, and in numbers."""
    rows = [(name, result, points_words(result), changed_words(result)) for name, result in compared(found)]
    most = _REACH * max(abs(end) for _, result, _, _ in rows[:2] for end in result.interval)
    ends = [end for _, result, _, _ in rows for end in result.interval if abs(end) <= most]
    scale = (min(0.0, *ends), max(0.0, *ends))
    points, changes = max(len(row[2]) for row in rows), max(len(row[3]) for row in rows)
    wide = width >= WIDE
    room = min(_MOST_INTERVAL, width // 5 if wide else max(_LEAST_INTERVAL, width - points - 4))
    names = width - room - points - changes - 6 if wide else 0
    text = Text(f"{'':<{names + 2}}{axis(scale, room)}".rstrip() + "\n", "dim")
    for index, (name, result, point, changed) in enumerate(rows):
        style = "" if index else "bold"
        drawn = interval_around_zero(result.interval[0], result.points, result.interval[1], scale, room)
        if wide:
            first, *rest = _wrapped(name, names).split("\n")
            text.append(f"{first:<{names}}  ", style).append(drawn, "cyan")
            text.append("\n".join([f"  {point:<{points}}  {changed}", *rest]) + "\n", style)
        else:
            text.append(f"{_wrapped(f'{name} · {changed}', width)}\n  ", style).append(drawn, "cyan")
            text.append(f"  {point}\n" if room + points + 4 <= width else f"\n  {point}\n", style)
    legend = (
        "the axis is the change in points; a line is a 95 % interval, ● what was measured, │ no change, "
        "◂ off the axis"
    )
    return text.append(f"{_wrapped(legend, width)}\n", "dim")


def _examples(table: Table, width: int) -> Text:
    """The report's examples, fixed and broken told apart by a word, a sign and a colour."""
    signs = {"fixed": "✓ fixed", "broken": "✗ broken"}
    rows = tuple((signs.get(first, first), *rest) for first, *rest in table.rows)
    text, style = Text(), ""
    for line in _lines(replace(table, rows=rows), width):
        style = {"✓": "green", "✗": "red", " ": style}.get(line[:1], "dim")
        text.append(f"{line}\n", style)
    return text


def _lines(block: Block, width: int) -> list[str]:
    """A block of the report; a table too wide for the pane is a paragraph a row."""
    if not isinstance(block, Table) or width >= _A_COLUMN * len(block.header):
        return [line.rstrip() for line in block_lines(block, width)]
    rows = (
        " · ".join(f"{name} {cell}".strip() for name, cell in zip(block.header, row, strict=True))
        for row in block.rows
    )
    return [line for row in rows for line in block_lines(row, width)]


def _wrapped(sentence: str, width: int) -> str:
    return "\n".join(block_lines(sentence, width))
