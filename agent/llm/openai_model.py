"""OpenAI's Responses API through its own SDK, streamed; one reply a call, no retries of its own."""

from __future__ import annotations

from typing import Any

from openai.types.responses import ResponseCompletedEvent, ResponseFailedEvent, ResponseIncompleteEvent

from agent.llm.faults import ReplyRefused, TransientFault, cut_off, cut_short, scrub
from agent.llm.openai_client import PROVIDER, OpenAIClient
from agent.llm.protocol import OnText, Reply, Request, ToolCall, Turn, Usage
from agent.llm.reading import arguments_of, parsed_as
from mecharule_ops.codec import canonical_json

_ENDS = (ResponseCompletedEvent, ResponseIncompleteEvent, ResponseFailedEvent)


class OpenAIModel(OpenAIClient):
    """A model behind `OPENAI_API_KEY`."""

    def _read(self, request: Request, on_text: OnText) -> Reply:
        response = None
        with self._client.responses.stream(**self._arguments(request)) as stream:
            for event in stream:
                if event.type == "response.output_text.delta":
                    on_text(event.delta)
                elif isinstance(event, _ENDS):
                    response = event.response
        if response is None:
            raise cut_off(PROVIDER)
        return _reply(response, request)

    def _arguments(self, request: Request) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "model": self._model,
            "instructions": request.system,
            "input": [item for turn in request.turns for item in _items(turn)],
            "max_output_tokens": request.max_tokens,
            "store": False,
        }
        if request.schema is not None:
            arguments["text_format"] = request.schema
        if request.tools:
            arguments["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.schema),
                    "strict": False,
                }
                for tool in request.tools
            ]
        return arguments


def _items(turn: Turn) -> list[dict[str, Any]]:
    if turn.role == "tool":
        return [{"type": "function_call_output", "call_id": turn.answers, "output": turn.text}]
    said = [{"role": turn.role, "content": turn.text}] if turn.text else []
    return said + [
        {
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": canonical_json(dict(call.arguments)),
        }
        for call in turn.calls
    ]


def _reply(response: Any, request: Request) -> Reply:
    used = response.usage
    usage = Usage(input_tokens=used.input_tokens, output_tokens=used.output_tokens) if used else Usage()
    if response.status == "failed":
        message = response.error.message if response.error else "no reason given"
        raise TransientFault(f"{PROVIDER} failed while replying; ask again: {scrub(message)}")
    if response.status == "incomplete":
        filtered = response.incomplete_details and response.incomplete_details.reason == "content_filter"
        raise (
            ReplyRefused("the provider's filter stopped the reply; ask another way")
            if filtered
            else cut_short(request.max_tokens, usage)
        )
    parts = [part for item in response.output if item.type == "message" for part in item.content]
    if any(part.type == "refusal" for part in parts):
        raise ReplyRefused("the model declined to answer; ask another way")
    text = "".join(part.text for part in parts if part.type == "output_text")
    calls = tuple(
        ToolCall(id=item.call_id, name=item.name, arguments=arguments_of(item.name, item.arguments))
        for item in response.output
        if item.type == "function_call"
    )
    return Reply(
        text=text,
        calls=calls,
        parsed=None if calls else parsed_as(request.schema, text),
        usage=usage,
    )
