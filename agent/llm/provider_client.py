"""What the clients of the providers' own SDKs share: refused parameters are left out, an SDK's errors become faults."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import httpx2
from pydantic import ValidationError

from agent.llm.faults import MechaRuleError, ReplyUnusable, scrub, unreachable
from agent.llm.parsing import unusable
from agent.llm.protocol import OnText, Reply, Request, unheard
from agent.llm.refused_parameters import Refusable


class ProviderClient(ABC):
    """A model behind an SDK: one streamed reply a call, no retries of its own."""

    provider: ClassVar[str]
    sdk: ClassVar[Any]
    """The class of its client."""
    errors: ClassVar[Any]
    """The root of its errors."""
    status_errors: ClassVar[Any]
    """Those that carry an HTTP status."""
    refusable: ClassVar[Mapping[str, str]]
    """Parameters that not every model takes, each with the words by which an error names it."""

    def __init__(
        self,
        model: str,
        key: str,
        *,
        base_url: str | None = None,
        timeout: float = 120.0,
        effort: str | None = None,
    ) -> None:
        self.name = f"{self.provider}/{model}"
        self._model = model
        self._effort = effort
        self._refusable = Refusable(self.refusable)
        self._client = self.sdk(api_key=key, base_url=base_url, timeout=timeout, max_retries=0)

    def complete(self, request: Request, on_text: OnText = unheard) -> Reply:
        """One streamed reply. Raises a fault of `agent.llm.faults`."""
        try:
            return self._taken(request, on_text)
        except ValidationError as error:
            raise unusable(request.schema, error) from None
        except self.errors as error:
            raise self._fault(error, request) from None
        except httpx2.HTTPError as error:
            raise unreachable(self.provider, str(error) or type(error).__name__) from None
        except (ValueError, RuntimeError) as error:
            raise ReplyUnusable(
                f"{self.provider} sent a reply that does not read: {scrub(str(error))}"
            ) from None

    def _taken(self, request: Request, on_text: OnText) -> Reply:
        """The reply, without the parameters that the server refuses by name."""
        while True:
            arguments = self._refusable.among(self._arguments(request))
            try:
                return self._read(request, arguments, on_text)
            except self.status_errors as error:
                if not self._refusable.is_refused(error.status_code, error.message, arguments):
                    raise

    @abstractmethod
    def _arguments(self, request: Request) -> dict[str, Any]:
        """What the API is sent."""

    @abstractmethod
    def _read(self, request: Request, arguments: dict[str, Any], on_text: OnText) -> Reply:
        """The reply, its text told as it comes."""

    @abstractmethod
    def _fault(self, error: Any, request: Request) -> MechaRuleError:
        """What an error of the SDK is."""
