"""Anthropic's Messages API through its own SDK, streamed; one reply a call, no retries of its own.

A stream that ends without its final event is a cut reply: a clean end of the connection says nothing. A reply with
thinking goes back block for block in the next request, as the API wants it between tool calls. What was read before is
cached; a temperature the SDK does not take.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import anthropic
import httpx2

from agent.llm.faults import (
    MechaRuleError,
    ProviderFault,
    ReplyRefused,
    cut_off,
    cut_short,
    scrub,
    status_fault,
    unreachable,
)
from agent.llm.parsing import arguments_of, parsed_as
from agent.llm.protocol import OnText, Reply, Request, ToolCall, Turn, Usage
from agent.llm.provider_client import ProviderClient

PROVIDER = "anthropic"
_THINKING = ("thinking", "redacted_thinking")


class AnthropicModel(ProviderClient):
    """A model behind `ANTHROPIC_API_KEY`."""

    provider, sdk = PROVIDER, anthropic.Anthropic
    errors, status_errors = anthropic.AnthropicError, anthropic.APIStatusError
    refusable: ClassVar[Mapping[str, str]] = {
        "cache_control": "cache_control",
        "output_config": "output_config|effort",
        "thinking": "thinking",
    }

    def _fault(self, error: Any, request: Request) -> MechaRuleError:
        if isinstance(error, anthropic.APIStatusError):
            return _status(error)
        if isinstance(error, anthropic.APIConnectionError):
            return unreachable(PROVIDER, str(error) or type(error).__name__)
        return ProviderFault(f"{PROVIDER}: {scrub(str(error))}")

    def _read(self, request: Request, arguments: dict[str, Any], on_text: OnText) -> Reply:
        message, whole = None, False
        with self._client.messages.stream(**arguments) as stream:
            for event in stream:
                if event.type == "text":
                    on_text(event.text)
                elif event.type == "thinking":
                    on_text("")
                elif event.type == "message_stop":
                    whole, message = True, event.message
        if not whole or message is None:
            raise cut_off(PROVIDER)
        return _reply(message, request)

    def _arguments(self, request: Request) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "model": self._model,
            "max_tokens": request.max_tokens,
            "system": request.system,
            "messages": _messages(request.turns),
            "cache_control": {"type": "ephemeral"},
        }
        if self._effort is not None:
            arguments |= {"thinking": {"type": "adaptive"}, "output_config": {"effort": self._effort}}
        if request.schema is not None:
            arguments["output_format"] = request.schema
        if request.tools:
            arguments["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": dict(tool.schema)}
                for tool in request.tools
            ]
        return arguments


def _messages(turns: tuple[Turn, ...]) -> list[dict[str, Any]]:
    """The turns in the API's shape; results of one round of calls belong into one user message."""
    messages: list[dict[str, Any]] = []
    for turn in turns:
        role = "assistant" if turn.role == "assistant" else "user"
        blocks: list[dict[str, Any]]
        if turn.kept:
            messages.append({"role": role, "content": [dict(block) for block in turn.kept]})
            continue
        if turn.role == "tool":
            blocks = [{"type": "tool_result", "tool_use_id": turn.answers, "content": turn.text}]
        else:
            blocks = [{"type": "text", "text": turn.text}] if turn.text else []
        blocks += [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)}
            for call in turn.calls
        ]
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": blocks})
    return messages


def _reply(message: Any, request: Request) -> Reply:
    if message.stop_reason == "refusal":
        raise ReplyRefused("the model declined to answer; ask another way")
    told = message.usage
    read = (told.cache_read_input_tokens or 0) + (told.cache_creation_input_tokens or 0)
    usage = Usage(input_tokens=told.input_tokens + read, output_tokens=told.output_tokens)
    if message.stop_reason in ("max_tokens", "model_context_window_exceeded"):
        raise cut_short(request.max_tokens, usage)
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = tuple(
        ToolCall(id=block.id, name=block.name, arguments=arguments_of(block.name, block.input))
        for block in message.content
        if block.type == "tool_use"
    )
    return Reply(
        text=text,
        calls=calls,
        parsed=None if calls else parsed_as(request.schema, text),
        usage=usage,
        kept=_kept(message.content),
    )


def _kept(blocks: Any) -> tuple[dict[str, Any], ...]:
    """The blocks of a reply that holds thinking, as they came; nothing of any other, which its turn says whole."""
    if not any(block.type in _THINKING for block in blocks):
        return ()
    return tuple(block.to_dict(mode="json", exclude_none=True) for block in map(_as_sent, blocks))


def _as_sent(block: Any) -> Any:
    """A block without what the SDK read into it."""
    return block.model_copy(update={"parsed_output": None}) if hasattr(block, "parsed_output") else block


def _status(error: anthropic.APIStatusError) -> MechaRuleError:
    """An error event inside a stream that began well carries HTTP 200; its type says what it was."""
    status = error.status_code
    if status == httpx2.codes.OK:
        status = {"rate_limit_error": 429, "authentication_error": 401}.get(str(error.type), 500)
    return status_fault(PROVIDER, status, error.response.headers, error.api_message or str(error))
