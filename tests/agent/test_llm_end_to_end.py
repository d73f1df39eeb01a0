"""A question and a refinement through both SDKs, over the wire, into the run file; keys travel in headers alone."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from llm_wire import CANARY, anthropic_events, chat_events, stream
from pytest_httpserver import HTTPServer
from werkzeug import Request as WireRequest
from werkzeug import Response

from agent.answering.chat import ask
from agent.verbs.options import RefineOptions
from agent.verbs.refine import refine_run
from mecharule_ops.events import Event
from mecharule_ops.run.opening import opened
from mecharule_ops.store.event_json import event_to_json

Reply = Callable[[], Response]
SAID = "The search missed 7777 units ⟦f1⟧."


def _anthropic(text: str = "", call: str = "") -> Reply:
    block = (
        {"type": "tool_use", "id": "call1", "name": call, "input": {}}
        if call
        else {"type": "text", "text": text}
    )
    return lambda: stream(anthropic_events(block, stop="tool_use" if call else "end_turn"))


def _chat(text: str = "", call: str = "") -> Reply:
    return lambda: stream(chat_events(call=(call, "{}")) if call else chat_events(text))


def _refused() -> Response:
    body = json.dumps(
        {"type": "error", "error": {"type": "authentication_error", "message": f"bad {CANARY}"}}
    )
    return Response(body, status=401, mimetype="application/json")


PROVIDERS: dict[str, tuple[str, str, Callable[..., Reply]]] = {
    "anthropic": ("/v1/messages", "/", _anthropic),
    "openai": ("/v1/chat/completions", "/v1", _chat),
}


@pytest.fixture(params=PROVIDERS)
def provider(
    request: pytest.FixtureRequest, copied_run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> str:
    """The provider's name, with a planted key and no config file of the user's."""
    for name in PROVIDERS:
        monkeypatch.setenv(f"{name.upper()}_API_KEY", CANARY)
    monkeypatch.setenv("MECHARULE_RUNS", str(copied_run.parent))
    monkeypatch.setenv("MECHARULE_CONFIG", str(tmp_path / "no-config.json"))
    return str(request.param)


def _served(
    server: HTTPServer, provider: str, monkeypatch: pytest.MonkeyPatch, *replies: Reply
) -> list[WireRequest]:
    """Queue replies at the provider's path, the last one for ever; gives the requests as they come."""
    path, base, _ = PROVIDERS[provider]
    monkeypatch.setenv(f"{provider.upper()}_BASE_URL", server.url_for(base))
    seen: list[WireRequest] = []

    def handle(request: WireRequest) -> Response:
        request.get_data(cache=True)
        seen.append(request)
        return replies[min(len(seen), len(replies)) - 1]()

    server.expect_request(path, method="POST").respond_with_handler(handle)
    return seen


def _kinds(shown: list[Event]) -> list[str]:
    return [type(event).__name__ for event in shown]


def _holds_no_key(folder: Path, told: list[str], shown: list[Event], data: Mapping[str, object]) -> None:
    files = [path for path in folder.iterdir() if path.is_file()]
    assert files
    assert not any(CANARY.encode() in path.read_bytes() for path in files)
    assert CANARY not in "".join([*told, *map(event_to_json, shown), json.dumps(data)])


def test_a_question_through_the_sdk_is_checked_and_kept(
    httpserver: HTTPServer,
    provider: str,
    copied_run: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Tool call, result, lying answer left out; the key is in the header and in no log, event, file or answer."""
    caplog.set_level(logging.DEBUG)
    reply = PROVIDERS[provider][2]
    seen = _served(httpserver, provider, monkeypatch, reply(call="missed"), reply(SAID))
    told: list[str] = []
    shown: list[Event] = []
    result = ask(
        "last",
        "what was missed? Xyzzy frobnicates purple quuxes over gnarled brambles!",
        told.append,
        llm=f"{provider}/test",
        show=shown.append,
    )
    assert "7777" not in str(result.data["answer"])
    assert "1 sentence of the model left out" in str(result.data["checked"])
    assert CANARY in str(seen[0].headers)
    assert not any(CANARY in request.get_data(as_text=True) for request in seen)
    assert "every one of 256 units was also tested alone" in seen[1].get_data(as_text=True)
    assert _kinds(shown) == [
        "LlmMessage",
        "LlmCost",
        "ToolCalled",
        "LlmMessage",
        "LlmCost",
        "QuestionAnswered",
    ]
    with opened("last") as run:
        kept = [event for _, _, event in run.store.events()][-len(shown) :]
    assert kept == shown
    assert CANARY not in caplog.text
    _holds_no_key(copied_run.parent, told, shown, result.data)


def test_a_refinement_through_the_sdk_and_a_refused_key(
    httpserver: HTTPServer, provider: str, copied_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refused key ends in exit code 3 and one line without it; the next try asks again and is judged."""
    reply = PROVIDERS[provider][2]
    said = json.dumps({"predicates": ["digit(a, 0) >= 6"], "hypothesis": None})
    _served(httpserver, provider, monkeypatch, _refused, reply(said))
    shown: list[Event] = []
    asked = RefineOptions(rounds=1, units=1, llm=f"{provider}/test")
    failed: Any = refine_run(asked, shown.append)
    assert failed.exit_code == 3
    assert "HTTP 401" in failed.text
    again: Any = refine_run(asked, shown.append)
    assert again.exit_code == 0
    assert again.data["units"][0]["ended"].startswith("the rounds are spent")
    _holds_no_key(copied_run.parent, [failed.text, again.text], shown, again.data)
