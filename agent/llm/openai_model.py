"""OpenAI through its own SDK: what its two APIs share, and the Responses API; one streamed reply a call, no retries.

Both are needed: only the Responses API gives reasoning items back between tool calls, and local servers speak chat
completions (`openai_chat`). OpenAI caches what was read before by itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import openai
from openai.types.responses import ResponseCompletedEvent, ResponseFailedEvent, ResponseIncompleteEvent
from pydantic import ValidationError

from agent.llm.faults import (
    ProviderFault,
    ReplyRefused,
    ReplyUnusable,
    TransientFault,
    cut_off,
    cut_short,
    scrub,
    status_fault,
    unreachable,
)
from agent.llm.parsing import arguments_of, parsed_as, unusable
from agent.llm.protocol import OnText, Reply, Request, ToolCall, Turn, Usage, unheard
from agent.llm.refused_parameters import Refusable
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


class OpenAIClient(ABC):
    """A model behind one of the APIs, at OpenAI's own address unless a base URL is given."""

    def __init__(
        self,
        model: str,
        key: str,
        *,
        base_url: str | None = None,
        timeout: float = 120.0,
        effort: str | None = None,
    ) -> None:
        self.name = f"{PROVIDER}/{model}"
        self._model = model
        self._effort = effort
        self._refusable = Refusable(_REFUSABLE)
        self._client = openai.OpenAI(api_key=key, base_url=base_url, timeout=timeout, max_retries=0)

    def complete(self, request: Request, on_text: OnText = unheard) -> Reply:
        """One streamed reply. Raises a fault of `agent.llm.faults`."""
        with _faults(request):
            while True:
                arguments = self._refusable.among(self._arguments(request))
                try:
                    return self._read(request, arguments, on_text)
                except openai.APIStatusError as error:
                    if not self._refusable.is_refused(error.status_code, error.message, arguments):
                        raise

    @abstractmethod
    def _arguments(self, request: Request) -> dict[str, Any]:
        """What the API is sent."""

    @abstractmethod
    def _read(self, request: Request, arguments: dict[str, Any], on_text: OnText) -> Reply:
        """The reply, its text told as it comes."""


@contextmanager
def _faults(request: Request) -> Iterator[None]:
    """Turns whatever the SDK raises inside the block into a fault."""
    try:
        yield
    except ValidationError as error:
        raise unusable(request.schema, error) from None
    except openai.APIStatusError as error:
        raise status_fault(PROVIDER, error.status_code, error.response.headers, error.message) from None
    except (openai.APIConnectionError, httpx2.HTTPError) as error:
        raise unreachable(PROVIDER, str(error) or type(error).__name__) from None
    except openai.LengthFinishReasonError as error:
        raise cut_short(request.max_tokens, chat_usage(error.completion)) from None
    except openai.ContentFilterFinishReasonError:
        raise ReplyRefused("the provider's filter stopped the reply; ask another way") from None
    except openai.APIError as error:
        raise TransientFault(f"{PROVIDER} failed while replying; ask again: {scrub(error.message)}") from None
    except openai.OpenAIError as error:
        raise ProviderFault(f"{PROVIDER}: {scrub(str(error))}") from None
    except (ValueError, RuntimeError) as error:
        raise ReplyUnusable(f"{PROVIDER} sent a reply that does not read: {scrub(str(error))}") from None


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
