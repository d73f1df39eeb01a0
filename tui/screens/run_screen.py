"""Run: a search being worked on, or read from its file, with a chat that is answered on working threads."""

from __future__ import annotations

import os
import shlex
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from operator import methodcaller
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from textual.css.query import NoMatches

from mecharule_ops.errors import MechaRuleError
from mecharule_ops.numbers import plural
from tui.backend import Listener
from tui.chat_pane import ChatLine, ChatPane
from tui.commands import command_named
from tui.found import shown_units
from tui.screens.common import Line, fitted, hint_parts
from tui.screens.replay_screen import ReplayScreen
from tui.screens.view import RunView
from tui.session import Entry, Session
from tui.tree_pane import TreePane
from tui.words import (
    SPINNER,
    Activity,
    activity_word,
    headline,
    progress,
    status_line,
    time_left,
)

if TYPE_CHECKING:
    from tools.registry import ToolResult

FLUSHES_A_SECOND = 8
TURNS_A_SECOND = 4
"""How often what is at work turns and blinks while tests run."""
_LOOK = 0.2
"""Seconds between two looks at whether the person has given a question up."""
_CONSENTS = {"y": True, "yes": True, "n": False, "no": False}
Job = Callable[[threading.Event], list[Entry]]
"""Gives the turns of an answer; the event is set once the person gives it up."""


