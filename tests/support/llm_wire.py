"""Replies on the wire: server-sent events as the three APIs send them, for a local server."""

from __future__ import annotations

import json
from typing import Any

from werkzeug import Response

CANARY = "sk-canary-0123456789abcdef"


def anthropic_events(*blocks: dict[str, Any], stop: str = "end_turn") -> list[tuple[str, dict[str, Any]]]:
    """The events of a message made of text, tool_use, thinking and redacted_thinking blocks."""
    message: dict[str, Any] = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "test",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 1},
    }
    events: list[tuple[str, dict[str, Any]]] = [
        ("message_start", {"type": "message_start", "message": message})
    ]
    for index, block in enumerate(blocks):
        events.append(_opened(index, block))
        for delta in _deltas(block):
            events.append(
                ("content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta})
            )
        events.append(("content_block_stop", {"type": "content_block_stop", "index": index}))
    ending = {"stop_reason": stop, "stop_sequence": None}
    events.append(
        (
            "message_delta",
            {"type": "message_delta", "delta": ending, "usage": {"input_tokens": 11, "output_tokens": 7}},
        )
    )
    events.append(("message_stop", {"type": "message_stop"}))
    return events


def _opened(index: int, block: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    empty = {
        "tool_use": {**block, "input": {}},
        "text": {"type": "text", "text": ""},
        "thinking": {"type": "thinking", "thinking": "", "signature": ""},
        "redacted_thinking": block,
    }
    return "content_block_start", {
        "type": "content_block_start",
        "index": index,
        "content_block": empty[block["type"]],
    }


def _deltas(block: dict[str, Any]) -> list[dict[str, Any]]:
    """What comes after the opening of a block, in two pieces where it is text; redacted thinking comes whole."""
    if block["type"] == "redacted_thinking":
        return []
    kind, field, said = {
        "tool_use": ("input_json_delta", "partial_json", json.dumps(block.get("input"))),
        "text": ("text_delta", "text", block.get("text", "")),
        "thinking": ("thinking_delta", "thinking", block.get("thinking", "")),
    }[block["type"]]
    half = len(said) // 2
    pieces = [{"type": kind, field: part} for part in (said[:half], said[half:])]
    signed = [{"type": "signature_delta", "signature": block["signature"]}] if "signature" in block else []
    return [*pieces, *signed]


def item_events(*items: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The events of a response of whole items: reasoning, function calls, messages."""
    events: list[dict[str, Any]] = [{"type": "response.created", "response": _response("in_progress", [])}]
    for place, item in enumerate(items):
        events.append({"type": "response.output_item.added", "output_index": place, "item": item})
        events.append({"type": "response.output_item.done", "output_index": place, "item": item})
    events.append({"type": "response.completed", "response": _response("completed", list(items))})
    return [(event["type"], {**event, "sequence_number": place}) for place, event in enumerate(events)]


def _response(status: str, output: list[dict[str, Any]], reason: str | None = None) -> dict[str, Any]:
    return {
        "id": "r",
        "object": "response",
        "created_at": 0,
        "model": "test",
        "status": status,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "incomplete_details": None if reason is None else {"reason": reason},
        "error": {"code": "server_error", "message": "broke"} if status == "failed" else None,
        "usage": {
            "input_tokens": 11,
            "output_tokens": 7,
            "total_tokens": 18,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def response_events(
    text: str = "",
    call: tuple[str, str] | None = None,
    *,
    refusal: str | None = None,
    status: str = "completed",
    reason: str | None = None,
) -> list[tuple[str, dict[str, Any]]]:
    """The events of a response with a text, a refusal or one function call (name, arguments)."""
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": _response("in_progress", [])},
    ]
    if call is not None:
        item: dict[str, Any] = {
            "type": "function_call",
            "id": "fc",
            "call_id": "call1",
            "name": call[0],
            "arguments": call[1],
            "status": "completed",
        }
        events.append(
            {"type": "response.output_item.added", "output_index": 0, "item": {**item, "arguments": ""}}
        )
        events.append({"type": "response.output_item.done", "output_index": 0, "item": item})
    else:
        part = (
            {"type": "refusal", "refusal": refusal}
            if refusal
            else {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        )
        item = {"type": "message", "id": "i", "role": "assistant", "status": "completed", "content": [part]}
        events.append(
            {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}}
        )
        if not refusal:
            place = {"output_index": 0, "content_index": 0, "item_id": "i"}
            events.append({"type": "response.content_part.added", **place, "part": {**part, "text": ""}})
            for piece in (text[: len(text) // 2], text[len(text) // 2 :]):
                events.append({"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []})
            events.append({"type": "response.output_text.done", **place, "text": text, "logprobs": []})
        events.append({"type": "response.output_item.done", "output_index": 0, "item": item})
    end = {"completed": "completed", "incomplete": "incomplete", "failed": "failed"}[status]
    events.append({"type": f"response.{end}", "response": _response(status, [item], reason)})
    return [(event["type"], {**event, "sequence_number": place}) for place, event in enumerate(events)]


def chat_events(
    text: str = "",
    call: tuple[str, str] | None = None,
    *,
    refusal: str | None = None,
    finish: str | None = None,
) -> list[tuple[str, dict[str, Any]]]:
    """The chunks of a chat completion; they carry no event name."""

    def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> tuple[str, dict[str, Any]]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return "", {
            "id": "c",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": "test",
            "choices": [choice],
            **more,
        }

    half = len(text) // 2
    events = [chunk({"role": "assistant", "content": ""})]
    if call is not None:
        function = {"name": call[0], "arguments": call[1]}
        events.append(
            chunk({"tool_calls": [{"index": 0, "id": "call1", "type": "function", "function": function}]})
        )
    elif refusal:
        events.append(chunk({"refusal": refusal}))
    else:
        events += [chunk({"content": text[:half]}), chunk({"content": text[half:]})]
    events.append(chunk({}, finish or ("tool_calls" if call else "stop")))
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    events.append(("", {**chunk({})[1], "choices": [], "usage": usage}))
    return events


def chat_calls(reasoning: str, *calls: tuple[str, str, str]) -> list[tuple[str, dict[str, Any]]]:
    """The chunks of a completion with reasoning beside it, in two pieces, and calls (id, name, arguments)."""
    (first, said), *_ = chat_events()
    half = len(reasoning) // 2

    def chunk(delta: dict[str, Any], finish: str | None = None) -> tuple[str, dict[str, Any]]:
        return first, {**said, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    return [
        chunk({"role": "assistant", "content": ""}),
        chunk({"reasoning_content": reasoning[:half]}),
        chunk({"reasoning_content": reasoning[half:]}),
        *(
            chunk(
                {
                    "tool_calls": [
                        {
                            "index": place,
                            "id": id,
                            "type": "function",
                            "function": {"name": name, "arguments": text},
                        }
                    ]
                }
            )
            for place, (id, name, text) in enumerate(calls)
        ),
        chunk({}, "tool_calls"),
    ]


def stream(events: list[tuple[str, dict[str, Any]]], *, done: bool = True, declared: int = 0) -> Response:
    """A response that streams these events; `declared` promises that many bytes more than are sent."""
    lines = [(f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n" for name, data in events]
    if done and events and not events[0][0]:
        lines.append("data: [DONE]\n\n")
    body = "".join(lines).encode()
    response = Response(iter([body]), mimetype="text/event-stream")
    if declared:
        response.headers["Content-Length"] = str(len(body) + declared)
    return response
