"""What a screen may ask of the app that shows it; `app` has it all, and imports the screens."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from textual.screen import Screen

from tui.backend import Backend
from tui.comparison import Side
from tui.session import Session

Job = Callable[[Session], None]


class Owner(Protocol):
    """The app as its screens see it."""

    backend: Backend
    output: deque[str]
    """What programs printed while the app ran."""

    @property
    def screen(self) -> Screen[Any]: ...

    def tell(self, sentence: str) -> None: ...

    def save(self, name: str, text: str) -> Path | None: ...

    def copy(self, name: str, text: str) -> None: ...

    def write_report(self, session: Session) -> None: ...

    def begin(self, job: Job, *, reading: bool = False) -> Session: ...

    def work_on(self, job: Job, *, reading: bool = False) -> None: ...

    def resumed(self, run: str) -> Session: ...

    def resume_run(self, run: str) -> None: ...

    def read_run(self, run: str) -> None: ...

    def compare_runs(self, first: str, second: str) -> None: ...

    def open_form(self) -> None: ...

    def open_replay(self, session: Session) -> None: ...

    def open_comparison(self, left: Side, right: Side) -> None: ...

    def pop_screen(self) -> Any: ...