class RunScreen(RunView):
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
        """One a question that a model is asked; set when the person gives it up."""
        self._consent: SimpleQueue[bool] | None = None
        """Waits for a yes or a no to a price."""

    def on_mount(self) -> None:
        super().on_mount()
        self.set_interval(1 / FLUSHES_A_SECOND, self.flush)

    def flush(self) -> None:
        """Draw the latest snapshot when there is a new one."""
        session = self.session
        latest = (session.state, session.activity, session.findings)
        is_new = any(a is not b for a, b in zip(latest, self._drawn or (None,) * 3, strict=True))
        turned = int(session.clock() * TURNS_A_SECOND) if session.busy else 0
        if is_new or turned != self.tick:
            self._drawn, self.tick = latest, turned
            self.draw()
        else:
            self.draw_lines()

    def draw(self) -> None:
        self.state = self.session.state
        super().draw()

    def draw_lines(self) -> None:
        """Of the snapshot on the panes: nothing is said to be done before it is on show."""
        session, width, state = self.session, self.app.size.width, self.state
        while self._turns < len(session.turns):
            turn, chat = session.turns[self._turns], self.query_one(ChatPane)
            chat.add(turn)
            if turn.who == "agent":
                chat.to_last()
            self._turns += 1
        word = activity_word(session.activity, state)
        self.query_one("#headline", Line).say(headline(state, word, time_left(session.left), width))
        how = status_line(state, session.activity, session.failure)
        spin = f"{SPINNER[self.tick % len(SPINNER)]} " if session.busy else ""
        parts = [f"{spin}{how}" if how else "", progress(state, session.elapsed)]
        self.query_one("#progress", Line).say(f" {' · '.join(filter(None, parts))}")
        self.query_one("#status", Line).say(fitted(self._keys(), width))

    def _keys(self) -> list[str]:
        words = {"pane_map": "map", "pane_found": "found", "pane_tree": "tree", "pane_chat": "ask"}
        names = ["pane-map", "pane-found", "pane-tree", "rules", "pane-chat", "card"]
        if self.session.busy:
            return hint_parts("run", [*names, "follow", "back", "help"], back="stop", **words)
        words |= {"why_unit": "why", "investigate": "find out", "try_prompt": "try", "verify_unit": "verify"}
        names += ["why-unit", "try-prompt", "verify-unit", "investigate"]
        names += ["report" if self.session.state.finished else "resume", "replay", "back", "help"]
        return hint_parts("run", names, **words)

    # the chat -----------------------------------------------------------------------------------------

    def on_chat_pane_line_said(self, event: ChatPane.LineSaid) -> None:
        self.say(event.line)

    def say(self, line: str) -> None:
        """Carry out a line of the chat: a command of the screen, a tool, or a question."""
        chat = self.query_one(ChatPane)
        chat.add(Entry(who="you", text=line))
        if self._consent is not None and line.strip().lower() in _CONSENTS:
            self._consent.put(_CONSENTS[line.strip().lower()])
            self._consent = None
            return
        words = line.replace("@", "").removeprefix("/").strip()
        name, _, argument = words.partition(" ")
        if not line.startswith("/"):
            turn = chat.add(Entry(who="agent", text="…"))
            self._answer(turn, partial(self._asked, turn, words))
        elif command_named(name, self.NAME) is not None:
            self.carry_out(name, argument.strip())
        else:
            turn = chat.add(Entry(who="tool", text=f"{words} …"))
            self._answer(turn, partial(self._called, turn, words), f"{words}: ")

    def _answer(self, turn: ChatLine, job: Job, named: str = "") -> None:
        """Put what a job says, on a working thread, in place of a turn; its error where it fails."""
        given_up = threading.Event()

        def work() -> None:
            try:
                first, *others = job(given_up)
            except (MechaRuleError, OSError) as error:
                first, others = Entry(who="error", text=f"{named}{error}"), []
            finally:
                self._asking = [asked for asked in self._asking if asked is not given_up]
            self._become(turn, first)
            for entry in others:
                self._on_chat(methodcaller("add", entry))
            if first.who != "error":
                self._on_chat(ChatPane.to_exchange)

        self.run_worker(work, thread=True, group="tools")

    def give_up(self) -> bool:
        """Stop the model where it is asked something; False where it is not."""
        open_questions = [asked for asked in self._asking if not asked.is_set()]
        for asked in open_questions:
            asked.set()
        return bool(open_questions)

    # on a working thread ------------------------------------------------------------------------------

    def _agreed(self, price: str) -> bool:
        """Put a price to the person, who types yes or no; giving the model up is a no."""
        waiting: SimpleQueue[bool] = SimpleQueue()
        self._consent = waiting
        self._on_chat(methodcaller("add", Entry(who="note", text=f"{price} Type yes or no.")))
        while self.app.holds(self) and not any(given_up.is_set() for given_up in self._asking):
            with suppress(Empty):
                return waiting.get(timeout=_LOOK)
        self._consent = None
        return False

    def _called(self, turn: ChatLine, words: str, given_up: threading.Event) -> list[Entry]:
        """Call a tool: its turn, open."""
        began = time.monotonic()

        def tell(doing: str) -> None:
            self._become(turn, Entry(who="tool", text=f"{words} · {doing}"))

        result = self.app.backend.call(words, self.session.run, tell)
        line = f"{words}  {time.monotonic() - began:.1f}s {_mark(result.exit_code == 0)}"
        return [Entry(who="tool", text=line, detail=result.text, is_open=True)]

    def _asked(self, turn: ChatLine, question: str, given_up: threading.Event) -> list[Entry]:
        """Put a question; the words of a model are shown as they come, the answer in their place."""
        began, heard = time.monotonic(), ""

        def hear(piece: str) -> None:
            nonlocal heard
            heard += piece
            waited = f"{time.monotonic() - began:.0f} s, Esc ends the model"
            self._become(turn, Entry(who="agent", text=f"{heard.rstrip()} … {waited}"))

        def tell(doing: str) -> None:
            self._become(turn, Entry(who="agent", text=f"… {doing}"))

        def first(result: ToolResult) -> None:
            """A model is asked from now on."""
            self._asking.append(given_up)
            if result.data.get("understood"):
                self._become(turn, Entry(who="agent", text=f"{result.text}\n… the model's answer follows"))

        listener = Listener(
            tell=tell,
            hear=hear,
            earlier=tuple(self.exchanges),
            first=first,
            consent=self._agreed,
            should_stop=given_up.is_set,
        )
        result = self.app.backend.ask(question, self.session.run, listener)
        self.exchanges.append(
            (str(result.data.get("question", question)), str(result.data.get("answer", result.text)))
        )
        return answer_turns(result, time.monotonic() - began)

    def _investigated(self, turn: ChatLine, question: str, given_up: threading.Event) -> list[Entry]:
        """Claims of a unit, registered and decided."""

        def tell(doing: str) -> None:
            self._become(turn, Entry(who="tool", text=f"investigate · {doing}"))

        self._asking.append(given_up)
        run = self.session.run or "last"
        result = self.app.backend.investigate(run, question, tell, given_up.is_set)
        return [Entry(who="agent", text=result.text)]

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
        if self.maximised:
            self.do_maximise()
        elif self.give_up():
            self.app.tell("the model was stopped; what is known without it follows")
        elif self.pane_of(self.focused) == "chat":
            self.choose("tree")
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
        if self.session.busy:
            self.app.tell("this run is being worked on")
        elif self.session.run is None:
            self.app.tell("this run has no checkpoint yet")
        else:
            self.session = self.app.begin(partial(self.app.backend.resume, self.session.run))
            self._turns, self.picked = 0, None
            self.query_one(TreePane).follow()

    def do_tool_output(self) -> None:
        self.query_one(ChatPane).toggle_output()

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
            self.ask(f"A prompt to try with {unit} on and off, in the table or not:", self.do_try_prompt)

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
            asked = question or f"when does {self.unit or 'the strongest unit'} flip?"
            chat = self.query_one(ChatPane)
            if not question:
                chat.add(Entry(who="you", text=f"/investigate {asked}"))
            turn = chat.add(Entry(who="tool", text="investigate …"))
            self._answer(turn, partial(self._investigated, turn, asked), "investigate: ")

    def do_report(self) -> None:
        """The HTML report as a file; opened where a browser can be."""

        def opened(page: str) -> None:
            path = self.app.save(f"{self.session.run}-report.html", page)
            if path is not None and (sys.platform == "darwin" or os.environ.get("DISPLAY")):
                self.app.open_url(path.as_uri())

        self.app.fetch(self, "report", lambda: self.app.backend.report(self.session), opened)

    def do_read(self, line: str = "") -> None:
        """Whatever a tool says of this run."""
        if line:
            self.read(line)
        else:
            self.ask("What to read, such as gates, show --full or show --table units:", self.read)


