"""Both SDKs against a local server that speaks their protocols: replies, and every fault as one clear line."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from llm_wire import CANARY, anthropic_events, chat_events, response_events, stream
from pydantic import BaseModel, ConfigDict
from pytest_httpserver import HTTPServer
from werkzeug import Request as WireRequest
from werkzeug import Response

from agent.llm.choice import Choice, make_model
from agent.llm.faults import ProviderFault, ReplyRefused, ReplyUnusable, TransientFault
from agent.llm.protocol import LanguageModel, Request, ToolCall, ToolSpec, Turn
from agent.llm.retrying import Asker
from mecharule_ops.errors import MechaRuleError


class Words(BaseModel):
    """A shape to ask for."""

    model_config = ConfigDict(extra="forbid")
    words: list[str]


TOOL = ToolSpec(
    name="why",
    description="Why a unit flips.",
    schema={"type": "object", "properties": {"unit": {"type": "string"}}},
)
PLAIN = Request(system="Be brief.", turns=(Turn(role="user", text="Say it."),))


def _anthropic_text(text: str, **more: Any) -> list:
    return anthropic_events({"type": "text", "text": text}, **more)


def _anthropic_call(name: str, arguments: str) -> list:
    return anthropic_events(
        {"type": "tool_use", "id": "call1", "name": name, "input": json.loads(arguments)}, stop="tool_use"
    )


@dataclass(frozen=True)
class Wire:
    """One provider's protocol."""

    provider: str
    path: str
    text: Callable[[str], list]
    call: Callable[[str, str], list]
    refusal: list
    short: list

    def model(self, server: HTTPServer, timeout: float = 5.0) -> LanguageModel:
        from agent.llm.anthropic_model import AnthropicModel
        from agent.llm.openai_chat import OpenAIChatModel
        from agent.llm.openai_model import OpenAIModel

        kind = {
            "/v1/messages": AnthropicModel,
            "/v1/responses": OpenAIModel,
            "/v1/chat/completions": OpenAIChatModel,
        }
        base = server.url_for("/" if self.provider == "anthropic" else "/v1")
        return kind[self.path]("test", CANARY, base_url=base, timeout=timeout)


ANTHROPIC = Wire(
    "anthropic",
    "/v1/messages",
    _anthropic_text,
    _anthropic_call,
    anthropic_events(stop="refusal"),
    _anthropic_text("cut", stop="max_tokens"),
)
RESPONSES = Wire(
    "openai",
    "/v1/responses",
    response_events,
    lambda name, arguments: response_events(call=(name, arguments)),
    response_events(refusal="no"),
    response_events("cut", status="incomplete", reason="max_output_tokens"),
)
CHAT = Wire(
    "openai",
    "/v1/chat/completions",
    chat_events,
    lambda name, arguments: chat_events(call=(name, arguments)),
    chat_events(refusal="no"),
    chat_events("cut", finish="length"),
)


@pytest.fixture(params=[ANTHROPIC, RESPONSES, CHAT], ids=["anthropic", "responses", "chat"])
def wire(request: pytest.FixtureRequest) -> Wire:
    return request.param


def _answer(server: HTTPServer, wire: Wire, *answers: Any) -> list[WireRequest]:
    """Queue answers, the last one for ever; gives the requests as they come."""
    seen: list[WireRequest] = []

    def handle(request: WireRequest) -> Response:
        request.get_data(cache=True)
        answer = answers[min(len(seen), len(answers) - 1)]
        seen.append(request)
        return answer() if callable(answer) else answer

    server.expect_request(wire.path, method="POST").respond_with_handler(handle)
    return seen


def _streamed(events: list, **more: Any) -> Callable[[], Response]:
    return lambda: stream(events, **more)


def _failing(status: int, message: str = f"bad key {CANARY}", **headers: str) -> Callable[[], Response]:
    body = json.dumps({"type": "error", "error": {"type": "some_error", "message": message}})
    return lambda: Response(body, status=status, mimetype="application/json", headers=headers)


