"""Investigation: the board of a question as it fills, its report in the end, and those that the run holds."""

from __future__ import annotations

from functools import partialmethod
from typing import TYPE_CHECKING

from rich.text import Text

from mecharule_ops.plain_text import plain
from tui.investigation_text import INVESTIGATION_HELP, investigation_text, plain_lines, title
from tui.screens.common import SearchPopup, hint_parts
from tui.screens.made_here import MadeHereScreen
from tui.seconds import clock
from tui.session import Session
from tui.words import Activity, said

if TYPE_CHECKING:
    from agent.investigating.board_shown import BoardShown

STOPPED = "stopped; the same question goes on where it was"


class InvestigationScreen(MadeHereScreen):
    """One investigation of a run: the one asked here last, then those on file, the latest first."""

    NAME = "investigation"
    ABOUT = INVESTIGATION_HELP
    KEPT = "what is known is kept"

    def __init__(self, run_id: str, question: str = "") -> None:
        super().__init__(run_id)
        self.first: str | None = question
        """The question to begin with, empty to ask for one; None once it was put."""
        self.held: tuple[BoardShown, ...] | None = None
        """Those on file; None until the file was read."""
        self.latest: BoardShown | None = None
        """The one that was asked here last, as far as it is."""

    def take_in(self) -> None:
        self.held = self.app.backend.investigations(self.run_id)

    def made(self, making: Session) -> None:
        self.notice = STOPPED if making.should_stop() else making.failure
        self.read()

    def look(self) -> None:
        super().look()
        if self.first is not None and self.held is not None and self.is_current:
            first, self.first = self.first, None
            self.do_investigate(first)

    @property
    def boards(self) -> tuple[BoardShown, ...]:
        """Each once."""
        latest = () if self.latest is None else (self.latest,)
        return (*latest, *(one for one in self.held or () if one != self.latest))

    @property
    def board(self) -> BoardShown | None:
        """The one on show."""
        return self.boards[self.place % self.count] if self.boards else None

    @property
    def dear(self) -> BoardShown | None:
        """The one on show where it ended and something of it cannot be afforded."""
        board = self.board
        return board if board is not None and board.ended and board.more else None

    @property
    def count(self) -> int:
        return len(self.boards)

    @property
    def chosen(self) -> tuple[object, ...]:
        board = self.board
        return ((self.place, board and board.ended), self.held is None, board, board and board.text)

    def text_of_chosen(self, width: int) -> Text:
        if self.board is not None:
            return investigation_text(self.board, width)
        ask = (
            f"Run {self.run_id} holds no investigation that ended. i asks: why does the strongest unit flip?"
        )
        return said("Reading the run's file." if self.held is None else ask, "dim")

    @property
    def heading(self) -> str:
        which = f"{self.place % self.count + 1} of {self.count} · " if self.count > 1 else ""
        return f"{which}{title(self.run_id, self.board)}"

    def progress(self, making: Session) -> str:
        if making.activity is Activity.STOPPING:
            return f"stopping after this batch · {clock(making.elapsed)}"
        board = self.latest if self.latest is not None and not self.latest.ended else None
        told = making.turns[-1].text if making.turns else "reading the question"
        now = [told] if board is None else [board.purse, board.doing or told]
        return " · ".join(["investigating", clock(making.elapsed), *now])

    @property
    def keys(self) -> list[str]:
        words = {"next-investigation": "next", "investigate": "ask", "go-on": "go on"}
        words["back"] = "stop" if self.making else "back"
        dear = ["go-on"] if self.dear else []
        several = ["next-investigation"] if self.count > 1 else []
        return hint_parts(self.NAME, ("back", "investigate", *dear, *several, "copy", "save", "help"), words)

    # commands ------------------------------------------------------------------------------------------

    do_next_investigation = partialmethod(MadeHereScreen.turn, 1)
    do_previous_investigation = partialmethod(MadeHereScreen.turn, -1)

    def do_investigate(self, question: str = "") -> None:
        if question or self.making is not None:
            self._begin(question)
        else:
            before = self.board.question if self.board else ""
            prompt = "What is to be found out? For example: does m1.37 flip where carry(a, b)?"
            self.app.push_screen(SearchPopup(prompt, before), lambda typed: self._begin(typed or ""))

    def do_go_on(self) -> None:
        dear = self.dear
        if dear is not None:
            self._begin(dear.question, dear)
        else:
            self.app.tell("nothing was left for want of a price")

    def _begin(self, question: str, dear: BoardShown | None = None) -> None:
        if self.making is not None:
            self.app.tell("an investigation is being made; Esc twice stops it")
        elif question:
            run, backend = self.run_id, self.app.backend
            self.notice, self.place = "", 0

            def show(board: BoardShown) -> None:
                self.latest = board

            self.making = self.app.begin(
                lambda session: backend.investigate(run, question, session, show, dear)
            )

    def do_save(self) -> None:
        board = self.board
        if board is None or not board.ended:
            self.app.tell("there is nothing to save here yet")
        else:
            lines = [plain(board.question), "", *plain_lines(board.text)]
            self.app.save(f"{self.run_id}-investigation.txt", "\n".join(lines) + "\n")
