"""A GGUF in this process: what llama.cpp is asked, how its reply is read, and what happens without the package."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from agent.answering.toolbox import spec_of
from agent.llm.choice import Choice, choose, make_model
from agent.llm.faults import ProviderFault, ReplyUnusable
from agent.llm.local_model import LocalModel
from agent.llm.protocol import Request, Turn
from mecharule_ops.errors import UsageError

ASKED = Request(system="Rules.", turns=(Turn(role="user", text="why m1.3?"),), tools=(spec_of("why"),))


class _Server:
    """Stands in for `xllamacpp.Server`: keeps what it was asked, replies as told."""

    replies: ClassVar[list[Any]] = []
    asked: ClassVar[list[dict[str, Any]]] = []

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    def handle_chat_completions(self, body: dict[str, Any]) -> Any:
        self.asked.append(body)
        return self.replies.pop(0)


def _said(text: str, finish: str = "stop") -> dict[str, Any]:
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": finish}
    return {"choices": [choice], "usage": {"prompt_tokens": 35, "completion_tokens": 7}}


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalModel:
    def settings() -> Any:
        return SimpleNamespace(model=SimpleNamespace(), cpuparams=SimpleNamespace())

    monkeypatch.setitem(sys.modules, "xllamacpp", SimpleNamespace(CommonParams=settings, Server=_Server))
    monkeypatch.setattr(_Server, "asked", [])
    file = tmp_path / "tiny.gguf"
    file.write_bytes(b"GGUF")
    return LocalModel(file)


def test_a_reply_is_held_to_an_answer_or_one_tool(model: LocalModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """The grammar has one form an offered tool and one for an answer; both are read back."""
    call = json.dumps({"tool": "why", "arguments": {"neuron": "m1.3"}})
    monkeypatch.setattr(_Server, "replies", [_said(call), _said('{"answer": "It flips ⟦f1⟧."}')])
    first, heard = model.complete(ASKED), list[str]()
    second = model.complete(ASKED, heard.append)
    assert [(one.name, dict(one.arguments)) for one in first.calls] == [("why", {"neuron": "m1.3"})]
    assert (second.text, second.calls, heard) == ("It flips ⟦f1⟧.", (), ["It flips ⟦f1⟧."])
    assert (second.usage.input_tokens, second.usage.output_tokens) == (35, 7)
    body = _Server.asked[0]
    forms = body["response_format"]["json_schema"]["schema"]["anyOf"]
    assert [form["required"] for form in forms] == [["answer"], ["tool", "arguments"]]
    assert "- why(neuron, regime?): explain a unit" in body["messages"][0]["content"]


def test_replies_that_do_not_read_are_faults(model: LocalModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut short, or an error in place of a reply."""
    monkeypatch.setattr(
        _Server, "replies", [_said("x", "length"), {"error": {"message": "context too long"}}]
    )
    with pytest.raises(ReplyUnusable, match="cut short"):
        model.complete(ASKED)
    with pytest.raises(ProviderFault, match="context too long"):
        model.complete(ASKED)


def test_a_choice_needs_no_key_but_a_file_and_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing file is a wrong call; a missing package is said with its cure when it is first asked."""
    nothing = {"MECHARULE_CONFIG": str(tmp_path / "none.json")}
    file = tmp_path / "tiny.gguf"
    file.write_bytes(b"GGUF")
    assert choose(f"local/{file}", nothing) == Choice(spec=f"local/{file}", why="chosen by --llm")
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    made = make_model(choose(f"local/{file}", nothing), nothing)
    assert made is not None
    with pytest.raises(ProviderFault, match=r"pip install 'mecharule\[local\]'"):
        made.complete(ASKED)
    with pytest.raises(UsageError, match="expected a GGUF file"):
        make_model(choose("local/absent.gguf", nothing), nothing)
