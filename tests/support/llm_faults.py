"""Every way in which a provider fails, as a server that speaks the chat protocol answers it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from llm_wire import CANARY, chat_events, stream
from pytest_httpserver import HTTPServer
from werkzeug import Request as WireRequest
from werkzeug import Response

from agent.llm.openai_chat import OpenAIChatModel

SECONDS = 0.3
"""What a client waits for the server that hangs."""


def _failing(status: int, message: str = "it failed", **headers: str) -> Callable[[], Response]:
    body = json.dumps({"error": {"type": "some_error", "message": f"{message} {CANARY}"}})
    return lambda: Response(body, status=status, mimetype="application/json", headers=headers)


def _said(text: str = "", **more: str) -> Callable[[], Response]:
    return lambda: stream(chat_events(text, **more))  # type: ignore[arg-type]


def _hanging() -> Response:
    time.sleep(2 * SECONDS)
    return Response("late")


def _cut() -> Response:
    return stream(chat_events("Hello there, this is whole")[:-3], done=False, declared=500)


def _called() -> Response:
    return stream(chat_events(call=("why", "[1")))


FAULTS: Mapping[str, tuple[Callable[[], Response], int]] = {
    "401": (_failing(401), 1),
    "403": (_failing(403), 1),
    "404": (_failing(404), 1),
    "429": (_failing(429), 3),
    "429 with Retry-After": (_failing(429, **{"retry-after": "7"}), 3),
    "429 with a Retry-After of an hour": (_failing(429, **{"retry-after": "3600"}), 1),
    "500": (_failing(500), 3),
    "529": (_failing(529), 3),
    "timeout": (_hanging, 3),
    "cut stream": (_cut, 3),
    "bad JSON": (lambda: Response(b"data: {broken\n\n", mimetype="text/event-stream"), 3),
    "wrong schema": (_called, 3),
    "empty": (_said(""), 1),
    "refusal": (_said(refusal="no"), 1),
    "content filter": (_said("half", finish="content_filter"), 1),
    "cut short": (_said("half", finish="length"), 3),
    "context too long": (_failing(400, "the request exceeds the available context size"), 1),
}
"""What the server answers to every request, and how many requests one question may then cost."""


@dataclass(slots=True)
class Failing:
    """A server that fails in one way, and the model behind it."""

    model: OpenAIChatModel
    requests: list[WireRequest] = field(default_factory=list)


@contextmanager
def failing(name: str) -> Iterator[Failing]:
    """A server on the loopback with this fault."""
    reply, _ = FAULTS[name]
    with HTTPServer() as server:
        model = OpenAIChatModel("test", CANARY, base_url=server.url_for("/v1"), timeout=SECONDS)
        made = Failing(model)

        def handle(request: WireRequest) -> Response:
            request.get_data(cache=True)
            made.requests.append(request)
            return reply()

        server.expect_request("/v1/chat/completions", method="POST").respond_with_handler(handle)
        yield made