def _one_line(error: BaseException) -> str:
    text = str(error)
    assert "\n" not in text
    assert CANARY not in text
    assert len(text) < 400
    return text


def test_text_streams_and_tokens_are_counted(httpserver: HTTPServer, wire: Wire) -> None:
    """The pieces arrive in order, the whole is their sum, and the provider's counts are kept."""
    seen = _answer(httpserver, wire, _streamed(wire.text("Hello there")))
    pieces: list[str] = []
    reply = wire.model(httpserver).complete(PLAIN, pieces.append)
    assert "".join(pieces) == reply.text == "Hello there"
    assert len([piece for piece in pieces if piece]) == 2
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (11, 7)
    assert "Be brief." in seen[0].get_data(as_text=True)


def test_a_schema_is_sent_and_read_back(httpserver: HTTPServer, wire: Wire) -> None:
    """The schema travels with the request and the reply comes back as its object."""
    seen = _answer(httpserver, wire, _streamed(wire.text('{"words": ["a", "b"]}')))
    request = Request(system="s", turns=PLAIN.turns, schema=Words)
    assert wire.model(httpserver).complete(request).parsed == Words(words=["a", "b"])
    assert '"words"' in seen[0].get_data(as_text=True)


def test_tool_calls_go_out_and_their_results_come_back(httpserver: HTTPServer, wire: Wire) -> None:
    """A call is read with its arguments, and the next request carries it with its result."""
    seen = _answer(
        httpserver, wire, _streamed(wire.call("why", '{"unit": "m4.1"}')), _streamed(wire.text("Done"))
    )
    model = wire.model(httpserver)
    first = model.complete(Request(system="s", turns=PLAIN.turns, tools=(TOOL,)))
    assert first.calls == (ToolCall(id="call1", name="why", arguments={"unit": "m4.1"}),)
    turns = (
        *PLAIN.turns,
        Turn(role="assistant", text="Let me look.", calls=first.calls),
        Turn(role="tool", text="RESULT-TEXT", answers="call1"),
    )
    assert model.complete(Request(system="s", turns=turns, tools=(TOOL,))).text == "Done"
    body = seen[1].get_data(as_text=True)
    assert body.count("call1") == 2
    assert "RESULT-TEXT" in body
    assert "Let me look." in body


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_names_the_variable_and_is_not_tried_again(
    httpserver: HTTPServer, wire: Wire, status: int
) -> None:
    """One request, exit code 3, the variable's name, and no trace of the key that the server echoed."""
    seen = _answer(httpserver, wire, _failing(status))
    asker = Asker(model=wire.model(httpserver), sleep=lambda seconds: None)
    with pytest.raises(ProviderFault, match=f"{wire.provider.upper()}_API_KEY") as caught:
        asker.ask(PLAIN)
    assert str(status) in _one_line(caught.value)
    assert (len(seen), caught.value.exit_code) == (1, 3)


def test_a_rate_limit_waits_as_long_as_it_is_told(httpserver: HTTPServer, wire: Wire) -> None:
    """429 with `retry-after: 7` waits 7 s and succeeds; the wait is asked of the clock that was given."""
    _answer(httpserver, wire, _failing(429, **{"retry-after": "7"}), _streamed(wire.text("ok")))
    waits: list[float] = []
    assert Asker(model=wire.model(httpserver), sleep=waits.append).ask(PLAIN).text == "ok"
    assert waits == [7.0]


def test_a_rate_limit_of_an_hour_is_not_waited_for(httpserver: HTTPServer, wire: Wire) -> None:
    """A wait beyond a minute is reported at once, with its length."""
    seen = _answer(httpserver, wire, _failing(429, **{"retry-after": "3600"}))
    waits: list[float] = []
    with pytest.raises(TransientFault, match="3600 s") as caught:
        Asker(model=wire.model(httpserver), sleep=waits.append).ask(PLAIN)
    _one_line(caught.value)
    assert (waits, len(seen)) == ([], 1)


