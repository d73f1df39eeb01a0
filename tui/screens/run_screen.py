"""Run: a search being worked on, or read from its file, with the chat beside it."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from functools import partial

from mecharule_ops.state.run_state import RunState
from tui.chat_pane import ChatPane
from tui.screens.common import Line, PressedTwice, fitted, hint_parts
from tui.screens.compare_screen import CompareScreen, Side
from tui.screens.panes import Arrangement
from tui.screens.replay_screen import ReplayScreen
from tui.screens.talking import Talking
from tui.session import Session
from tui.text_panes import TextTable
from tui.tree_pane import TreePane
from tui.words import Activity, activity_word, arrow, headline, progress, status_line

FLUSHES_A_SECOND = 8
PACE_SECONDS = 5.0
"""The pace in the header is over this long."""


class RunScreen(Talking):
    """A run that is worked on, or was."""

    NAME = "run"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.frozen = False
        self._drawn: tuple[object, ...] = ()
        self._turns = 0
        """Turns of the session that the chat has."""
        self._stopping = PressedTwice()
        self._paces: deque[tuple[float, int]] = deque()

    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(1 / FLUSHES_A_SECOND, self.flush)

    def flush(self) -> None:
        """Draw the latest snapshot when there is a new one, and put the question of the work."""
        session = self.session
        self.put_question(session)
        while self._turns < len(session.turns):
            turn, chat = session.turns[self._turns], self.query_one(ChatPane)
            chat.add(turn)
            if turn.who == "agent":
                chat.to_last()
            self._turns += 1
        latest = (session.state, session.activity, session.findings)
        if not self.frozen and any(
            a is not b for a, b in zip(latest, self._drawn or (None,) * 3, strict=True)
        ):
            self._drawn = latest
            self.state = session.state
            self.draw()
        else:
            self.draw_lines()

    def draw_lines(self) -> None:
        session, state = self.session, self.session.state
        word = "FROZEN" if self.frozen else activity_word(session.activity, state)
        self.query_one("#headline", Line).say(headline(state, word, self._pace()))
        how = status_line(state, session.activity, session.failure)
        narrow = self.arrangement is Arrangement.SINGLE
        first, second = progress(state, session.elapsed), how
        parts = [second, first] if narrow or session.activity is Activity.FAILED else [first, second]
        self.query_one("#progress", Line).say(f" {' · '.join(parts)}")
        self.query_one("#status", Line).say(fitted(self._keys(narrow), self.app.size.width))

    def _keys(self, narrow: bool) -> list[str]:
        words = {
            "tool-output": "output",
            "why-unit": "why",
            "pane-chat": "chat",
            "back": "back",
            "investigate": "find out",
        }
        if self.session.busy:
            words["back"] = "stop"
            names: tuple[str, ...] = ("back", "pane-chat", "freeze", "tool-output", "help")
        else:
            then = ("investigate", "report") if self.session.state.finished else ("report", "resume")
            names = ("back", "pane-chat", "why-unit", "replay", "ledger", *then, "help")
        model = [] if narrow else [f"LLM {self.app.backend.provider}"]
        return [*model, *hint_parts("run", names, words)]

    def _pace(self) -> str:
        """` 6/s`: ablations a second over the last few."""
        if not self.session.busy:
            self._paces.clear()
            return ""
        now, cost = time.monotonic(), self.session.state.cost
        self._paces.append((now, cost.group_evaluations if cost else 0))
        while now - self._paces[0][0] > PACE_SECONDS:
            self._paces.popleft()
        (begin, before), (_, after) = self._paces[0], self._paces[-1]
        return f" {(after - before) / (now - begin):.0f}/s" if after > before and now > begin else ""

    @property
    def latest(self) -> RunState:
        """The newest snapshot, unless the view is frozen."""
        return self.state if self.frozen else self.session.state

    # commands ------------------------------------------------------------------------------------------

    def do_back(self) -> None:
        if self.maximised:
            self.do_maximise()
        elif self.give_up():
            self.app.tell("the model was stopped; what is known without it follows")
        elif self.session.busy:
            self._stop_when_twice()
        elif self.pane_of(self.focused) == "chat" and self.arrangement is not Arrangement.SINGLE:
            self.choose("tree")
        else:
            super().do_back()

    def _stop_when_twice(self) -> None:
        if self._stopping.again():
            self.session.stop()
            self.app.tell("stopping after this batch; the checkpoint is kept")
        else:
            self.app.tell("press Esc again to stop the search (checkpoint kept)")

    def do_freeze(self) -> None:
        self.frozen = not self.frozen
        self.app.tell("the view is frozen, the work goes on" if self.frozen else "the view follows again")

    def do_resume(self) -> None:
        if self.session.busy:
            self.app.tell("this run is being worked on")
        elif self.session.run is None:
            self.app.tell("this run has no checkpoint yet")
        else:
            self.session = self.app.begin(partial(self.app.backend.resume, self.session.run))
            self._turns = 0
            self.query_one(TreePane).follow()

    @property
    def unit(self) -> str | None:
        """The unit under the cursor of the rules table or the tree."""
        if isinstance(self.moved, TextTable):
            return self.moved.selected[0] if self.moved.selected else None
        node, view = self.query_one(TreePane).node, self.view
        seen = view.nodes.get(node) if view and node is not None else None
        return seen.units if seen and seen.size == 1 else None

    def do_why_unit(self) -> None:
        self._about_unit("/why {unit}")

    def do_verify_unit(self) -> None:
        own = [c.id for c in self.session.certificates if c.units == (self.unit,)]
        if own:
            self._about_unit(f"/verify {own[-1]}")
        else:
            self.app.tell(f"no certificate for this line yet; /ablate {self.unit or 'UNIT'} makes one")

    def _about_unit(self, line: str) -> None:
        if self.unit is None:
            self.app.tell("move the cursor to a single unit first")
            return
        self.choose("chat")
        self.say(line.format(unit=self.unit))

    def do_replay(self) -> None:
        if self.session.busy:
            self.app.tell("the search is still running; replay when it has ended or was stopped")
        else:
            self.app.push_screen(ReplayScreen(self.session))

    def do_investigate(self, question: str = "") -> None:
        if self.session.run is None:
            self.app.tell("this run has not begun yet")
        elif self.session.busy:
            self.app.tell("the search is still running; investigate when it has ended or was stopped")
        else:
            self.choose("chat")
            if question:
                self.investigate(question)
            else:
                self.say(f"/investigate when does {self.unit or 'the strongest unit'} flip?")

    def do_report(self) -> None:
        """The HTML report as a file; opened where a browser can be."""

        def opened(page: str) -> None:
            path = self.app.save(f"{self.session.run}-report.html", page)
            if path is not None and (sys.platform == "darwin" or os.environ.get("DISPLAY")):
                self.app.open_url(path.as_uri())

        self.app.fetch(self, "report", lambda: self.app.backend.report(self.session), opened)

    def do_compare_runs(self) -> None:
        regimes = self.state.header.regimes if self.state.header else ()
        if len(regimes) < 2:
            self.app.tell("this run has one regime; mark two runs on the first screen to compare them")
            return
        left, right = (Side(name=arrow(each), state=self.state, regime=each) for each in regimes[:2])
        self.app.push_screen(CompareScreen(left, right))
