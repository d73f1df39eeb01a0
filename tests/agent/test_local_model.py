"""A GGUF in this process: what llama.cpp is asked, how its reply is read, and what happens without the package."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from agent.answering.specs import answer_spec, spec_of
from agent.llm.choice import Choice, choose, make_model
from agent.llm.faults import ProviderFault, ReplyUnusable
from agent.llm.local_model import LocalModel, spoken
from agent.llm.protocol import Request, Turn
from agent.refining.refinement_state import Refinement
from mecharule_ops.errors import UsageError

ASKED = Request(
    system="Rules.", turns=(Turn(role="user", text="why m1.3?"),), tools=(spec_of("why"), answer_spec(2))
)


ANSWERED = '{"tool": "answer", "arguments": {"facts": [2, 1], "sentence": "It matters."}}'


class _Server:
    """Stands in for `xllamacpp.Server`: keeps what it was asked, replies as told."""

    replies: ClassVar[list[Any]] = []
    asked: ClassVar[list[dict[str, Any]]] = []

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    def handle_chat_completions(self, body: dict[str, Any], heard: Callable[[dict[str, Any]], bool]) -> None:
        """As llama.cpp: chunk after chunk until the callback says to end, nothing raised."""
        self.asked.append(body)
        for chunk in self.replies.pop(0):
            self.chunks.append(chunk)
            if heard(chunk):
                return

    chunks: ClassVar[list[dict[str, Any]]] = []
    """Sent so far."""


def _said(text: str, finish: str = "stop") -> list[dict[str, Any]]:
    """The chunks of a reply: two signs of life, a character each, the end, the bill."""
    life = {"choices": [_delta({"role": "assistant", "content": None})], "prompt_progress": {"total": 35}}
    usage = {"prompt_tokens": 35, "completion_tokens": 7}
    return [
        life,
        life,
        *({"choices": [_delta({"content": character})]} for character in text),
        {"choices": [_delta({}, finish)]},
        {"choices": [], "usage": usage},
    ]


def _delta(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": finish}


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalModel:
    def settings() -> Any:
        return SimpleNamespace(model=SimpleNamespace(), cpuparams=SimpleNamespace())

    monkeypatch.setitem(sys.modules, "xllamacpp", SimpleNamespace(CommonParams=settings, Server=_Server))
    monkeypatch.setattr(_Server, "asked", [])
    monkeypatch.setattr(_Server, "chunks", [])
    file = tmp_path / "tiny.gguf"
    file.write_bytes(b"GGUF")
    return LocalModel(file)


def test_a_reply_is_held_to_one_tool(model: LocalModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """The grammar has a form for each, an answer is one; the meanings of arguments are told, and all is read back."""
    call = json.dumps({"tool": "why", "arguments": {"neuron": "m1.3"}})
    monkeypatch.setattr(_Server, "replies", [_said(call), _said(ANSWERED)])
    first, heard = model.complete(ASKED), list[str]()
    second = model.complete(ASKED, heard.append)
    assert [(one.name, dict(one.arguments)) for one in first.calls] == [("why", {"neuron": "m1.3"})]
    assert [(one.name, dict(one.arguments)) for one in second.calls] == [
        ("answer", {"facts": [2, 1], "sentence": "It matters."})
    ]
    assert [piece for piece in heard if piece] == list("It matters.")
    assert (second.usage.input_tokens, second.usage.output_tokens) == (35, 7)
    body = _Server.asked[0]
    forms = body["response_format"]["json_schema"]["schema"]["anyOf"]
    assert [form["required"] for form in forms] == [["tool", "arguments"]] * 2
    assert forms[1]["properties"]["arguments"]["properties"]["facts"]["items"]["enum"] == [1, 2]
    told = body["messages"][0]["content"]
    assert "- why(neuron: a unit such as m4.1234, n4.1234 or a20.h8; regime?: 1 for 1→0 flips" in told


def test_a_schema_is_sent_with_ends_to_its_lists_and_texts(
    model: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reply of that shape fits into what a reply may be long, and reads as the schema."""
    said = json.dumps({"predicates": ["a > b"], "hypothesis": None})
    monkeypatch.setattr(_Server, "replies", [_said(said)])
    heard: list[str] = []
    reply = model.complete(Request(system="s", turns=ASKED.turns, schema=Refinement), heard.append)
    assert reply.parsed == Refinement(predicates=["a > b"], hypothesis=None)
    assert "".join(heard) == ""
    schema = _Server.asked[0]["response_format"]["json_schema"]["schema"]
    predicates = schema["properties"]["predicates"]
    assert (predicates["maxItems"], predicates["items"]["maxLength"]) == (4, 100)
    assert {part["maxLength"] for part in schema["$defs"]["Idea"]["properties"].values()} == {100}


def test_replies_that_do_not_read_are_faults(model: LocalModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut short, or an error in place of a reply."""
    monkeypatch.setattr(
        _Server,
        "replies",
        [_said("x", "length"), [{"error": {"message": "context too long"}}], _said("x", "")],
    )
    with pytest.raises(ReplyUnusable, match="at most 1024 tokens, got one cut short") as cut:
        model.complete(ASKED)
    assert (cut.value.usage.input_tokens, cut.value.usage.output_tokens) == (35, 7)
    with pytest.raises(ProviderFault, match="context too long"):
        model.complete(ASKED)
    with pytest.raises(ProviderFault, match="could not reply"):
        model.complete(ASKED)


def test_a_listener_ends_a_reply_before_its_first_word(
    model: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the listener raises is raised, although llama.cpp swallows it, and no further chunk is made."""
    monkeypatch.setattr(_Server, "replies", [_said('{"answer": "never heard"}')])

    def gone(piece: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.complete(ASKED, gone)
    assert len(_Server.chunks) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It flips.", "It flips."),
        ("{", ""),
        ('{"tool": "why", "arguments": {"neuron": "m1.3"}}', ""),
        ('{\n "tool" : "answer", "sentence" : "It \\"flips\\" \\u27e6f1', 'It "flips" ⟦f1'),
        ('{"facts": [1], "sentence": "It flips\\', "It flips"),
        ('{"missing": "cut \\u27', "cut "),
        ('{"missing": "half \\ud83d', "half "),
        (ANSWERED, "It matters."),
    ],
)
def test_a_person_hears_the_words_of_an_answer_and_no_json(text: str, words: str) -> None:
    """Whatever has come so far; an escape that is cut in the middle waits for its rest."""
    assert spoken(text) == words


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