@pytest.mark.parametrize("status", [500, 529])
def test_server_errors_are_tried_three_times(httpserver: HTTPServer, wire: Wire, status: int) -> None:
    """Waits of 1 and 2 s between three requests, then one line with the status."""
    seen = _answer(httpserver, wire, _failing(status))
    waits: list[float] = []
    with pytest.raises(TransientFault, match=str(status)) as caught:
        Asker(model=wire.model(httpserver), sleep=waits.append).ask(PLAIN)
    _one_line(caught.value)
    assert (waits, len(seen)) == ([1.0, 2.0], 3)


def test_a_server_that_hangs_is_a_timeout(httpserver: HTTPServer, wire: Wire) -> None:
    """No answer within the time limit ends in a fault that names the network."""
    released = threading.Event()

    def hang() -> Response:
        released.wait(5)
        return Response("late")

    _answer(httpserver, wire, hang)
    began = time.monotonic()
    with pytest.raises(TransientFault, match="did not answer") as caught:
        wire.model(httpserver, timeout=0.2).complete(PLAIN)
    released.set()
    _one_line(caught.value)
    assert time.monotonic() - began < 4


def test_a_server_that_is_not_there_is_unreachable(wire: Wire) -> None:
    """Nobody listens: the same fault, not a stack trace."""
    with HTTPServer(port=0) as server:
        model = wire.model(server)
    with pytest.raises(TransientFault, match="check the network and the base URL") as caught:
        model.complete(PLAIN)
    _one_line(caught.value)


@pytest.mark.parametrize("declared", [0, 500], ids=["clean end", "broken connection"])
@pytest.mark.parametrize("left_out", [1, 3])
def test_a_stream_cut_in_the_middle_is_never_a_reply(
    httpserver: HTTPServer, wire: Wire, left_out: int, declared: int
) -> None:
    """Without its last events a stream is a fault, however politely the connection ends; then it is retried."""
    events = wire.text("Hello there, this is whole")
    kept = len(events) - left_out - (1 if wire is CHAT else 0)
    cut = _streamed(events[:kept], done=False, declared=declared)
    _answer(httpserver, wire, cut, _streamed(events))
    model = wire.model(httpserver)
    with pytest.raises(TransientFault) as caught:
        model.complete(PLAIN)
    _one_line(caught.value)
    assert model.complete(PLAIN).text == "Hello there, this is whole"


def test_a_refusal_is_said_and_not_tried_again(httpserver: HTTPServer, wire: Wire) -> None:
    """The model declined: one request, one line."""
    seen = _answer(httpserver, wire, _streamed(wire.refusal))
    with pytest.raises(ReplyRefused, match="declined") as caught:
        Asker(model=wire.model(httpserver), sleep=lambda seconds: None).ask(PLAIN)
    _one_line(caught.value)
    assert len(seen) == 1


@pytest.mark.parametrize("text", ["{not json", '{"words": 3}', '{"words": [], "more": 1}', "", "[" * 5000])
def test_a_reply_that_does_not_fit_the_schema_is_asked_for_again(
    httpserver: HTTPServer, wire: Wire, text: str
) -> None:
    """The second request says what was wrong; a reply that fits ends it, with the tokens of what was charged."""
    seen = _answer(httpserver, wire, _streamed(wire.text(text)), _streamed(wire.text('{"words": ["a"]}')))
    asker = Asker(model=wire.model(httpserver), sleep=lambda seconds: None)
    reply = asker.ask(Request(system="s", turns=PLAIN.turns, schema=Words))
    assert reply.parsed == Words(words=["a"])
    assert "could not be used" in seen[1].get_data(as_text=True)


def test_replies_that_never_fit_end_after_three(httpserver: HTTPServer, wire: Wire) -> None:
    """The last fault names the schema and nothing of the text."""
    seen = _answer(httpserver, wire, _streamed(wire.text('{"wrong": "INVENTED 3.7"}')))
    with pytest.raises(ReplyUnusable, match="Words") as caught:
        Asker(model=wire.model(httpserver), sleep=lambda seconds: None).ask(
            Request(system="s", turns=PLAIN.turns, schema=Words)
        )
    assert "INVENTED" not in _one_line(caught.value)
    assert len(seen) == 3


