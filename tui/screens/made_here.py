"""A screen of what a run holds several of and of which more are made there: investigations."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.events import Resize
from textual.widgets import Static

from mecharule_ops.errors import MechaRuleError
from tui.screens.common import CommandScreen, Line, PressedTwice, fitted
from tui.session import Session
from tui.text_panes import ReadingPane
from tui.words import said

REFRESHES_A_SECOND = 8


class MadeHereScreen(CommandScreen):
    """One of them, the latest first; what working threads publish is looked at a few times a second."""

    ABOUT: ClassVar[str] = ""
    KEPT: ClassVar[str] = ""
    """What stays of one whose making is stopped."""

    def __init__(self, run_id: str) -> None:
        super().__init__()
        self.run_id = run_id
        self.place = 0
        self.making: Session | None = None
        """The work of making one, while it lasts."""
        self.notice = ""
        """What is said below the text: why nothing could be read or made, or that it was."""
        self._drawn: tuple[object, ...] = (None,)
        self._stopping = PressedTwice()

    # what a screen of one kind says ----------------------------------------------------------------------

    @abstractmethod
    def take_in(self) -> None:
        """Take what the run's file holds, on a working thread. Raises what opening it raises."""

    @abstractmethod
    def made(self, making: Session) -> None:
        """Take the end of the work in."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many there are."""

    @property
    @abstractmethod
    def chosen(self) -> tuple[object, ...]:
        """What the text is made of; where its first item is another the text is read from its begin."""

    @abstractmethod
    def text_of_chosen(self, width: int) -> Text:
        """The text in lines of `width` columns."""

    @property
    @abstractmethod
    def heading(self) -> str:
        """The line above it."""

    @abstractmethod
    def progress(self, making: Session) -> str:
        """What is being done."""

    @property
    @abstractmethod
    def keys(self) -> list[str]:
        """The keys at the foot."""

    # what they share -------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        yield Line(classes="title")
        yield ReadingPane(self.ABOUT, id=self.NAME)
        yield Static(id="making", markup=False)
        yield Line(classes="status")

    def on_mount(self) -> None:
        self.moved.focus()
        self.read()
        self.set_interval(1 / REFRESHES_A_SECOND, self.look)

    @property
    def moved(self) -> ReadingPane:
        return self.query_one(ReadingPane)

    def read(self) -> None:
        """Read the run's file on a working thread."""
        self.run_worker(self._read, thread=True, exclusive=True, group=self.NAME)

    def _read(self) -> None:
        try:
            self.take_in()
        except (MechaRuleError, OSError) as error:
            self.notice = str(error)

    def look(self) -> None:
        """Put the question of the work, take its end in, and draw."""
        making = self.making
        if making is not None:
            self.put_question(making)
            if making.ended is not None and not making.busy:
                self.making = None
                self.made(making)
        self.draw()

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(self.draw)

    def draw(self) -> None:
        """Show the chosen one where it, or the width, is another than drawn; and the lines around it."""
        width = self.moved.scrollable_content_region.width
        latest = (*self.chosen, width)
        if width > 0 and latest != self._drawn:
            if latest[0] != self._drawn[0]:
                self.moved.scroll_home(animate=False)
            self._drawn = latest
            self.moved.show(self.text_of_chosen(width))
        self.query_one(".title", Line).say(f" {self.heading}")
        line = self.query_one("#making", Static)
        line.display = bool(self.making or self.notice)
        line.update(said(self.progress(self.making) if self.making else self.notice))
        self.query_one(".status", Line).say(fitted(self.keys, self.app.size.width))

    # commands ------------------------------------------------------------------------------------------

    def do_back(self) -> None:
        if self.making is None:
            super().do_back()
        elif self._stopping.again():
            self.making.stop()
        else:
            self.app.tell(f"press Esc again to stop the {self.NAME} ({self.KEPT})")

    def turn(self, step: int) -> None:
        """Show another one; they go round."""
        if self.count:
            self.place = (self.place + step) % self.count
            self.draw()

    def do_copy(self) -> None:
        self.app.copy(self.NAME, self.moved.text.plain)
