"""Chat completions through the OpenAI SDK: what local OpenAI-compatible servers speak; streamed.

The longest reply goes out under its new name and under its old one, since a server that knows neither has no bound; one
that refuses either is asked without it. Reasoning that a server writes beside its reply goes back with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from agent.llm.faults import ReplyRefused, cut_off, cut_short
from agent.llm.openai_model import PROVIDER, OpenAIClient, chat_usage
from agent.llm.parsing import arguments_of, parsed_as
from agent.llm.protocol import OnText, Reply, Request, ToolCall, Turn
from mecharule_ops.codec import canonical_json

_REASONING = ("reasoning_content", "reasoning")


class OpenAIChatModel(OpenAIClient):
    """A model of a server at a base URL; most local servers take any key."""

    def _read(self, request: Request, arguments: dict[str, Any], on_text: OnText) -> Reply:
        with self._client.chat.completions.stream(**arguments) as stream:
            stream._raw_stream = _numbered(stream._raw_stream)
            ended = False
            for event in stream:
                if event.type == "content.delta" and event.delta:
                    on_text(event.delta)
                elif event.type == "chunk":
                    on_text("")
                    ended |= any(choice.finish_reason for choice in event.chunk.choices)
            if not ended:
                raise cut_off(PROVIDER)
            return _reply(stream.get_final_completion(), request)

    def _arguments(self, request: Request) -> dict[str, Any]:
        system = {"role": "system", "content": request.system}
        arguments: dict[str, Any] = {
            "model": self._model,
            "messages": [system, *map(_message, request.turns)],
            "max_completion_tokens": request.max_tokens,
            "max_tokens": request.max_tokens,
            "stream_options": {"include_usage": True},
        }
        if self._effort is not None:
            arguments["reasoning_effort"] = self._effort
        if request.temperature is not None:
            arguments["temperature"] = request.temperature
        if request.schema is not None:
            arguments["response_format"] = request.schema
        if request.tools:
            arguments["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": dict(tool.schema),
                    },
                }
                for tool in request.tools
            ]
        return arguments


def _numbered(chunks: Iterable[Any]) -> Iterator[Any]:
    """The chunks, each tool call with its place among the reply's: some servers leave out what the SDK goes by."""
    ids: list[str] = []
    for chunk in chunks:
        for call in (call for choice in chunk.choices for call in choice.delta.tool_calls or ()):
            if call.index is None:
                if call.id and call.id not in ids:
                    ids.append(call.id)
                call.index = ids.index(call.id) if call.id else max(0, len(ids) - 1)
        yield chunk


def _message(turn: Turn) -> dict[str, Any]:
    if turn.role == "tool":
        return {"role": "tool", "tool_call_id": turn.answers, "content": turn.text}
    message: dict[str, Any] = {"role": turn.role, "content": turn.text, **(turn.kept[0] if turn.kept else {})}
    if turn.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": canonical_json(dict(call.arguments))},
            }
            for call in turn.calls
        ]
    return message


def _reply(completion: Any, request: Request) -> Reply:
    choice = completion.choices[0]
    if choice.finish_reason == "length":
        raise cut_short(request.max_tokens, chat_usage(completion))
    message = choice.message
    if message.refusal:
        raise ReplyRefused("the model declined to answer; ask another way")
    text = message.content or ""
    calls = tuple(
        ToolCall(
            id=call.id,
            name=call.function.name,
            arguments=arguments_of(call.function.name, call.function.arguments),
        )
        for call in message.tool_calls or ()
    )
    return Reply(
        text=text,
        calls=calls,
        parsed=None if calls else parsed_as(request.schema, text),
        usage=chat_usage(completion),
        kept=_kept(message),
    )


def _kept(message: Any) -> tuple[dict[str, Any], ...]:
    """The reasoning beside a reply, under the server's own name for it."""
    beside = message.model_extra or {}
    said = {name: beside[name] for name in _REASONING if isinstance(beside.get(name), str)}
    return (said,) if said else ()
