"""The chat of a run: slash commands, tools and questions, each answered on a working thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from operator import methodcaller
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from textual.css.query import NoMatches

from mecharule_ops.errors import MechaRuleError
from tui.backend import Listener
from tui.chat_pane import ChatLine, ChatPane
from tui.commands import command_named
from tui.screens.view import RunView
from tui.session import Entry, Session
from tui.words import counted

if TYPE_CHECKING:
    from agent.consent import Priced
    from tools.registry import ToolResult

_YES, _NO = frozenset({"y", "yes"}), frozenset({"n", "no"})
_LOOK = 0.2
"""Seconds between two looks at whether the person has given a question up."""


class Talking(RunView):
    """A run view whose chat is answered."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.exchanges: list[tuple[str, str]] = []
        """Questions and answers so far, for the next to follow on."""
        self._captured: ChatLine | None = None
        """The turn with what programs printed."""
        self._asking: list[threading.Event] = []
        """One a question that a model is asked; set when the person gives it up."""
        self._consent: SimpleQueue[bool] | None = None
        """Waits for a yes or a no to a price."""

    def give_up(self) -> bool:
        """Stop the model where it is asked something; False where it is not."""
        open_questions = [asked for asked in self._asking if not asked.is_set()]
        for asked in open_questions:
            asked.set()
        return bool(open_questions)

    def on_chat_pane_line_said(self, event: ChatPane.LineSaid) -> None:
        self.say(event.line)

    def say(self, line: str) -> None:
        """Carry out a line of the chat: a command of the screen, a tool, or a question."""
        chat = self.query_one(ChatPane)
        chat.add(Entry(who="you", text=line))
        if self._consent is not None and line.strip().lower() in _YES | _NO:
            self._consent.put(line.strip().lower() in _YES)
            self._consent = None
            return
        words = line.replace("@", "").removeprefix("/").strip()
        name, _, argument = words.partition(" ")
        if not line.startswith("/"):
            turn = chat.add(Entry(who="agent", text="…"))
            self._answer(turn, lambda: self._asked(turn, words))
        elif command_named(name, self.NAME) is not None:
            self.carry_out(name, argument.strip())
        else:
            turn = chat.add(Entry(who="tool", text=f"{words} …"))
            self._answer(turn, lambda: self._called(turn, words), f"{words}: ")

    def _answer(self, turn: ChatLine, job: Callable[[], list[Entry]], named: str = "") -> None:
        """Put what a job says, on a working thread, in place of a turn; its error where it fails."""

        def work() -> None:
            try:
                first, *others = job()
            except (MechaRuleError, OSError) as error:
                self._become(turn, Entry(who="error", text=f"{named}{error}"))
                return
            self._become(turn, first)
            for entry in others:
                self._on_chat(methodcaller("add", entry))
            self._on_chat(ChatPane.to_exchange)

        self.run_worker(work, thread=True, group="tools")

    # on a working thread -------------------------------------------------------------------------------

    def _agreed(self, price: Priced) -> bool:
        """Put a price to the person, who types yes or no; giving the model up is a no."""
        waiting: SimpleQueue[bool] = SimpleQueue()
        self._consent = waiting
        asked = "\n".join(["This has a price:", *(f"  {one}" for one in price.calls)])
        entry = Entry(who="note", text=f"{asked}\nIt costs {price.words}. Type yes or no.")
        self._on_chat(methodcaller("add", entry))
        while self.app.holds(self) and not any(given_up.is_set() for given_up in self._asking):
            with suppress(Empty):
                return waiting.get(timeout=_LOOK)
        self._consent = None
        return False

    def _called(self, turn: ChatLine, words: str) -> list[Entry]:
        """Call a tool: its turn, open."""
        began = time.monotonic()

        def tell(doing: str) -> None:
            self._become(turn, Entry(who="tool", text=f"{words} · {doing}"))

        result = self.app.backend.call(words, self.session.run, tell)
        line = f"{words}  {time.monotonic() - began:.1f}s {_mark(result.exit_code == 0)}"
        return [Entry(who="tool", text=line, detail=result.text, is_open=True)]

    def _asked(self, turn: ChatLine, question: str) -> list[Entry]:
        """Put a question; the words of a model are shown as they come, the answer in their place."""
        began, heard, given_up = time.monotonic(), "", threading.Event()

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
        try:
            result = self.app.backend.ask(question, self.session.run, listener)
        finally:
            self._asking = [asked for asked in self._asking if asked is not given_up]
        self.exchanges.append((question, str(result.data.get("answer", result.text))))
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

    def investigate(self, question: str) -> None:
        """Claims of a unit, registered and decided, in the chat."""
        run, given_up = self.session.run, threading.Event()
        self._asking.append(given_up)
        turn = self.query_one(ChatPane).add(Entry(who="tool", text="investigate …"))

        def work() -> list[Entry]:
            def tell(doing: str) -> None:
                self._become(turn, Entry(who="tool", text=f"investigate · {doing}"))

            try:
                result = self.app.backend.investigate(run or "last", question, tell, given_up.is_set)
            finally:
                self._asking = [asked for asked in self._asking if asked is not given_up]
            return [Entry(who="agent", text=result.text)]

        self._answer(turn, work, "investigate: ")

    # commands ------------------------------------------------------------------------------------------

    def do_tool_output(self) -> None:
        chat = self.query_one(ChatPane)
        self._show_captured(chat)
        chat.toggle_output()

    def _show_captured(self, chat: ChatPane) -> None:
        """One closed turn with what programs printed, kept up to date."""
        output = self.app.output
        if not output:
            return
        turn = Entry(who="tool", text=f"captured output, {len(output)} lines", detail="\n".join(output))
        if self._captured is None:
            self._captured = chat.add(turn)
        else:
            self._captured.become(replace(turn, is_open=self._captured.entry.is_open))


