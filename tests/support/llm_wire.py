"""Replies on the wire: server-sent events as the three APIs send them, for a local server."""

import json
from collections.abc import Iterator
from typing import Any

from werkzeug import Response

CANARY = "sk-canary-0123456789abcdef"
Events = list[tuple[str, dict[str, Any]]]
_DELTAS = {
    "input": ("input_json_delta", "partial_json"),
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "signature": ("signature_delta", "signature"),
}
_BLANK: dict[str, Any] = {"input": {}, "text": "", "thinking": "", "signature": ""}
_SPENT = {"input_tokens": 11, "output_tokens": 7}


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def anthropic_events(*blocks: dict[str, Any], stop: str = "end_turn") -> Events:
    """The events of a message made of text, tool_use, thinking and redacted_thinking blocks."""
    ending: dict[str, Any] = {"stop_reason": None, "stop_sequence": None}
    begun = {"id": "m", "type": "message", "role": "assistant", "model": "test", "content": []}
    usage = {**_SPENT, "output_tokens": 1}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {**begun, **ending, "usage": usage}}]
    for index, block in enumerate(blocks):
        opened = {name: _BLANK.get(name, value) for name, value in block.items()}
        events.append({"type": "content_block_start", "index": index, "content_block": opened})
        events += [{"type": "content_block_delta", "index": index, "delta": one} for one in _deltas(block)]
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {**ending, "stop_reason": stop}, "usage": _SPENT})
    return [(event["type"], event) for event in (*events, {"type": "message_stop"})]


def _deltas(block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What comes after the opening of a block, in two pieces where it is text; redacted thinking comes whole."""
    for name in _DELTAS.keys() & block.keys() - {"signature"}:
        kind, field = _DELTAS[name]
        for piece in _halves(json.dumps(block[name]) if name == "input" else block[name]):
            yield {"type": kind, field: piece}
    if "signature" in block:
        yield {"type": "signature_delta", "signature": block["signature"]}


def response_events(*items: dict[str, Any] | str) -> Events:
    """The events of a response of reasoning, function calls, and texts, which come in two pieces."""

    def response(status: str, *output: dict[str, Any]) -> dict[str, Any]:
        said = {"id": "r", "object": "response", "created_at": 0, "model": "test", "status": status}
        details = {
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        tools = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
        return {**said, **tools, "output": output, "usage": {**_SPENT, "total_tokens": 18, **details}}

    whole = [_message(item) if isinstance(item, str) else item for item in items]
    events: list[dict[str, Any]] = [{"type": "response.created", "response": response("in_progress")}]
    for place, item in enumerate(whole):
        opened = {**item, "content": []} if "content" in item else item
        events.append({"type": "response.output_item.added", "output_index": place, "item": opened})
        at = {"output_index": place, "content_index": 0, "item_id": item["id"], "logprobs": []}
        for part in item.get("content", ()):
            for piece in _halves(part["text"]):
                events.append({"type": "response.output_text.delta", **at, "delta": piece})
        events.append({"type": "response.output_item.done", "output_index": place, "item": item})
    events.append({"type": "response.completed", "response": response("completed", *whole)})
    return [(event["type"], {**event, "sequence_number": place}) for place, event in enumerate(events)]


def _message(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"type": "message", "id": "i", "role": "assistant", "status": "completed", "content": [part]}


def chat_events(text: str = "", *calls: tuple[str, str, str], reasoning: str = "") -> Events:
    """The chunks of a chat completion, its text and reasoning in two pieces, calls as (id, name, arguments).

    They carry no event name.
    """
    same = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "test"}
    functions = [{"id": id, "function": {"name": name, "arguments": given}} for id, name, given in calls]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": piece} for piece in _halves(reasoning) if piece]
    deltas += [{"content": piece} for piece in _halves(text) if piece]
    deltas += [
        {"tool_calls": [{"index": place, "type": "function", **function}]}
        for place, function in enumerate(functions)
    ]
    choices: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"})
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    return [
        *(("", {**same, "choices": [one]}) for one in choices),
        ("", {**same, "choices": [], "usage": usage}),
    ]


def stream(events: Events, *, done: bool = True, declared: int = 0) -> Response:
    """A response that streams these events; `declared` promises that many bytes more than are sent."""
    lines = [(f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n" for name, data in events]
    if done and events and not events[0][0]:
        lines.append("data: [DONE]\n\n")
    body = "".join(lines).encode()
    response = Response(iter([body]), mimetype="text/event-stream")
    if declared:
        response.headers["Content-Length"] = str(len(body) + declared)
    return response
