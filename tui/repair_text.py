"""A repair as it is read on the screen: the point, bars before and after, controls beside, then the report's rest.

Every sentence and every cell is the report's; here they are only placed and drawn. Bars and intervals stand beside
their numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text

from mecharule_ops.plain_text import plain
from tui.pictures import changed_bars, interval_around_zero

if TYPE_CHECKING:
    from mecharule_ops.findings.repair import Repair, RepairStatus
    from mecharule_ops.repair.statistics import Paired
    from mecharule_ops.report.document import Block, Document, Section, Table
    from mecharule_ops.types import OutcomeWords

REPAIR_HELP = (
    "One repair: gates that ablate a unit only where their rule holds. Right answers before and after are those of "
    "test records that chose nothing; each line under them is a 95 % interval of the change, with │ where nothing "
    "changes. A control whose interval holds │ does nothing that was shown. ] and [ turn to other repairs, y copies "
    "all, e writes the report and the gates to files, m makes a repair."
)
WIDE = 110
"""Columns from which a comparison takes one line."""
_A_COLUMN = 9
"""Columns of the screen that a table needs for each of its own."""
_MOST_BAR, _MOST_INTERVAL, _LEAST_INTERVAL = 60, 24, 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeldRepairs:
    """The repairs of one run, latest first, and what its task says of texts and outcomes."""

    run: str
    repairs: tuple[Repair, ...]
    words: OutcomeWords
    concealed: bool

    def document(self, place: int) -> Document:
        """The report of one of them."""
        from mecharule_ops.report.repairs import repair_document

        return repair_document(self.repairs[place], self.words, concealed=self.concealed)


def title(held: HeldRepairs, place: int) -> str:
    """`1 of 2 · Repair of run 0c1f: 0→1, mlp_out, input gates`."""
    if not held.repairs:
        return f"Repairs of run {plain(held.run)}: none"
    return f"{place + 1} of {len(held.repairs)} · {plain(held.document(place).title)}"


def empty_text(held: HeldRepairs, width: int, key: str) -> Text:
    """What a repair is, and how to make one; `key` makes one here."""
    from mecharule_ops.report.phrases.repair import what_repair_is
    from mecharule_ops.report.text import block_lines

    text = Text(f"Run {plain(held.run)} holds no repair yet.\n\n", "bold")
    command = f"`mecharule repair {plain(held.run)}`"
    for block in (
        what_repair_is(held.words),
        f"{key} makes one here and says its price first; on the command line {command} does.",
    ):
        text.append("\n".join(block_lines(block, width)) + "\n\n")
    return text


def repair_text(held: HeldRepairs, place: int, width: int) -> Text:
    """The whole of one repair in lines of at most `width` columns."""
    from mecharule_ops.report.document import Table
    from mecharule_ops.report.repairs import EXAMPLES, ON_TEST, RESULT

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
    text.right_crop(1)
    return text


def _result(found: Repair, section: Section, width: int) -> Text:
    """The point first, after the glyph of the status; then the status in words; then the rest, dimmed."""
    from mecharule_ops.report.text import block_lines

    glyph, style = _look(found.status)
    styles = ("bold", style) if found.test is not None else (style,)
    text = Text()
    for index, block in enumerate(section.blocks):
        said = f"{glyph} {block}" if index == 0 else block
        text.append(
            "\n".join(block_lines(said, width)) + "\n", styles[index] if index < len(styles) else "dim"
        )
    return text.append("\n")


def _look(status: RepairStatus) -> tuple[str, str]:
    """The glyph and style of a status, whose value is its words."""
    from mecharule_ops.findings.repair import RepairStatus

    return {
        RepairStatus.HELPS: ("✓", "bold green"),
        RepairStatus.HARMS: ("✗", "bold red"),
        RepairStatus.OPEN: ("◐", "bold yellow"),
    }.get(status, ("○", "bold"))


def _bars(found: Repair, words: OutcomeWords, width: int) -> Text:
    """Two bars on the same scale: what was right before, what is after; nothing where the test was not opened."""
    from mecharule_ops.findings.records import Share
    from mecharule_ops.report.document import k_of_n
    from mecharule_ops.report.phrases.repair import mended_words, points_words

    result = found.test
    if result is None:
        return Text()
    wanted = mended_words(words, found.regime)
    counts = [k_of_n(Share(count=count, n=result.n)) for count in (result.before, result.after)]
    room = max(8, min(_MOST_BAR, width - 9 - max(map(len, counts))))
    text = Text(f"{wanted.capitalize()} on the test records\n", "bold underline")
    for name, bar, count in zip(("before", "after"), changed_bars(result, room), counts, strict=True):
        text.append(f"{name:<7}").append(bar, "cyan").append(f" {count}\n")
    text.append(f"change {points_words(result)}\n")
    legend = f"█ {wanted} both times · ░ broken by a gate · ▓ fixed by one"
    return text.append(_wrapped(legend, width), "dim").append("\n\n")


def _comparison(found: Repair, width: int) -> Text:
    """The gates and everything beside them: an interval around no change, in numbers too."""
    from mecharule_ops.report.phrases.repair import changed_words, points_words
    from mecharule_ops.report.repairs import compared

    rows = compared(found)
    low = min(0.0, *(result.interval[0] for _, result in rows))
    high = max(0.0, *(result.interval[1] for _, result in rows))
    said = max(len(points_words(result)) for _, result in rows)
    changes = max(len(changed_words(result)) for _, result in rows)
    text = Text()

    def picture(result: Paired, room: int) -> str:
        first, last = result.interval
        return interval_around_zero(first, result.points, last, (low, high), room)

    for index, (name, result) in enumerate(rows):
        style = "bold" if index == 0 else ""
        if width >= WIDE:
            room = min(_MOST_INTERVAL, width // 5)
            names = width - room - said - changes - 6
            first, *rest = _wrapped(name, names).split("\n")
            text.append(f"{first:<{names}}  ", style).append(picture(result, room), "cyan")
            text.append(f"  {points_words(result):<{said}}  {changed_words(result)}\n", style)
            text.append("".join(f"{line}\n" for line in rest), style)
            continue
        text.append(_wrapped(f"{name} · {changed_words(result)}", width) + "\n", style)
        room = min(_MOST_INTERVAL, width - said - 4)
        if room >= _LEAST_INTERVAL:
            text.append("  ").append(picture(result, room), "cyan").append(
                f"  {points_words(result)}\n", style
            )
        else:
            text.append("  ").append(picture(result, width - 2), "cyan")
            text.append(f"\n{_wrapped(points_words(result), width)}\n", style)
    return text.append(
        _wrapped("│ is no change; a line is a 95 % interval, ● what was measured", width) + "\n", "dim"
    )


def _examples(table: Table, width: int) -> Text:
    """The report's examples, fixed and broken told apart by a word, a sign and a colour."""
    from dataclasses import replace

    signs = {"fixed": "✓ fixed", "broken": "✗ broken"}
    rows = tuple((signs.get(first, first), *rest) for first, *rest in table.rows)
    text, style = Text(), ""
    for line in _lines(replace(table, rows=rows), width):
        style = {"✓": "green", "✗": "red", " ": style}.get(line[:1], "dim")
        text.append(f"{line}\n", style)
    return text


def _lines(block: Block, width: int) -> list[str]:
    """A block of the report; a table too wide for the pane is a paragraph a row."""
    from mecharule_ops.report.document import Table
    from mecharule_ops.report.text import block_lines

    if not isinstance(block, Table) or width >= _A_COLUMN * len(block.header):
        return block_lines(block, width)
    rows = (
        " · ".join(f"{name} {cell}".strip() for name, cell in zip(block.header, row, strict=True))
        for row in block.rows
    )
    return [line for row in rows for line in block_lines(row, width)]


def _wrapped(sentence: str, width: int) -> str:
    from mecharule_ops.report.text import block_lines

    return "\n".join(block_lines(sentence, width))
