"""A provider on the loopback whose replies are written by hand or by any model, kept, and replayed.

It speaks Anthropic's messages, streamed or whole. A request whose reply is kept is answered so; any other is put into a
folder as `NNN.request.json` and answered once `NNN.reply.json` lies beside it:

    {"text": "m1.14 flips 12 of 64 [f3].", "calls": [{"name": "why", "arguments": {"neuron": "m1.14"}}]}

A pair is known by its question, how many replies came before, and whether it is the second look at an answer; what it
cites is the fact of now that reads most like the one of then, and a verdict goes with its sentence: one that was never
looked at has none. So tools and the sheet of a run may be reworded without a new recording. Tokens are counted as four
characters; read from a cache is what stands under a cache mark exactly as in the request before.
"""

import json
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from llm_wire import anthropic_events
from rapidfuzz import fuzz

Pair = dict[str, Any]
"""`question`, `turn`, `look`, the `request`'s messages, the `reply`."""
_EVERY = 0.2
_MARK = '"cache_control"'


class NoReplyError(Exception):
    """Neither kept nor given."""


@dataclass(kw_only=True)
class RecordedModel:
    """Replies that are kept in a file, and a folder where those that are not are asked for (None: nowhere)."""

    kept: Path
    folder: Path | None = None
    seconds: float = 3600.0
    """To wait for a reply."""
    sizes: list[tuple[int, int]] = field(default_factory=list)
    """Tokens of each request and those of them read from the cache."""
    pairs: list[Pair] = field(default_factory=list)
    _before: str = ""
    _asked: str = ""

    def __post_init__(self) -> None:
        self.pairs = json.loads(self.kept.read_text("utf-8")) if self.kept.exists() else []

    def reply(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The content of a reply with its usage. Raises `NoReplyError`."""
        is_look = "tool_choice" in body and body["tool_choice"]["type"] != "auto"
        turn = sum(one["role"] == "assistant" for one in body["messages"])
        self._asked = self._asked if is_look else _text(body["messages"][0])
        key = {"question": self._asked, "turn": turn, "look": is_look}
        read, cached = self._tokens(body)
        known = [one for one in self.pairs if all(one[name] == value for name, value in key.items())]
        # The second look at a repaired answer has the same key: they follow each other.
        said = _of_now(known[0], body) if known else self._given(key, body)
        if is_look and len(known) > 1:
            self.pairs.append(self.pairs.pop(self.pairs.index(known[0])))
        written = len(json.dumps(said, ensure_ascii=False)) // 4
        usage = {"input_tokens": read - cached, "cache_read_input_tokens": cached, "output_tokens": written}
        blocks: list[dict[str, Any]] = [{"type": "text", "text": said["text"]}] if said.get("text") else []
        blocks += [
            {"type": "tool_use", "id": f"call_{turn}_{place}", "name": one["name"], "input": one["arguments"]}
            for place, one in enumerate(said.get("calls", ()))
        ]
        return {"content": blocks, "usage": usage, "stop": "tool_use" if said.get("calls") else "end_turn"}

    def _tokens(self, body: Mapping[str, Any]) -> tuple[int, int]:
        """Tokens of a request, and those that lie before its last cache mark as in the request before."""
        whole = json.dumps([body.get("tools"), body.get("system"), body["messages"]], ensure_ascii=False)
        begin = whole[: whole.rfind(_MARK)] if _MARK in whole else ""
        cached = len(begin) // 4 if begin and self._before.startswith(begin) else 0
        self._before = whole
        self.sizes.append((len(whole) // 4, cached))
        return self.sizes[-1]

    def _given(self, key: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
        """A reply from the folder, kept from now on."""
        if self.folder is None:
            raise NoReplyError(f"no reply is kept for {key}")
        self.folder.mkdir(parents=True, exist_ok=True)
        number = f"{len(list(self.folder.glob('*.request.json'))) + 1:03}"
        asked, answered = (self.folder / f"{number}.{what}.json" for what in ("request", "reply"))
        asked.write_text(json.dumps({**key, **body}, indent=1, ensure_ascii=False), "utf-8")
        until = time.monotonic() + self.seconds
        while time.monotonic() < until:
            try:
                said: dict[str, Any] = json.loads(answered.read_text("utf-8"))
            except (FileNotFoundError, ValueError):  # Not there, or not whole.
                time.sleep(_EVERY)
                continue
            self.pairs.append({**key, "request": body["messages"], "reply": said})
            self.kept.write_text(json.dumps(self.pairs, indent=1, ensure_ascii=False) + "\n", "utf-8")
            return said
        raise NoReplyError(f"no {answered.name} came within {self.seconds:.0f} s")

    @contextmanager
    def served(self) -> Iterator[str]:
        """The address, as long as it is served."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()


def _text(message: Mapping[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


def _of_now(pair: Pair, body: Mapping[str, Any]) -> dict[str, Any]:
    """A kept reply that cites the facts of this conversation."""
    then, now = (_facts(messages) for messages in (pair["request"], body["messages"]))

    def id_of(match: re.Match[str]) -> str:
        sentence = then.get(match[0])
        return max(now, key=lambda id: fuzz.ratio(now[id], sentence)) if sentence and now else match[0]

    said: dict[str, Any] = pair["reply"]
    for call in said["calls"] if pair.get("look") else ():
        before, after = (_numbered(messages[-1]) for messages in (pair["request"], body["messages"]))
        verdicts = [
            one for one in call["arguments"]["verdicts"] if before[one["number"]] == after.get(one["number"])
        ]
        return {**said, "calls": [{**call, "arguments": {"verdicts": verdicts}}]}
    return {**said, "text": re.sub(r"(?<=[\[ ])f\d+(?=[\],])", id_of, said.get("text", ""))}


def _numbered(look: Mapping[str, Any]) -> dict[int, str]:
    """The sentences of a second look by their numbers, without what they cite."""
    text = re.sub(r" ?\[f[\df, ]+\]", "", _text(look))
    return {int(number): said for number, said in re.findall(r"(?m)^(\d+)\. (.*)", text)}


def _facts(messages: Any) -> dict[str, str]:
    """The facts of a conversation by their ids."""
    text = json.dumps(messages, ensure_ascii=False)
    return dict(re.findall(r'(?:\\n|")\[(f\d+)\] (.+?)(?=\\n|(?<!\\)")', text))


def _handler(model: RecordedModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            try:
                said = model.reply(body)
            except NoReplyError as error:
                fault = {"type": "error", "error": {"type": "invalid_request_error", "message": str(error)}}
                return self._send(400, "application/json", json.dumps(fault))
            events = anthropic_events(*said["content"], stop=said["stop"])
            message: dict[str, Any] = events[0][1]["message"]
            message["usage"] = said["usage"]
            events[-2][1]["usage"] = said["usage"]
            if not body.get("stream"):
                whole = {**message, "content": said["content"], "stop_reason": said["stop"]}
                return self._send(200, "application/json", json.dumps(whole))
            lines = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events)
            return self._send(200, "text/event-stream", lines)

        def _send(self, status: int, kind: str, text: str) -> None:
            content = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: each request is in a file."""

    return Handler
