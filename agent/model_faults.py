"""What can go wrong with a chat model, as one line that says what to do; keys are cut out of it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from mecharule_ops.errors import ModelUnavailable

_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)\Z")
_SECRET_SHAPE = re.compile(r"\b(?:sk|pk|key)-[A-Za-z0-9_\-*.]{6,}|(?i:bearer)\s+\S+")
_LONGEST = 200
_STREAM_STATUS = {"rate_limit_error": 429, "authentication_error": 401, "permission_error": 403}
"""Of an error event inside a stream that began well, and so carries HTTP 200."""


class ModelFault(ModelUnavailable):
    """The model cannot be used, or not now: a wrong key or name, a rate limit, no connection, no usable reply."""


def scrub(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """One line of at most 200 characters with every key of the environment, and whatever looks like one, cut out."""
    for name, value in environment.items():
        if _SECRET_NAME.search(name) and len(value) >= 6:
            text = text.replace(value, "[key]")
    line = " ".join(_SECRET_SHAPE.sub("[key]", text).split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def fault_of(error: Exception, provider: str) -> ModelFault:
    """The fault that an SDK, or the library that wraps it, raised."""
    if isinstance(error, ModelFault):
        return error
    said, status = scrub(str(error) or type(error).__name__), getattr(error, "status_code", None)
    if status == 200:
        status = _STREAM_STATUS.get(str(getattr(error, "type", "")), 500)
    if status in (401, 403):
        variable = f"{provider.upper()}_API_KEY"
        return ModelFault(f"{provider} refused the key (HTTP {status}); set a valid {variable}: {said}")
    if status == 429:
        return ModelFault(f"{provider} limits the rate (HTTP 429); wait and ask again: {said}")
    if status is not None and (status >= 500 or status in (408, 409)):
        return ModelFault(f"{provider} failed (HTTP {status}); ask again later: {said}")
    if status is not None:
        return ModelFault(f"{provider} rejected the request (HTTP {status}); check the model's name: {said}")
    if "Connection" in type(error).__name__ or "Timeout" in type(error).__name__:
        return ModelFault(f"{provider} did not answer; check the network and the base URL: {said}")
    return ModelFault(f"{provider} gave no reply that reads ({type(error).__name__}); ask again: {said}")
