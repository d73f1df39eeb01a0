"""What OpenAI's two APIs share: a client of the SDK and one streamed reply a call, without retries of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod

import openai

from agent.llm.openai_faults import PROVIDER, openai_faults
from agent.llm.protocol import OnText, Reply, Request, unheard


class OpenAIClient(ABC):
    """A model behind one of the APIs, at OpenAI's own address unless a base URL is given."""

    def __init__(self, model: str, key: str, *, base_url: str | None = None, timeout: float = 120.0) -> None:
        self.name = f"{PROVIDER}/{model}"
        self._model = model
        self._client = openai.OpenAI(api_key=key, base_url=base_url, timeout=timeout, max_retries=0)

    def complete(self, request: Request, on_text: OnText = unheard) -> Reply:
        """One streamed reply. Raises a fault of `agent.llm.faults`."""
        with openai_faults(request):
            return self._read(request, on_text)

    @abstractmethod
    def _read(self, request: Request, on_text: OnText) -> Reply:
        """The reply, its text told as it comes."""
