"""OpenAI's two APIs: a client of the SDK, one streamed reply a call without retries, its failures as faults."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import openai
from pydantic import ValidationError

from agent.llm.faults import (
    ProviderFault,
    ReplyRefused,
    ReplyUnusable,
    TransientFault,
    cut_short,
    scrub,
    status_fault,
    unreachable,
)
from agent.llm.protocol import OnText, Reply, Request, Usage, unheard
from agent.llm.reading import unusable

PROVIDER = "openai"


class OpenAIClient(ABC):
    """A model behind one of the APIs, at OpenAI's own address unless a base URL is given."""

    def __init__(self, model: str, key: str, *, base_url: str | None = None, timeout: float = 120.0) -> None:
        self.name = f"{PROVIDER}/{model}"
        self._model = model
        self._client = openai.OpenAI(api_key=key, base_url=base_url, timeout=timeout, max_retries=0)

    def complete(self, request: Request, on_text: OnText = unheard) -> Reply:
        """One streamed reply. Raises a fault of `agent.llm.faults`."""
        with _faults(request):
            return self._read(request, on_text)

    @abstractmethod
    def _read(self, request: Request, on_text: OnText) -> Reply:
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
