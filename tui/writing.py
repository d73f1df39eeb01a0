"""What leaves the app: sentences in passing, copies on the clipboard, files whose paths are said."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from textual.app import App

from mecharule_ops.errors import MechaRuleError
from mecharule_ops.plain_text import plain
from tui.backend import Backend
from tui.files import Outbox
from tui.session import Session


class WritingApp(App[int]):
    """An app that says things and writes files."""

    def __init__(self, backend: Backend, outbox: Outbox | None) -> None:
        super().__init__()
        self.backend = backend
        self.outbox = outbox
        self.told: list[str] = []
        """Everything said in passing."""

    def tell(self, sentence: str) -> None:
        """Say something in passing."""
        self.told.append(sentence)
        self.notify(plain(sentence), markup=False, timeout=6)

    def save(self, name: str, text: str) -> Path | None:
        """Write a file and say where; None when that failed, which is said too."""
        if self.outbox is None:
            self.outbox = Outbox(self.backend.folder().parent / "exports")
        try:
            path = self.outbox.write(name, text)
        except MechaRuleError as error:
            self.tell(str(error))
            return None
        self.tell(f"written to {path}")
        return path

    def copy(self, name: str, text: str) -> None:
        """Put a text on the terminal's clipboard (OSC 52) and in a file, for terminals that have none."""
        self.copy_to_clipboard(text)
        self.save(f"copied-{name}.txt", text + "\n")

    def write_report(self, session: Session) -> None:
        """The HTML report as a file; opened where a browser can be."""

        def write() -> None:
            try:
                page = self.backend.report(session)
            except MechaRuleError as error:
                self.call_from_thread(self.tell, str(error))
                return
            self.call_from_thread(self._open_report, f"{session.run}-report.html", page)

        self.run_worker(write, thread=True, exclusive=True, group="report")

    def _open_report(self, name: str, page: str) -> None:
        path = self.save(name, page)
        if path is not None and (sys.platform == "darwin" or os.environ.get("DISPLAY")):
            self.open_url(path.as_uri())
