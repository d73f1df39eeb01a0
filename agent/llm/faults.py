"""What can go wrong with a provider, each as one line that says what to do; keys are scrubbed from all of them.

ModelUnavailable (exit 3)
└─ ProviderFault         the provider cannot be used: wrong key, wrong model, wrong request
   └─ TransientFault     it may work later: rate limit, server error, timeout, a stream cut off
MechaRuleError (exit 1)
├─ ReplyUnusable         no JSON, another shape: worth asking again
│  └─ ReplyCut           cut short: worth asking again with more room
├─ ReplyRefused          the model declined
└─ ReplyStopped          the person stopped it (exit 130)
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from agent.llm.protocol import Usage
from mecharule_ops.errors import MechaRuleError, ModelUnavailable

_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)\Z")
_SECRET_SHAPE = re.compile(r"\b(?:sk|pk|key)-[A-Za-z0-9_\-*.]{6,}|(?i:bearer)\s+\S+")
_LONGEST = 200
_RATE_LIMITED = 429
_TRANSIENT = {408, 409, _RATE_LIMITED}
_KEY_REFUSED = {401, 403}


class ProviderFault(ModelUnavailable):
    pass


class TransientFault(ProviderFault):
    """`retry_after` is the wait in seconds that the provider asked for; None when it named none."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ReplyUnusable(MechaRuleError):
    """`usage` is what the provider charged for it, as far as it says."""

    def __init__(self, message: str, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.usage = usage or Usage()


class ReplyCut(ReplyUnusable):
    """Longer than it was allowed to be."""


class ReplyRefused(MechaRuleError):
    pass


class ReplyStopped(MechaRuleError):
    exit_code = 130

    def __init__(self) -> None:
        super().__init__("the model was stopped")


def scrub(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """One line of at most 200 characters with every key of the environment, and whatever looks like one, cut out."""
    for name, value in environment.items():
        if _SECRET_NAME.search(name) and len(value) >= 6:
            text = text.replace(value, "[key]")
    line = " ".join(_SECRET_SHAPE.sub("[key]", text).split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def status_fault(provider: str, status: int, headers: Mapping[str, str], message: str) -> ProviderFault:
    """The fault of an HTTP status: a key or request to correct, or something to wait for."""
    said = scrub(message)
    if status in _KEY_REFUSED:
        variable = f"{provider.upper()}_API_KEY"
        return ProviderFault(f"{provider} refused the key (HTTP {status}); set a valid {variable}: {said}")
    if status == _RATE_LIMITED:
        wait = retry_after(headers)
        told = "" if wait is None else f", it asks for {wait:g} s"
        return TransientFault(
            f"{provider} limits the rate (HTTP 429{told}); wait and ask again: {said}", wait
        )
    if status in _TRANSIENT or status >= 500:
        return TransientFault(
            f"{provider} failed (HTTP {status}); ask again later: {said}", retry_after(headers)
        )
    return ProviderFault(f"{provider} rejected the request (HTTP {status}); check the model's name: {said}")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a `retry-after` header asks for; None without one, or when it names a date."""
    value = headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None


def cut_short(most: int, usage: Usage) -> ReplyCut:
    """The fault of a reply of more than `most` tokens, which is paid for all the same."""
    return ReplyCut(f"expected a reply of at most {most} tokens, got one cut short", usage)


def cut_off(provider: str) -> TransientFault:
    """The fault of a reply that ended before its end."""
    return TransientFault(f"{provider} cut the reply off before its end; ask again")


def unreachable(provider: str, message: str) -> TransientFault:
    """The fault of a connection that failed or timed out."""
    return TransientFault(f"{provider} did not answer; check the network and the base URL: {scrub(message)}")


def unasked(fault: MechaRuleError) -> str:
    """Why a question went on without a model."""
    return str(fault) if isinstance(fault, ReplyStopped) else f"the model gave no usable reply: {fault}"
