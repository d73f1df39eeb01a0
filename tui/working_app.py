"""The app as its screens see it: work on threads, sentences in passing, files.

Nothing here imports torch or the engine: the `Backend` does, on a working thread, when work begins.
"""

import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from textual.app import App
from textual.screen import Screen

from mecharule_ops import errors, plain_text
from tui.backend import Backend
from tui.session import Session

TWICE_SECONDS = 3.0
"""A second press within this time counts."""
_Found = TypeVar("_Found")


class WorkingApp(App[Any]):
    """An app that works, says things and writes files."""

    def __init__(self, backend: Backend, exports: Path | None) -> None:
        super().__init__()
        self.backend = backend
        self.exports = exports
        """The folder of what is written; None for that beside the runs."""
        self.written: list[Path] = []
        self.told: list[str] = []
        """Everything said in passing."""
        self._warned = ("", 0.0)
        """The last warning before an end, and when it was said."""
        self.begun: list[Session] = []
        """Every session; one that works when another begins must end with the app too."""

    # work ---------------------------------------------------------------------------------------------

    def begin(self, job: Callable[[Session], None], *, reading: bool = False) -> Session:
        """A session whose job runs on a working thread from now on."""
        session = Session()
        self.begun.append(session)
        self.run_worker(partial(session.work, job, reading=reading), thread=True, group="engine")
        return session

    def end_work(self) -> None:
        """Ask all work to stop at its next event."""
        for session in self.begun:
            session.stop()

    def do_interrupt(self) -> None:
        """Stop the work; when there is none, quit at the second time."""
        if self.begun and self.begun[-1].busy:
            self.begun[-1].stop()
            self.tell("stopping after this batch; the checkpoint is kept")
        elif self.twice("press ^C again to quit"):
            self.do_quit()

    def do_quit(self) -> None:
        """End the work and leave."""
        self.end_work()
        self.exit(0)

    def holds(self, screen: Screen[Any]) -> bool:
        """Whether a screen is neither closed nor closing with the app; of one that is, some widgets may be gone."""
        return screen in self.screen_stack and screen.is_attached

    def fetch(
        self, screen: Screen[Any], what: str, job: Callable[[], _Found], then: Callable[[_Found], object]
    ) -> None:
        """Hand what a job gives, on a working thread, to the screen's thread; an error is said.

        A screen that was closed in the meantime, or with the app, gets nothing.
        """

        def hand(found: _Found) -> None:
            if self.holds(screen):
                then(found)

        def work() -> None:
            try:
                found = job()
            except Exception as error:
                named = isinstance(error, errors.MechaRuleError)
                self.call_from_thread(self.tell, str(error) if named else repr(error))
            else:
                self.call_from_thread(hand, found)

        self.run_worker(work, thread=True, exclusive=True, group=what)

    def twice(self, sentence: str) -> bool:
        """Whether a key that ends something was pressed again soon; else says so."""
        (said, when), now = self._warned, time.monotonic()
        if said == sentence and now - when <= TWICE_SECONDS:
            return True
        self._warned = sentence, now
        self.tell(sentence)
        return False

    # what leaves the app ------------------------------------------------------------------------------

    def tell(self, sentence: str) -> None:
        """Say something in passing, in place of what was said before."""
        self.clear_notifications()
        self.told.append(sentence)
        self.notify(plain_text.plain(sentence), markup=False, timeout=4)

    def save(self, name: str, text: str) -> None:
        """Write a file and say where, or why not."""
        folder = self.exports or self.backend.folder().parent / "exports"
        try:
            path = plain_text.write_file(folder / re.sub(r"[^\w.-]+", "-", name), text)
        except errors.MechaRuleError as error:
            self.tell(str(error))
        else:
            self.written = list(dict.fromkeys([*self.written, path]))
            self.tell(f"written to {path}")
