"""OpenAI through its own SDK: what its two APIs share, and the Responses API; one streamed reply a call, no retries.

Both are needed: only the Responses API gives reasoning items back between tool calls, and local servers speak chat
completions (`openai_chat`). OpenAI caches what was read before by itself.
"""

from __future__ import annotations

from typing import Any

import openai
from openai.types.responses import ResponseCompletedEvent, ResponseFailedEvent, ResponseIncompleteEvent

from agent.llm.faults import (
    MechaRuleError,
    ProviderFault,
    ReplyRefused,
    TransientFault,
    cut_off,
    cut_short,
    scrub,
    status_fault,
    unreachable,
)
from agent.llm.parsing import arguments_of, parsed_as
from agent.llm.protocol import OnText, Reply, Request, ToolCall, Turn, Usage
from agent.llm.provider_client import ProviderClient
from mecharule_ops.codec import canonical_json

PROVIDER = "openai"
_REFUSABLE = {
    "include": "include|[Ee]ncrypted content|encrypted_content",
    "reasoning": r"reasoning|reasoning\.effort",
    "reasoning_effort": "reasoning_effort",
    "temperature": "temperature",
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_completion_tokens",
}
_ENDS = (ResponseCompletedEvent, ResponseIncompleteEvent, ResponseFailedEvent)


class OpenAIClient(ProviderClient):
    """A model behind one of the APIs, at OpenAI's own address unless a base URL is given."""

    provider, sdk = PROVIDER, openai.OpenAI
    errors, status_errors = openai.OpenAIError, openai.APIStatusError
    refusable = _REFUSABLE

    def _fault(self, error: Any, request: Request) -> MechaRuleError:
        match error:
            case openai.APIStatusError():
                return status_fault(PROVIDER, error.status_code, error.response.headers, error.message)
            case openai.APIConnectionError():
                return unreachable(PROVIDER, str(error) or type(error).__name__)
            case openai.LengthFinishReasonError():
                return cut_short(request.max_tokens, chat_usage(error.completion))
            case openai.ContentFilterFinishReasonError():
                return ReplyRefused("the provider's filter stopped the reply; ask another way")
            case openai.APIError():
                return TransientFault(f"{PROVIDER} failed while replying; ask again: {scrub(error.message)}")
        return ProviderFault(f"{PROVIDER}: {scrub(str(error))}")


def chat_usage(completion: Any) -> Usage:
    """Tokens of a chat completion; none where the server does not say."""
    used = completion.usage
    return Usage(input_tokens=used.prompt_tokens, output_tokens=used.completion_tokens) if used else Usage()


class OpenAIModel(OpenAIClient):
    """A model behind `OPENAI_API_KEY`."""

    def _read(self, request: Request, arguments: dict[str, Any], on_text: OnText) -> Reply:
        response = None
        with self._client.responses.stream(**arguments) as stream:
            for event in stream:
                if event.type == "response.output_text.delta":
                    on_text(event.delta)
                    continue
                on_text("")
                if isinstance(event, _ENDS):
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
            "include": ["reasoning.encrypted_content"],
        }
        if self._effort is not None:
            arguments["reasoning"] = {"effort": self._effort}
        if request.temperature is not None:
            arguments["temperature"] = request.temperature
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
    if turn.kept:
        return [dict(item) for item in turn.kept]
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
        kept=_kept(response.output),
    )


def _kept(items: Any) -> tuple[dict[str, Any], ...]:
    """The items of a reply that was reasoned about, as they came; nothing where the reasoning cannot be sent back."""
    reasoned = [item for item in items if item.type == "reasoning"]
    if not reasoned or not all(item.encrypted_content for item in reasoned):
        return ()
    return tuple(_as_sent(item) for item in items)


def _as_sent(item: Any) -> dict[str, Any]:
    """An item without what the SDK read into it."""
    sent: dict[str, Any] = item.to_dict(mode="json", exclude_none=True)
    sent.pop("parsed_arguments", None)
    for part in sent.get("content", ()):
        part.pop("parsed", None)
    return sent
