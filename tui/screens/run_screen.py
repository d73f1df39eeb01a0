"""Run: a search being worked on, or read from its file, with a chat that is answered on working threads."""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial, partialmethod
from operator import methodcaller
from queue import Empty, SimpleQueue
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from textual.css.query import NoMatches
from textual.widgets import Input

from mecharule_ops.facts.fact import said
from tui import backend, commands, tree_pane
from tui.chat_pane import ChatLine, ChatPane
from tui.screens import common, replay_screen, view
from tui.session import Entry, Session
from tui.words import SPINNER, Activity, activity_word, headline, progress, status_line, time_left

if TYPE_CHECKING:
    from tools.registry import ToolResult

FLUSHES_A_SECOND = 8
TURNS_A_SECOND = 4
"""How often what is at work turns and blinks while tests run."""
_in_one_line = partial(shorten, placeholder=" …", break_on_hyphens=False, break_long_words=False)
_ASK = ("try", "verify-unit", "investigate-unit", "replay", "why-unit")
Job = Callable[[str, ChatLine, threading.Event], list[Entry]]
"""Gives the turns that answer a line; the line's own says meanwhile what is done; the event is set to give it up."""


class RunScreen(view.RunView):
    """A run that is worked on, or was."""

    NAME = "run"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._drawn: tuple[object, ...] = ()
        self._turns = 0
        """Turns of the session that the chat has."""
        self.exchanges: list[tuple[str, str]] = []
        """Questions and answers so far, for the next to follow on."""
        self._asking: list[threading.Event] = []
        """One a line that is being answered."""

    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(1 / FLUSHES_A_SECOND, self.flush)

    def on_unmount(self) -> None:
        self.give_up()
        self.session.stop()

    def flush(self) -> None:
        """Draw the latest snapshot when there is a new one, or something turns."""
        session = self.session
        turned = int(session.clock() * TURNS_A_SECOND) if session.live else 0
        latest = id(session.state), id(session.findings), session.activity, turned
        if latest != self._drawn:
            self._drawn, self.tick = latest, turned
            self.draw()
        else:
            self.draw_lines()

    def draw(self) -> None:
        self.state = self.session.state
        super().draw()

    def draw_lines(self) -> None:
        """Of the snapshot on the panes: nothing is said to be done before it is on show."""
        session, width, state, chat = self.session, self.app.size.width, self.state, self.query_one(ChatPane)
        for turn in session.turns[self._turns :]:
            chat.add(turn)
            chat.to_last(turn.who)
            self._turns += 1
        word, left = activity_word(session.activity, state), time_left(state.left) if session.live else ""
        self.query_one("#headline", common.Line).say(headline(state, word, left, width))
        how = status_line(state, session.activity, session.failure)
        spin = f"{SPINNER[self.tick % len(SPINNER)]} " if session.live else ""
        parts = [f"{spin}{how}" if how else "", progress(state, session.elapsed)]
        line = f" {' · '.join(filter(None, parts))}"
        while len(line) > width and " · " in line:
            line = line.rpartition(" · ")[0]
        # A path, which an error may name, is whole or left out: the log has all of it.
        self.query_one("#progress", common.Line).say(f" {_in_one_line(line, max(4, width - 1))}")
        names = ["follow"] if session.live else [*_ASK, "report" if state.finished else "resume"]
        if isinstance(self.focused, Input):
            self.query_one("#status", common.Line).say(f" {said('keys.ask')}")
        else:
            self.hint("1–5 panes", ["card", *names], back="stop" if session.busy else "back")

    # the chat -----------------------------------------------------------------------------------------

    def on_chat_pane_line_said(self, event: ChatPane.LineSaid) -> None:
        self.say(event.line)

    def say(self, line: str) -> None:
        """Carry out a line of the chat: a command of the screen, a tool, or a question."""
        self.query_one(ChatPane).add(Entry(who="you", text=line))
        name, _, argument = line.removeprefix("/").partition(" ")
        if not line.startswith("/"):
            self._answer("agent", line, self._asked)
        elif commands.command_named(name, self.NAME) is not None:
            self.choose("tree")
            self.carry_out(name, argument.strip())
        else:
            self._answer("tool", line[1:], self._called)

    def _answer(self, who: str, line: str, job: Job) -> None:
        """Put what a job says, on a working thread, in place of a turn; its error where it fails."""
        given_up, turn = threading.Event(), self.query_one(ChatPane).add(Entry(who=who, text="…"))
        self._asking.append(given_up)

        def work() -> None:
            try:
                first, *others = job(line, turn, given_up)
            except Exception as error:
                first, others = Entry(who="error", text=str(error) or repr(error)), []
            finally:
                self._asking.remove(given_up)
            self._become(turn, first)
            for entry in others:
                self._on_chat(methodcaller("add", entry))
            self._on_chat(methodcaller("to_last", "you"))

        self.run_worker(work, thread=True, group="tools")

    def give_up(self) -> bool:
        """Stop what is being answered; False where nothing is, or all was stopped before."""
        still = [asked for asked in self._asking if not asked.is_set()]
        for asked in still:
            asked.set()
        return bool(still)

    # on a working thread ------------------------------------------------------------------------------

    def _agreed(self, price: str) -> bool:
        """Put a price to the person."""
        answer = SimpleQueue[bool | None]()
        self.app.call_from_thread(self.app.push_screen, common.PricePopup(price), answer.put)
        while self.app.holds(self):
            with suppress(Empty):
                return bool(answer.get(timeout=backend.LOOK))
        return False

    def _called(self, line: str, turn: ChatLine, given_up: threading.Event) -> list[Entry]:
        """Call a tool: its turn, open."""
        began = time.monotonic()

        def tell(doing: str) -> None:
            self._become(turn, Entry(who="tool", text=f"{line} · {doing}"))

        result = self.app.backend.call(line, self.session.run, tell, given_up.is_set)
        # Of claims a negative verdict, 4, is one too.
        well = result.exit_code in ((0, 4) if line.startswith("investigate") else (0,))
        text = f"{line} {time.monotonic() - began:.1f}s {_mark(well)}"
        return [Entry(who="tool", text=text, detail=result.text)]

    def _asked(self, question: str, turn: ChatLine, given_up: threading.Event) -> list[Entry]:
        """Put a question; the words of a model are shown as they come, the answer in their place."""
        began, heard = time.monotonic(), ""

        def become(text: str) -> None:
            self._become(turn, Entry(who="agent", text=text))

        def hear(piece: str) -> None:
            nonlocal heard
            heard += piece
            become(f"{heard.rstrip()} … {time.monotonic() - began:.0f} s, Esc ends the model")

        def first(result: ToolResult) -> None:
            if result.data.get("understood"):
                become(f"{result.text}\n… the model's answer follows")

        told: Any = {"consent": self._agreed, "should_stop": given_up.is_set, "first": first, "hear": hear}
        told["tell"] = lambda doing: become(f"… {doing}")
        listener = backend.Listener(earlier=tuple(self.exchanges), **told)
        result = self.app.backend.ask(question, self.session.run, listener)
        said = result.data.get("question", question), result.data.get("answer", result.text)
        self.exchanges.append((str(said[0]), str(said[1])))
        return answer_turns(result, time.monotonic() - began)

    def _become(self, turn: ChatLine, entry: Entry) -> None:
        def become(chat: ChatPane) -> None:
            turn.become(entry)
            chat.to_end()

        self._on_chat(become)

    def _on_chat(self, change: Callable[[ChatPane], object]) -> None:
        """Change the chat on the screen's thread, unless the screen is closed by then."""

        def changed() -> None:
            if self.app.holds(self):
                with suppress(NoMatches):  # The app closes its panes one by one.
                    change(self.query_one(ChatPane))

        self.app.call_from_thread(changed)

    # commands -----------------------------------------------------------------------------------------

    def do_back(self) -> None:
        if self.give_up():
            self.app.tell("stopped; what is known by now follows")
        elif self.here == "chat":
            self.maximised = False
            self.choose("tree")
        elif self.maximised:
            self.do_maximise()
        elif self.picked:
            self.do_follow()
        elif self.session.busy:
            if self.app.twice("press Esc again to stop the search (checkpoint kept)"):
                self.app.do_interrupt()
        elif self.session.activity is Activity.FAILED or self.app.twice(
            "press Esc again to leave this run; it is kept"
        ):
            self.close()

    def do_resume(self) -> None:
        if self.session.live or self.session.run is None:
            self.app.tell(said("app.busy"))
        else:
            self.session = self.app.begin(partial(self.app.backend.resume, self.session.run))
            self._turns, self.picked = 0, None
            self.query_one(tree_pane.TreePane).follow()

    def carry_out(self, name: str, argument: str = "") -> None:
        """Carry out a command; what it takes is typed where one asks."""
        command = commands.command_named(name, self.NAME)
        if command and command.takes and not argument:
            self.app.tell(f"{command.help}: type {command.takes}")
            self.do_command(f"/{name} ")
        else:
            super().carry_out(name, argument)

    def do_command(self, begins: str = "/") -> None:
        self.choose("chat")
        self.query_one(ChatPane).begin_line(begins)

    def do_verify_unit(self) -> None:
        own = [one for one in self.session.certificates if one.units == (self._asked_about,)]
        self._about_unit(f"/verify {' '.join(one.id for one in own)}" if own else "/ablate UNIT")
        if any(one.kind in ("ablate", "why") for one in own):
            self.query_one(ChatPane).add(Entry(who="note", text=said("app.replayed")))

    def _about_unit(self, line: str, does: Callable[[str], None] | None = None) -> None:
        """Ask of that unit, or do something else with the line."""
        if (unit := self._asked_about) is None:
            self.app.tell("move the cursor to a single unit first")
        else:
            self.choose("chat")
            (does or self.say)(line.replace("UNIT", unit, 1))
            if does is None:  # The answer is read, and keys are commands again.
                self.set_focus(self.query_one("#log"))

    do_why_unit = partialmethod(_about_unit, "/why UNIT")

    def do_investigate_unit(self) -> None:
        """Only prepared: what it decides uses up answers kept aside."""
        self.app.tell("Enter decides claims on answers kept aside, once and for all; Esc leaves them")
        self._about_unit("/investigate when does UNIT flip?", self.query_one(ChatPane).begin_line)

    def do_try(self, prompt: str) -> None:
        """A prompt of one's own, with the unit and without it."""
        self._about_unit(f"/flip UNIT --prompt {shlex.quote(prompt)} --yes")

    def do_replay(self) -> None:
        self.app.push_screen(replay_screen.ReplayScreen(self.session))

    def do_report(self) -> None:
        """The HTML report as a file."""
        page = partial(self.app.backend.report, self.session)
        self.app.fetch(self, "report", page, partial(self.app.save, f"{self.session.run}-report.html"))

    def do_find(self, unit: str) -> None:
        """Go to the node that decided a unit."""
        key = self.decided(unit)
        if key is None:
            self.app.tell(f"no unit {unit} was tested so far")
        else:
            self.query_one(tree_pane.TreePane).go_to(key)


def answer_turns(result: ToolResult, seconds: float) -> list[Entry]:
    """The tools that were called and what that took; the answer, its check and what it cites."""
    data: Any = result.data
    told = []
    for call in data.get("tools") or ():
        given = ", ".join(f"{key}={value}" for key, value in call["arguments"].items() if key != "run")
        told.append(f"{call['tool']}({given}) {_mark(call['ok'])}")
    took = f"{seconds:.1f}s"
    if data.get("output_tokens"):
        took += f", {data['input_tokens']}+{data['output_tokens']} tokens"
    checked = f"\n({data['checked']})" if data.get("checked") else ""
    cited = "\n".join(f"[{id}] {sentence}" for id, sentence in (data.get("cited") or {}).items())
    answer = Entry(who="agent", text=f"{data.get('answer') or result.text}{checked}", detail=cited)
    return [*([Entry(who="tool", text=" · ".join([*told, took]))] if told else []), answer]


def _mark(well: bool) -> str:
    return "✓ ok" if well else "✗ failed"
