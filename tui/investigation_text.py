"""An investigation as it is read on the screen: the lines of its board or report, rivals behind a glyph."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from rich.text import Text

from mecharule_ops.plain_text import plain
from tui.words import PREDICTION_LOOKS

if TYPE_CHECKING:
    from agent.investigating.board_shown import BoardShown

INVESTIGATION_HELP = (
    "One investigation. Rivals say what a unit's flips may go with; each is registered with its threshold before a "
    "held-out flip is read, and decided once: ✓ supported, ✗ refuted, ○ weaker than another, ◐ undecided, ◌ not "
    "decided yet. The test under way, its price and what is left of the purse (60 s unless more is accepted) stand "
    "below. In the end the verdict comes first. i asks, m asks it again with a purse for what could not be afforded, ] "
    "and [ turn to other investigations, y copies all, e writes it to a file, Esc twice stops and keeps what is known."
)


def title(run: str, board: BoardShown | None) -> str:
    """`Investigation of run 0c1f: QUESTION (read as: …)`."""
    if board is None:
        return f"Investigations of run {plain(run)}"
    asked = f"{plain(board.question)} (read as: {plain(board.read_as)})"
    return f"Investigation of run {plain(run)}: {asked}"


def plain_lines(text: str) -> list[str]:
    """Each line made harmless, behind its own indent."""
    return [line[: len(line) - len(line.lstrip(" "))] + plain(line) for line in text.split("\n")]


def investigation_text(board: BoardShown, width: int) -> Text:
    """The whole of it in lines of `width` columns; headings, and in the end the verdict, stand out."""
    looks = {plain(line): PREDICTION_LOOKS.get(state) for line, state in board.states.items()}
    text = Text()
    for place, line in enumerate(plain_lines(board.text)):
        bare = line.lstrip(" ")
        look, head = looks.get(bare), line[: len(line) - len(bare)]
        head += f"{look.glyph} " if look else ""
        wrapped = textwrap.wrap(
            bare, width, initial_indent=head, subsequent_indent=" " * (len(head) + 2), break_on_hyphens=False
        )
        stands_out = (board.ended and place == 0) or (not head and bare.endswith(":"))
        shown = "\n".join(wrapped)
        text.append(shown[: len(head)], look.style if look else "")
        text.append(f"{shown[len(head) :]}\n", "bold" if stands_out else "")
    text.rstrip()
    return text
