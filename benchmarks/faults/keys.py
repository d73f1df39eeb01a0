"""Random keys, pastes and resizes on the terminal app while a search is told to it."""

import asyncio
import random
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from textual.app import ScreenStackError
from textual.events import Event, Key, Paste, Resize
from textual.geometry import Size
from tui_story import FakeBackend, big_search

from mecharule_ops.events import StageProgress, StageStarted
from tui.session import Session
from tui.terminal_app import MechaRuleApp

from .durable import Case

SAID = "random key in the terminal app"
AT_ONCE = 20
"""Keys between two looks at the screen."""
PATIENCE = 60.0
"""Seconds in which keys must have come."""
NAMED = [
    *("enter", "escape", "tab", "shift+tab", "space", "backspace", "delete", "up", "down", "left", "right"),
    *("home", "end", "pageup", "pagedown", *(f"f{number}" for number in range(1, 13))),
    *(f"ctrl+{key}" for key in "porcsauwz"),
]
TYPED = "abcdefghijklmnopqrstuvwxyzGDNEYZ/?.:;[]'\"@#0123456789 é漢\u202e"
PASTES = ("why does m0.17 flip?", "/", "[red]\x1b[31m", "x" * 5000, "two\nlines", "\u202e\u0000", "a.b@c")
SIZES = ((120, 40), (80, 24), (60, 15), (40, 12), (20, 5), (200, 60))


class Endless(FakeBackend):
    """Tells a search of two thousand nodes, then progress for as long as nobody stops it."""

    def _tell(self, session: Session) -> None:
        more = [StageStarted(stage="more", total=1_000_000, unit="records")]
        progress = (StageProgress(stage="more", done=done, total=1_000_000) for done in range(1_000_000))
        for number, event in enumerate((*self.told, *more)):
            session.show(event)
            if number % 50 == 0:
                time.sleep(0.01)
            if session.should_stop():
                return
        while not session.should_stop():
            session.show(next(progress))
            time.sleep(0.02)


class Counted(MechaRuleApp):
    """The app, which counts the keys that reach it."""

    def __init__(self, backend: FakeBackend, exports: Path) -> None:
        super().__init__(backend, exports=exports)
        self.sent = 0
        self.awaited: dict[int, Key] = {}
        """Keys that were pressed and have not come; a key comes once more when no widget has taken it."""

    @property
    def ended(self) -> bool:
        """Whether a key has ended it."""
        return self._exit or self.return_code is not None

    def press(self, key: str) -> None:
        """A key as the terminal sends it."""
        event = Key(key, key if len(key) == 1 else None)
        self.awaited[id(event)] = event
        self.sent += 1
        self.post_message(event)

    async def on_event(self, event: Event) -> None:
        """Counts a key and goes on."""
        self.awaited.pop(id(event), None)
        await super().on_event(event)


def keys(folder: Path, chance: random.Random, count: int, app: type[Counted] = Counted) -> Iterator[Case]:
    """Keys until there were so many, a case each; an app that they ended is begun again."""
    left = count
    while left > 0:
        some = app(Endless(folder, big_search(2000)), folder / "out")
        problems = list[str]()
        try:
            asyncio.run(_pressed(some, chance, left))
        except Exception as error:
            (*_, place) = traceback.extract_tb((error.__cause__ or error).__traceback__)
            said = f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
            problems.append(f"after {some.sent:,} keys: {said}"[:300])
        if some.awaited and not some.ended:
            problems.append(f"{len(some.awaited)} keys of {some.sent} did not reach the app")
        left -= max(1, some.sent)
        yield from [(SAID, problems), *[(SAID, [])] * (some.sent - 1)]


async def _pressed(app: Counted, chance: random.Random, most: int) -> None:
    """Keys until there were enough or one of them ended the app."""
    async with app.run_test(size=SIZES[0]) as pilot:
        app.press("d")
        app.press("y")
        while app.sent < most and not app.ended:
            for _ in range(AT_ONCE):
                what = chance.random()
                if what < 0.01:
                    app.post_message(Paste(chance.choice(PASTES)))
                elif what < 0.02:
                    size = Size(*chance.choice(SIZES))
                    app.post_message(Resize(size, size))
                app.press(chance.choice(NAMED) if what < 0.55 else chance.choice(TYPED))
            deadline = time.monotonic() + PATIENCE
            while app.awaited and not app.ended and time.monotonic() < deadline:
                await asyncio.sleep(0.002)
            if app.awaited and not app.ended:
                return
            # The app may end while its pilot waits, who then asks for its screen; an error of the app's own is raised
            # when this block is left.
            with suppress(ScreenStackError):
                await pilot.pause()
