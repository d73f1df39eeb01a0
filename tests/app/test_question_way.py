"""The way of a question from the chat to its answer, as docs/architecture.md lists it."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import pytest
from command_process import ROOT
from test_walk import own_file

from agent.answering.chat import ask
from agent.answering.referring import AskedTool
from agent.answering.router import Route, Understood
from agent.answering.understanding import Reading
from mecharule_ops.saying.fact import Fact
from tools.arguments import Arguments
from tools.registry import TOOLS, ToolResult

QUESTION = "why does the strongest neuron flip?"
MOST_STAYS, MOST_RETURNS = 14, 4
FORMS_OF_IT = (Reading, Understood, Route, AskedTool, Arguments, ToolResult, Fact)
"""What becomes of a question, from its text to the facts of its answer."""


@dataclass
class Way:
    """The files that a question stays in, in order.

    A stay begins when a function of another file is handed the question or what became of it, or several of these; a
    value's own methods are no stay, nor is what a tool does within itself, which is a walk of its own.
    """

    stays: list[str] = field(default_factory=list)
    _tool: FrameType | None = None

    def see(self, frame: FrameType, event: str, argument: object) -> None:
        """A profile function."""
        if self._tool is not None:
            self._tool = None if event == "return" and frame is self._tool else self._tool
            return
        name = own_file(frame) if event == "call" else None
        if name is None or not any(map(carried, handed(frame))):
            return
        if not self.stays or self.stays[-1] != name:
            self.stays.append(name)
        if name.startswith("tools/") and frame.f_code.co_name in TOOLS:
            self._tool = frame

    @property
    def returns(self) -> int:
        """Stays in a file that it had left."""
        return len(self.stays) - len(set(self.stays))


def handed(frame: FrameType) -> list[object]:
    """The arguments of a call, but for the object whose method it is."""
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return [frame.f_locals.get(name) for name in names if name != "self"]


def carried(value: object) -> bool:
    """Whether a value is the question, or what became of it."""
    if isinstance(value, tuple | list) and value:
        value = value[0]
    return value == QUESTION if isinstance(value, str) else isinstance(value, FORMS_OF_IT)


def listed() -> list[str]:
    """The files of the page's table, in order."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = page.partition("## From a question to its answer")[2].partition("\n## ")[0]
    return re.findall(r"^\| \d+ \| `([^`]+)`", section, re.MULTILINE)


def test_the_page_lists_the_way_of_a_question(copied_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the answer is laid out; keeping it in the run file comes after."""
    monkeypatch.setenv("MECHARULE_LLM", "none")
    way = Way()
    sys.setprofile(way.see)
    try:
        answer = ask(str(copied_run), QUESTION)
    finally:
        sys.setprofile(None)
    assert answer.data["tool"] == "why"
    kept = way.stays.index("agent/answering/conversation_memory.py")
    way.stays = way.stays[:kept]
    assert way.stays == listed()
    assert len(way.stays) <= MOST_STAYS
    assert way.returns <= MOST_RETURNS


def test_a_detour_would_be_seen() -> None:
    """Stays and returns are counted, a value's own methods are not."""
    way = Way(stays=["a.py", "b.py", "a.py", "c.py", "a.py"])
    assert way.returns == 2
    sys.setprofile(way.see)
    try:
        _ = Fact(sentence="It flips.", unit="m0.1", sources=(), kinds=()).cited
    finally:
        sys.setprofile(None)
    assert len(way.stays) == 5
