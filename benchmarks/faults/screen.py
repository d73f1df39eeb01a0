"""Random keys, pastes and resizes on the terminal app while a search is told to it."""

from __future__ import annotations

import asyncio
import random
import time
import traceback
from pathlib import Path

from textual.events import Key, Paste, Resize
from textual.geometry import Size
from textual.pilot import Pilot
from tui_story import FakeBackend, big_search

from mecharule_ops.events import StageProgress, StageStarted
from tui.session import Session
from tui.terminal_app import MechaRuleApp
from tui.working_app import Outbox

from .memory import resident
from .result import Figure, Result, Setting

FULL = 20_000
AT_ONCE = 20
"""Keys between two looks at the screen."""
GROWTH = 1.3
"""Memory at the end over that after a third of the keys; above it is a find."""
NAMED = [
    *("enter", "escape", "tab", "shift+tab", "space", "backspace", "delete", "up", "down", "left", "right"),
    *("home", "end", "pageup", "pagedown", *(f"f{number}" for number in range(1, 13))),
    *("ctrl+p", "ctrl+o", "ctrl+r", "ctrl+c", "ctrl+s", "ctrl+a", "ctrl+u", "ctrl+w", "ctrl+z"),
]
TYPED = "abcdefghijklmnopqrstuvwxyzGDNEYZ/?.:;[]'\"@#0123456789 é漢\u202e"
PASTES = (
    "why does m0.17 flip?",
    "/why m0.17",
    "/",
    "[red]\x1b[31m",
    "x" * 5000,
    "two\nlines",
    "\u202e\u0000",
    "a.b@c",
)
SIZES = ((120, 40), (80, 24), (60, 15), (40, 12), (20, 5), (200, 60))


class Endless(FakeBackend):
    """Tells a search of two thousand nodes, then progress for as long as nobody stops it."""

    def warm(self) -> None:
        """Nothing."""

    def _tell(self, session: Session, begin: int) -> None:
        for number, event in enumerate(self.told):
            session.show(event)
            if number % 50 == 0:
                time.sleep(0.01)
            if session.should_stop():
                return
        session.show(StageStarted(stage="more", total=1_000_000, unit="records"))
        for done in range(1_000_000):
            session.show(StageProgress(stage="more", done=done, total=1_000_000))
            time.sleep(0.02)
            if session.should_stop():
                return


class Counted(MechaRuleApp):
    """The app, which counts the keys that reach it."""

    def __init__(self, backend: FakeBackend, outbox: Outbox) -> None:
        super().__init__(backend, outbox=outbox)
        self.keys = 0
        self.awaited: dict[int, Key] = {}
        """Keys that were pressed and have not come; a key comes once more when no widget has taken it."""

    def press(self, key: str, character: str | None) -> None:
        """A key as the terminal sends it."""
        event = Key(key, character)
        self.awaited[id(event)] = event
        self.post_message(event)

    async def on_event(self, event: object) -> None:
        """Counts a key and goes on."""
        self.keys += self.awaited.pop(id(event), None) is not None
        await super().on_event(event)  # type: ignore[arg-type]


def screen(setting: Setting) -> Result:
    """Keys until there were so many; an app that a key ended is begun again."""
    chance, wanted = random.Random(setting.seed), setting.count(FULL, least=50)
    pressed = seen = apps = pastes = resizes = 0
    memory: list[float] = []
    problems: list[str] = []
    began = time.monotonic()
    while pressed < wanted and len(problems) < 20:
        folder = setting.folder / f"app {apps}"
        folder.mkdir()
        some = _Keys(chance, wanted - pressed, memory)
        try:
            asyncio.run(some.press(folder))
        except Exception as error:
            place = traceback.extract_tb(
                error.__cause__.__traceback__ if error.__cause__ else error.__traceback__
            )[-1]
            where = f"{Path(place.filename).name}:{place.lineno}"
            problems.append(
                f"after {pressed + some.sent:,} keys: {type(error).__name__}: {error} ({where})"[:300]
            )
        pressed, seen, apps = pressed + some.sent, seen + some.seen, apps + 1
        pastes, resizes = pastes + some.pastes, resizes + some.resizes
        if some.lost:
            problems.append(f"{some.lost} keys of {some.sent} did not reach the app")
        setting.tell(f"screen: {pressed:,} keys, {apps} apps")
    seconds = time.monotonic() - began
    third = len(memory) // 3
    early, late = (max(part, default=0.0) for part in (memory[: third + 1], memory))
    if third and late > GROWTH * early:
        problems.append(f"memory grew from {early:.0f} to {late:.0f} MB")
    return Result(
        tried=f"{pressed:,} random keys, {pastes:,} pastes and {resizes:,} resizes while a search is told; the keys "
        f"ended {apps - 1} apps, as some may, and another was begun",
        cases=pressed,
        figures=(
            Figure(what="keys that reached the app", value=f"{seen:,} of {pressed:,}"),
            Figure(
                what="most memory in the first third of the keys, in all",
                value=f"{early:.0f} MB, {late:.0f} MB",
            ),
            Figure(what="keys a second", value=f"{pressed / seconds:.0f}"),
        ),
        problems=tuple(problems),
    )


class _Keys:
    """One app under keys."""

    def __init__(self, chance: random.Random, most: int, memory: list[float]) -> None:
        self._chance, self._most, self._memory = chance, most, memory
        self.sent = self.seen = self.lost = self.pastes = self.resizes = 0

    async def press(self, folder: Path) -> None:
        """Keys until there were enough or one of them ended the app."""
        app = Counted(Endless(folder, big_search(2000)), outbox=Outbox(folder / "out"))
        async with app.run_test(size=SIZES[0]) as pilot:
            app.press("d", "d")
            self.sent += 1
            while self.sent < self._most and app.is_running and app.return_code is None and not app._exit:
                for _ in range(AT_ONCE):
                    self._one(app)
                await self._settled(app, pilot)
                self._memory.append(resident())
            self.seen = app.keys
            ended = app._exit or app.return_code is not None
            self.lost = 0 if ended else self.sent - app.keys
            self.sent = app.keys if ended else self.sent

    def _one(self, app: Counted) -> None:
        what = self._chance.random()
        if what < 0.01:
            self.pastes += 1
            app.post_message(Paste(self._chance.choice(PASTES)))
        elif what < 0.02:
            self.resizes += 1
            size = Size(*self._chance.choice(SIZES))
            app.post_message(Resize(size, size))
        key = self._chance.choice(NAMED) if what < 0.55 else self._chance.choice(TYPED)
        self.sent += 1
        app.press(key, key if len(key) == 1 else None)

    async def _settled(self, app: Counted, pilot: Pilot[int]) -> None:
        """Until the keys sent so far have arrived, or the app has ended."""
        deadline = time.monotonic() + 60
        while app.keys < self.sent and not app._exit and time.monotonic() < deadline:
            await asyncio.sleep(0.002)
        if not app._exit:
            await pilot.pause()