def test_a_reply_cut_short_by_its_length_is_unusable(httpserver: HTTPServer, wire: Wire) -> None:
    """The limit is named; half a reply is never read as a whole one."""
    _answer(httpserver, wire, _streamed(wire.short))
    with pytest.raises(ReplyUnusable, match="8192 tokens") as caught:
        wire.model(httpserver).complete(PLAIN)
    _one_line(caught.value)
    used = caught.value.usage
    assert (used.input_tokens, used.output_tokens) == (11, 7), "half a reply is paid for like a whole one"


@pytest.mark.parametrize(
    "body", [b"", b"<html>gateway</html>", b"data: {broken\n\n", b"event: error\ndata: {}\n\n"]
)
def test_answers_of_no_protocol_are_one_line(httpserver: HTTPServer, wire: Wire, body: bytes) -> None:
    """A proxy's page, an empty body or broken events end in an error of the tree, never in a crash."""
    _answer(httpserver, wire, lambda: Response(body, mimetype="text/event-stream"))
    with pytest.raises(MechaRuleError) as caught:
        wire.model(httpserver).complete(PLAIN)
    _one_line(caught.value)


def test_an_error_event_inside_a_stream_is_transient(httpserver: HTTPServer, wire: Wire) -> None:
    """A stream that began well and then says it is overloaded may be asked again."""
    error = {"type": "error", "error": {"type": "overloaded_error", "message": f"busy {CANARY}"}}
    first = wire.text("Hello")[:2]
    _answer(httpserver, wire, _streamed([*first, ("error" if first[0][0] else "", error)], done=False))
    with pytest.raises(TransientFault) as caught:
        wire.model(httpserver).complete(PLAIN)
    _one_line(caught.value)


def test_tool_arguments_that_are_no_object_are_unusable(httpserver: HTTPServer) -> None:
    """The OpenAI APIs carry arguments as text: text that is no JSON object is refused, for both."""
    for wire in (RESPONSES, CHAT):
        httpserver.clear()
        _answer(httpserver, wire, _streamed(wire.call("why", "[1")))
        with pytest.raises(ReplyUnusable, match="why"):
            wire.model(httpserver).complete(Request(system="s", turns=PLAIN.turns, tools=(TOOL,)))


def test_keys_travel_in_the_header_and_nowhere_else(
    httpserver: HTTPServer, wire: Wire, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted key is in the request's header, and in no log at any level, no body, no error."""
    monkeypatch.setenv(f"{wire.provider.upper()}_API_KEY", CANARY)
    caplog.set_level(logging.DEBUG)
    seen = _answer(httpserver, wire, _streamed(wire.text("ok")), _failing(401), _failing(500))
    model = wire.model(httpserver)
    assert model.complete(PLAIN).text == "ok"
    assert CANARY in str(seen[0].headers)
    assert CANARY not in seen[0].get_data(as_text=True)
    for _ in range(2):
        with pytest.raises(ProviderFault) as caught:
            model.complete(PLAIN)
        _one_line(caught.value)
        assert caught.value.__cause__ is None
    assert CANARY not in caplog.text
    assert CANARY not in repr(vars(model)["name"])


def test_the_choice_decides_the_protocol() -> None:
    """Anthropic, OpenAI, and a base URL for local servers that speak chat completions."""
    environment = {"ANTHROPIC_API_KEY": CANARY, "OPENAI_API_KEY": CANARY}
    made = [
        make_model(Choice(spec=spec, why="", base_url=url), environment)
        for spec, url in (
            ("anthropic/a", None),
            ("openai/b", None),
            ("openai/c", "http://localhost:1/v1"),
            ("none", None),
        )
    ]
    assert [type(model).__name__ for model in made] == [
        "AnthropicModel",
        "OpenAIModel",
        "OpenAIChatModel",
        "NoneType",
    ]
    assert all(model is None or isinstance(model, LanguageModel) for model in made)
