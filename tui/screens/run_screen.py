"""Run: a search being worked on, or read from its file, with the chat beside it."""

from __future__ import annotations

import os
import shlex
import sys
from functools import partial

from rich.text import Text

from tui.character_charts import bar
from tui.chat_pane import ChatPane
from tui.found import shown_units
from tui.screens.common import Line, PressedTwice, SearchPopup, fitted, hint_parts
from tui.screens.panes import Arrangement
from tui.screens.replay_screen import ReplayScreen
from tui.screens.talking import Talking
from tui.session import Session
from tui.tree_pane import TreePane
from tui.words import (
    SPINNER,
    Activity,
    activity_word,
    headline,
    progress,
    share_done,
    status_line,
    time_left,
)

FLUSHES_A_SECOND = 8
TURNS_A_SECOND = 4
"""How often what is at work turns and blinks while tests run."""


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

    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(1 / FLUSHES_A_SECOND, self.flush)

    def flush(self) -> None:
        """Draw the latest snapshot when there is a new one, and put the question of the work."""
        session = self.session
        self.put_question(session)
        latest = (session.state, session.activity, session.findings)
        is_new = any(a is not b for a, b in zip(latest, self._drawn or (None,) * 3, strict=True))
        turned = int(session.clock() * TURNS_A_SECOND) if session.busy else 0
        if not self.frozen and (is_new or turned != self.tick):
            self._drawn, self.tick = latest, turned
            self.draw()
        else:
            self.draw_lines()

    def draw(self) -> None:
        if not self.frozen:
            self.state = self.session.state
        super().draw()

    def draw_lines(self) -> None:
        """Unless frozen, of the snapshot on the panes: nothing is said to be done before it is on show."""
        session, width = self.session, self.app.size.width
        state = session.state if self.frozen else self.state
        while self._turns < len(session.turns):
            turn, chat = session.turns[self._turns], self.query_one(ChatPane)
            chat.add(turn)
            if turn.who == "agent":
                chat.to_last()
            self._turns += 1
        word = "FROZEN" if self.frozen else activity_word(session.activity, state)
        self.query_one("#headline", Line).say(headline(state, word, time_left(session.left), width))
        how = status_line(state, session.activity, session.failure)
        spin = f"{SPINNER[self.tick % len(SPINNER)]} " if session.busy else ""
        line, share = Text(no_wrap=True), share_done(state) if session.busy else None
        if share is not None and width >= 100:
            line.append(f" {bar(share, 24, '·')}", "bold")
        first, second = f"{spin}{how}" if how else "", progress(state, session.elapsed)
        parts = [first, second] if session.busy or self.arrangement is Arrangement.SINGLE else [second, first]
        if session.activity is Activity.FAILED:
            parts = [first, second]
        line.append(f" {' · '.join(filter(None, parts))}")
        self.query_one("#progress", Line).say(line)
        self.query_one("#status", Line).say(fitted(self._keys(), width))

    def _keys(self) -> list[str]:
        words = {"pane-map": "map", "pane-found": "found", "pane-tree": "tree", "pane-chat": "ask"}
        words |= {"why-unit": "why", "investigate": "find out", "try-prompt": "try"}
        names = ["pane-map", "pane-found", "pane-tree", "rules", "pane-chat", "card"]
        if self.session.busy:
            words["back"] = "stop"
            names += ["follow", "freeze", "back", "help"]
        else:
            then = ["report"] if self.session.state.finished else ["resume"]
            names += ["why-unit", "try-prompt", "verify-unit", "investigate", *then, "replay", "back", "help"]
        return hint_parts("run", names, words)

    # commands ------------------------------------------------------------------------------------------

    def do_back(self) -> None:
        if self.maximised:
            self.do_maximise()
        elif self.give_up():
            self.app.tell("the model was stopped; what is known without it follows")
        elif self.pane_of(self.focused) == "chat":
            self.choose("tree")
        elif self.picked:
            self.do_follow()
        elif self.session.busy:
            self._stop_when_twice()
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
            self._turns, self.picked = 0, None
            self.query_one(TreePane).follow()

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

    def do_try_prompt(self, prompt: str = "") -> None:
        """A prompt of one's own, with the unit and without it."""
        unit = self.unit or next((judged.neuron for judged in shown_units(self.state)), None)
        if unit is None:
            self.app.tell("move the cursor to a single unit first")
        elif prompt:
            self.choose("chat")
            self.say(f"/flip {unit} --prompt {shlex.quote(prompt)} --yes")
        else:
            asked = SearchPopup(f"A prompt to try with {unit} on and off, in the table or not:")
            self.app.push_screen(asked, lambda typed: self.do_try_prompt(typed) if typed else None)

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

    def do_read(self, line: str = "") -> None:
        """Whatever a tool says of this run."""
        asked = SearchPopup("What to read, such as gates, show --full or show --table units:")
        if line:
            self.read(line)
        else:
            self.app.push_screen(asked, lambda typed: self.read(typed) if typed else None)
