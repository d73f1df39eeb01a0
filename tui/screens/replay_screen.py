"""Replay: the same panes at any moment of a recorded search."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partialmethod
from itertools import islice

from rich.text import Text

from mecharule_ops.events import Event, FlipsSeen, LayerAblated, NodeTested, StageStarted, UnitJudged
from mecharule_ops.state.run_state import RunState
from tui.screens.common import Line, fitted, hint_parts
from tui.screens.view import RunView
from tui.session import Session
from tui.words import bar, headline, progress

VERDICTS = (NodeTested, UnitJudged, LayerAblated, FlipsSeen, StageStarted)
"""What changes a cell while it plays."""
TURNS_A_SECOND = 8
SPEEDS = (1, 10, 100)
"""Verdicts a turn."""
STRIDE = 256
"""Snapshots share structure, so one is kept every so many events and the way from there is folded again."""


class Timeline:
    """The states of a fixed list of events."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = tuple(events)
        self._kept = [RunState()]
        self._verdicts = [n for n, event in enumerate(self.events, 1) if isinstance(event, VERDICTS)]

    def __len__(self) -> int:
        """Positions run from 0, before the first event, to this."""
        return len(self.events)

    def at(self, position: int) -> RunState:
        """The state after that many events; each event is folded at most once to get there, plus a stride."""
        position = min(max(position, 0), len(self.events))
        while len(self._kept) <= position // STRIDE:
            begin = (len(self._kept) - 1) * STRIDE
            self._kept.append(self._folded(self._kept[-1], begin, begin + STRIDE))
        nearest = position // STRIDE
        return self._folded(self._kept[nearest], nearest * STRIDE, position)

    def after_verdicts(self, position: int, verdicts: int) -> int:
        """The position after so many more verdicts, or the end."""
        last = islice((n for n in self._verdicts if n > position), verdicts - 1, None)
        return next(last, len(self))

    def _folded(self, state: RunState, begin: int, end: int) -> RunState:
        for event in islice(self.events, begin, end):
            state = state.apply(event)
        return state


class ReplayScreen(RunView):
    """A recorded run with a place in time."""

    NAME = "replay"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.timeline = Timeline(session.events)
        self.position = len(self.timeline)
        self.playing, self.speed = False, SPEEDS[0]
        self.state = self.timeline.at(self.position)

    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(1 / TURNS_A_SECOND, self.turn)

    def turn(self) -> None:
        """While it plays, go on by as many verdicts as the speed says."""
        if self.playing:
            self.tick += 1
            self.go(self.timeline.after_verdicts(self.position, self.speed))
            self.playing = self.position < len(self.timeline)

    def do_play(self) -> None:
        self.playing = not self.playing
        if self.playing and self.position == len(self.timeline):
            self.go(0)
        self.draw_lines()

    def do_speed(self) -> None:
        self.speed = SPEEDS[(SPEEDS.index(self.speed) + 1) % len(SPEEDS)]
        self.draw_lines()

    def go(self, position: int) -> None:
        """Show the run after so many events."""
        self.position = min(max(position, 0), len(self.timeline))
        self.state = self.timeline.at(self.position)
        self.draw()

    @property
    def on_file(self) -> Session:
        """Before its end a run had neither findings nor certificates."""
        return self.session if self.state.finished else Session()

    def draw_lines(self) -> None:
        total = len(self.timeline)
        self.query_one("#headline", Line).say(headline(self.state, "REPLAY", "", self.app.size.width))
        line = Text(f" {self.position:,}/{total:,} ", no_wrap=True)
        line.append(f"[{bar(self.position / total if total else 1.0, 20)}]", "cyan")
        self.query_one("#progress", Line).say(line.append(f" {progress(self.state, self.session.elapsed)}"))
        names = ("play", "speed", "backward", "forward", "ledger", "follow", "back", "help")
        words = {"forward": "on", "backward": "back", "back": "leave", "speed": f"×{self.speed}"}
        keys = hint_parts("replay", names, play="pause" if self.playing else "play", **words)
        self.query_one("#status", Line).say(fitted(keys, self.app.size.width))

    def _step(self, events: int) -> None:
        self.go(self.position + events)

    do_forward = partialmethod(_step, 1)
    do_backward = partialmethod(_step, -1)
    do_start_of_run = partialmethod(_step, -(10**9))
    do_end_of_run = partialmethod(_step, 10**9)
