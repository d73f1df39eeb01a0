"""Models that think, on local servers that speak the protocols of both SDKs: what they thought goes back as it came.

They have room and effort; a parameter that a server refuses is left out.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from llm_wire import (
    CANARY,
    anthropic_events,
    chat_calls,
    chat_events,
    item_events,
    response_events,
    stream,
)
from pytest_httpserver import HTTPServer
from werkzeug import Request as WireRequest
from werkzeug import Response

from agent.llm.anthropic_model import AnthropicModel
from agent.llm.faults import ProviderFault, ReplyCut, ReplyStopped
from agent.llm.openai_chat import OpenAIChatModel
from agent.llm.openai_model import OpenAIModel
from agent.llm.protocol import LanguageModel, Request, ToolSpec, Turn
from agent.llm.retrying import Asker

ASKED = Turn(role="user", text="Why?")
TOOL = ToolSpec(name="why", description="Why.", schema={"type": "object", "properties": {"unit": {}}})
REQUEST = Request(system="s", turns=(ASKED,), tools=(TOOL,))
THOUGHT = {"type": "thinking", "thinking": "Let me think of it.", "signature": "SIGNED"}
HIDDEN = {"type": "redacted_thinking", "data": "OPAQUE"}
REASONED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ENCRYPTED"}


def _used(id: str, unit: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "why", "input": {"unit": unit}}


def _called(id: str, unit: str) -> dict[str, Any]:
    arguments = json.dumps({"unit": unit})
    return {
        "type": "function_call",
        "id": f"fc_{id}",
        "call_id": id,
        "name": "why",
        "arguments": arguments,
        "status": "completed",
    }


Events = list[tuple[str, dict[str, Any]]]
Make = Callable[..., LanguageModel]
WIRES: dict[str, tuple[str, str, Make, Events, Callable[[str], Events], Events]] = {
    "anthropic": (
        "/v1/messages",
        "/",
        AnthropicModel,
        anthropic_events(THOUGHT, HIDDEN, _used("c1", "m1.1"), _used("c2", "m1.2"), stop="tool_use"),
        lambda text: anthropic_events({"type": "text", "text": text}),
        anthropic_events(THOUGHT, stop="max_tokens"),
    ),
    "responses": (
        "/v1/responses",
        "/v1",
        OpenAIModel,
        item_events(REASONED, _called("c1", "m1.1"), _called("c2", "m1.2")),
        response_events,
        response_events("", status="incomplete", reason="max_output_tokens"),
    ),
    "chat": (
        "/v1/chat/completions",
        "/v1",
        OpenAIChatModel,
        chat_calls(
            "Let me think of it.", ("c1", "why", '{"unit": "m1.1"}'), ("c2", "why", '{"unit": "m1.2"}')
        ),
        chat_events,
        chat_events("", finish="length"),
    ),
}


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _served(server: HTTPServer, wire: str, *answers: Response | Events) -> list[dict[str, Any]]:
    """Answers in order, the last for ever; gives the bodies of requests as they come."""
    bodies: list[dict[str, Any]] = []

    def handle(request: WireRequest) -> Response:
        bodies.append(json.loads(request.get_data(as_text=True)))
        answer = answers[min(len(bodies), len(answers)) - 1]
        return answer if isinstance(answer, Response) else stream(answer)

    server.expect_request(WIRES[wire][0], method="POST").respond_with_handler(handle)
    return bodies


def _model(server: HTTPServer, wire: str, **more: Any) -> LanguageModel:
    _, base, make, *_ = WIRES[wire]
    return make("test", CANARY, base_url=server.url_for(base), **more)


def _refusing(message: str) -> Response:
    body = json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": message}})
    return Response(body, status=400, mimetype="application/json")


def _continued(model: LanguageModel) -> tuple[Turn, ...]:
    """A reply with two calls at once, and their results."""
    reply = model.complete(REQUEST)
    assert [(call.id, dict(call.arguments)) for call in reply.calls] == [
        ("c1", {"unit": "m1.1"}),
        ("c2", {"unit": "m1.2"}),
    ]
    assert json.loads(json.dumps(reply.kept)) == list(reply.kept), "a checkpoint holds it"
    return (
        ASKED,
        Turn(role="assistant", text=reply.text, calls=reply.calls, kept=reply.kept),
        Turn(role="tool", text="RESULT-1", answers="c1"),
        Turn(role="tool", text="RESULT-2", answers="c2"),
    )


def test_what_was_thought_goes_back_as_it_came_with_the_results_of_parallel_calls(
    httpserver: HTTPServer, wire: str
) -> None:
    """Signed, redacted and encrypted thinking in its place before the calls; each call and result once."""
    *_, calls, text, _ = WIRES[wire]
    bodies = _served(httpserver, wire, calls, text("Done"))
    model = _model(httpserver, wire)
    turns = _continued(model)
    assert model.complete(Request(system="s", turns=turns, tools=(TOOL,))).text == "Done"
    sent = bodies[1]
    if wire == "anthropic":
        thought, hidden, *used = sent["messages"][1]["content"]
        assert (thought, hidden) == (THOUGHT, HIDDEN)
        assert [(one["id"], one["input"]) for one in used] == [
            ("c1", {"unit": "m1.1"}),
            ("c2", {"unit": "m1.2"}),
        ]
        assert [one["tool_use_id"] for one in sent["messages"][2]["content"]] == ["c1", "c2"]
    elif wire == "responses":
        assert sent["input"][1] == REASONED
        assert [one.get("call_id") for one in sent["input"][2:]] == ["c1", "c2", "c1", "c2"]
        assert sent["include"] == ["reasoning.encrypted_content"]
    else:
        assert sent["messages"][2]["reasoning_content"] == "Let me think of it."
        assert [one["id"] for one in sent["messages"][2]["tool_calls"]] == ["c1", "c2"]


def test_a_reply_without_thinking_keeps_nothing(httpserver: HTTPServer, wire: str) -> None:
    """Its turn says it whole."""
    _served(httpserver, wire, WIRES[wire][4]("Done"))
    assert _model(httpserver, wire).complete(REQUEST).kept == ()


def test_reasoning_that_cannot_be_sent_back_is_not(httpserver: HTTPServer) -> None:
    """An item by name alone is unknown to a server that stores nothing: the calls go back without it."""
    nameless = {key: value for key, value in REASONED.items() if key != "encrypted_content"}
    bodies = _served(
        httpserver, "responses", item_events(nameless, _called("c1", "m1.1"), _called("c2", "m1.2"))
    )
    model = _model(httpserver, "responses")
    model.complete(Request(system="s", turns=_continued(model), tools=(TOOL,)))
    assert "rs_1" not in json.dumps(bodies[1])
    assert "fc_c1" not in json.dumps(bodies[1])


def test_there_is_room_to_think_and_an_effort_and_what_was_read_is_cached(
    httpserver: HTTPServer, wire: str
) -> None:
    """At least 8,000 tokens; the effort where the API has it; the cache mark where it is not automatic."""
    bodies = _served(httpserver, wire, WIRES[wire][4]("Done"))
    _model(httpserver, wire).complete(REQUEST)
    _model(httpserver, wire, effort="high").complete(REQUEST)
    plain, thinking = bodies
    room = {"anthropic": "max_tokens", "responses": "max_output_tokens", "chat": "max_completion_tokens"}
    assert plain[room[wire]] >= 8000
    assert "effort" not in json.dumps(plain)
    wanted = {
        "anthropic": {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}},
        "responses": {"reasoning": {"effort": "high"}},
        "chat": {"reasoning_effort": "high"},
    }[wire]
    assert wanted.items() <= thinking.items()
    assert ("cache_control" in plain) == (wire == "anthropic")


REFUSED = {
    "anthropic": ("cache_control: Extra inputs are not permitted", "cache_control"),
    "responses": ("Unsupported parameter: 'temperature' is not supported with this model.", "temperature"),
    "chat": ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "max_tokens"),
}


def test_a_parameter_that_is_refused_by_name_is_left_out_from_then_on(
    httpserver: HTTPServer, wire: str
) -> None:
    """One further request, once; the others stay."""
    message, name = REFUSED[wire]
    bodies = _served(httpserver, wire, _refusing(message), WIRES[wire][4]("Done"))
    model = _model(httpserver, wire)
    for _ in range(2):
        assert model.complete(Request(system="s", turns=(ASKED,), temperature=0.7)).text == "Done"
    assert [name in body for body in bodies] == [True, False, False]
    assert wire != "chat" or all("max_completion_tokens" in body for body in bodies)


def test_any_other_refusal_is_a_fault_after_one_request(httpserver: HTTPServer, wire: str) -> None:
    """It names no parameter that can be left out."""
    bodies = _served(httpserver, wire, _refusing("the request exceeds the available context size"))
    with pytest.raises(ProviderFault, match="context size"):
        _model(httpserver, wire).complete(REQUEST)
    assert len(bodies) == 1


def test_a_reply_that_was_cut_is_asked_for_again_with_twice_the_room(
    httpserver: HTTPServer, wire: str
) -> None:
    """Within the budget; a third cut ends it."""
    *_, text, cut = WIRES[wire]
    bodies = _served(httpserver, wire, cut, text("Done"))
    asker = Asker(model=_model(httpserver, wire), sleep=lambda seconds: None)
    assert asker.ask(Request(system="s", turns=(ASKED,))).text == "Done"
    name = "max_output_tokens" if wire == "responses" else "max_tokens"
    assert [body[name] for body in bodies] == [8192, 16384]
    httpserver.clear()
    _served(httpserver, wire, cut)
    poor = Asker(model=_model(httpserver, wire), sleep=lambda seconds: None, most_tokens=10_000)
    with pytest.raises(ReplyCut, match="at most 9964 tokens"):
        poor.ask(Request(system="s", turns=(ASKED,)))


def test_a_model_that_thinks_can_be_stopped(httpserver: HTTPServer, wire: str) -> None:
    """Before its first word: every sign of life asks whether to go on."""
    _served(httpserver, wire, WIRES[wire][3])
    heard = threading.Event()

    def hear(piece: str) -> None:
        heard.set()
        raise ReplyStopped

    with pytest.raises(ReplyStopped):
        _model(httpserver, wire).complete(REQUEST, hear)
    assert heard.is_set()