def answer_turns(result: ToolResult, seconds: float) -> list[Entry]:
    """The tools that were called and what that cost; the answer with how its check came out; its facts, folded."""
    data: Any = result.data
    turns = []
    for call in data.get("tools") or ():
        given = ", ".join(f"{key}={value}" for key, value in call["arguments"].items() if key != "run")
        turns.append(Entry(who="tool", text=f"{call['tool']}({given}) {_mark(call['ok'])}"))
    if turns:
        spent = f" {data['input_tokens']}+{data['output_tokens']} tokens" if data.get("output_tokens") else ""
        spent += f" ${data['dollars']:.4f}" if spent and data.get("dollars") else ""
        names = ", ".join(f"c:{each}" for each in data.get("certificates") or ()) or "none"
        text = f"{turns[-1].text} {seconds:.1f}s{spent}"
        turns[-1] = replace(turns[-1], text=text, detail=f"certificates: {names}")
    checked = f"\n({data['checked']})" if data.get("checked") else ""
    turns.append(Entry(who="agent", text=f"{data.get('answer') or result.text}{checked}"))
    if cited := data.get("cited"):
        facts = "\n".join(f"[{id}] {sentence}" for id, sentence in cited.items())
        turns.append(Entry(who="tool", text=f"{plural(len(cited), 'fact')} cited", detail=facts))
    return turns


def _mark(well: bool) -> str:
    return "✓ ok" if well else "✗ failed"
