"""The chat of a run: slash commands, tools and questions, each answered on a working thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from mecharule_ops.errors import MechaRuleError
from tui.commands import command_named
from tui.panes.chat import ChatLine, ChatPane
from tui.screens.pane_commands import PaneCommands
from tui.turns import Entry

if TYPE_CHECKING:
    from tools.result import ToolResult

Call = Callable[[Callable[[str], None]], "ToolResult"]
"""A tool or question to be answered; it is given somewhere to tell what it is doing."""


class Talking(PaneCommands):
    """A run view whose chat is answered."""

    def on_chat_pane_said(self, event: ChatPane.Said) -> None:
        self.say(event.line)

    def say(self, line: str) -> None:
        """Carry out a line of the chat: a command of the screen, a tool, or a question."""
        chat = self.query_one(ChatPane)
        chat.add(Entry(who="you", text=line))
        line = line.replace("@", "")
        if not line.startswith("/"):
            self._answer(
                "agent", "thinking", lambda tell: self.owner.backend.ask(line, self.session.run, tell)
            )
            return
        name, _, argument = line[1:].strip().partition(" ")
        command = command_named(name, self.NAME)
        if command is not None:
            self.carry_out(name, argument.strip())
            return
        words = line[1:].strip()
        self._answer("tool", words, lambda tell: self.owner.backend.call(words, self.session.run, tell))

    def _answer(self, who: str, what: str, call: Call) -> None:
        """Add a turn that fills when the call returns."""
        line = self.query_one(ChatPane).add(Entry(who=who, text=f"{what} …"))
        self.run_worker(lambda: self._call(line, who, what, call), thread=True, group="tools")

    def _call(self, line: ChatLine, who: str, what: str, call: Call) -> None:
        """On a working thread: call, and turn what comes back into a turn."""
        began = time.monotonic()
        show = self.app.call_from_thread

        def tell(doing: str) -> None:
            show(line.become, Entry(who=who, text=f"{what} · {doing}"))

        try:
            result = call(tell)
        except (MechaRuleError, OSError) as error:
            show(line.become, Entry(who="error", text=f"{what}: {error}"))
            return
        seconds = time.monotonic() - began
        mark = "✓" if result.exit_code == 0 else f"✗ exit code {result.exit_code}"
        asked = _tool_asked(result) if who == "agent" else what
        if who == "agent":
            if asked:
                show(
                    line.become,
                    Entry(who="tool", text=f"{asked}  {seconds:.1f}s {mark}", detail=_cited(result)),
                )
                line = show(self.query_one(ChatPane).add, Entry(who="agent", text=""))
            show(line.become, Entry(who="agent", text=result.text))
        else:
            turn = Entry(who="tool", text=f"{asked}  {seconds:.1f}s {mark}", detail=result.text, is_open=True)
            show(line.become, turn)
        show(self.query_one(ChatPane).to_end)

    def do_tool_output(self) -> None:
        chat = self.query_one(ChatPane)
        self._show_captured(chat)
        chat.toggle_output()

    def _show_captured(self, chat: ChatPane) -> None:
        """One closed turn with what programs printed, kept up to date."""
        output = self.owner.output
        if not output:
            return
        turn = Entry(who="tool", text=f"captured output, {len(output)} lines", detail="\n".join(output))
        old = next(
            (line for line in chat.query(ChatLine) if line.entry.text.startswith("captured output")), None
        )
        if old is None:
            chat.add(turn)
        else:
            old.become(replace(turn, is_open=old.entry.is_open))


def _tool_asked(result: ToolResult) -> str:
    """The call behind an answer, `why(neuron=m4.12)`; empty when there was none."""
    tool = result.data.get("tool")
    if not isinstance(tool, dict):
        return ""
    given = ", ".join(f"{key}={value}" for key, value in tool["arguments"].items() if key != "run")
    return f"{tool['name']}({given})"


def _cited(result: ToolResult) -> str:
    """What an answer rests on, for the line of its tool."""
    cited = result.data.get("certificates")
    names = ", ".join(f"c:{each}" for each in cited) if isinstance(cited, list) else ""
    return f"certificates: {names or 'none'}"