def answer_turns(result: ToolResult, seconds: float) -> list[Entry]:
    """The tools that were called, the answer with how its check came out, and its facts, folded."""
    answer = str(result.data.get("answer") or result.text)
    if result.data.get("checked"):
        answer = f"{answer}\n({result.data['checked']})"
    turns = [*tool_turns(result, seconds), Entry(who="agent", text=answer)]
    cited = result.data.get("cited")
    if isinstance(cited, Mapping) and cited:
        facts = "\n".join(f"[{id}] {sentence}" for id, sentence in cited.items())
        turns.append(Entry(who="tool", text=f"{counted(len(cited), 'fact')} cited", detail=facts))
    return turns


def tool_turns(result: ToolResult, seconds: float) -> list[Entry]:
    """One closed turn a tool that an answer called; the last has the time of the whole and what it cites."""
    asked = result.data.get("tools")
    calls = [each for each in asked if isinstance(each, Mapping)] if isinstance(asked, list) else []
    turns = []
    for call in calls:
        given = ", ".join(f"{key}={value}" for key, value in call["arguments"].items() if key != "run")
        turns.append(Entry(who="tool", text=f"{call['tool']}({given}) {_mark(call['ok'])}"))
    if turns:
        last = replace(
            turns[-1], text=f"{turns[-1].text} {seconds:.1f}s{_spent(result)}", detail=_cited(result)
        )
        turns[-1] = last
    return turns


def _mark(well: bool) -> str:
    return "✓ ok" if well else "✗ failed"


def _spent(result: ToolResult) -> str:
    """What a model's answer cost; nothing for an answer by rules."""
    tokens, dollars = result.data.get("output_tokens"), result.data.get("dollars")
    price = f" ${dollars:.4f}" if isinstance(dollars, float) else ""
    return f" {result.data.get('input_tokens')}+{tokens} tokens{price}" if tokens is not None else ""


def _cited(result: ToolResult) -> str:
    """What an answer rests on, for the line of its tool."""
    cited = result.data.get("certificates")
    names = ", ".join(f"c:{each}" for each in cited) if isinstance(cited, list) else ""
    return f"certificates: {names or 'none'}"
