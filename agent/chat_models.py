"""The chat model that is asked, by its name: LangChain's models over the providers' SDKs, or a script.

A GGUF file runs behind llama.cpp's own server on the loopback under a key that is drawn here; vLLM, Ollama and others
are reached by `OPENAI_BASE_URL`. Each model tries a request again that may work later, at most twice.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr

from agent.choice import LOCAL, NONE, Choice
from agent.model_faults import ModelFault, scrub
from mecharule_ops.errors import UsageError
from mecharule_ops.loading.fetch import GGUF, gguf_file
from mecharule_ops.plain_text import typed_path

SECONDS = 120.0
"""A request may take."""
RETRIES = 2
MOST_WRITTEN = 8192
"""Tokens of a reply, with what a model thinks before it."""
CONTEXT = 16384
"""Tokens of prompt and reply together of a model in a file."""


def chat_model(choice: Choice, environment: Mapping[str, str] = os.environ) -> BaseChatModel | None:
    """The chosen model, None for `none`; loads the provider's SDK. Raises `UsageError`, `ModelFault`."""
    if choice.spec == NONE:
        return None
    if choice.spec.startswith("mock:"):
        from agent.scripted import ScriptedModel

        return ScriptedModel.of(Path(choice.spec.removeprefix("mock:")))
    provider, _, model = choice.spec.partition("/")
    patient: dict[str, Any] = {"max_retries": RETRIES, "timeout": SECONDS, "max_tokens": MOST_WRITTEN}
    if provider == "anthropic":
        from langchain_anthropic import ChatAnthropic

        if choice.effort:
            patient |= {"thinking": {"type": "adaptive"}, "reasoning_effort": choice.effort}
        if choice.base_url:
            patient["base_url"] = choice.base_url
        return ChatAnthropic(model_name=model, api_key=SecretStr(environment["ANTHROPIC_API_KEY"]), **patient)
    from langchain_openai import ChatOpenAI

    address, key = choice.base_url, environment.get("OPENAI_API_KEY", "unused")
    if provider == LOCAL:
        path = gguf_file() if model == GGUF else typed_path(model)
        model, (address, key) = path.stem, _served(path)
    return ChatOpenAI(
        model=model,
        api_key=SecretStr(key),
        base_url=address,
        reasoning_effort=choice.effort,
        # A server of the OpenAI kind knows chat completions; the provider itself keeps thinking between responses.
        use_responses_api=address is None,
        stream_usage=True,
        **patient,
    )


@lru_cache(maxsize=1)
def _served(path: Path) -> tuple[str, str]:
    """The address and the key of llama.cpp's server over a file. Raises `UsageError`, `ModelFault`."""
    if not path.is_file():
        raise UsageError(
            f"expected a GGUF file after {LOCAL}/, got {path}; `mecharule models fetch {GGUF}` fetches one"
        )
    try:
        import xllamacpp
    except ImportError as error:
        raise ModelFault(
            f"expected the package xllamacpp for a model in a file, got {error}; pip install 'mecharule[local]'"
        ) from None
    key, settings = secrets.token_hex(), xllamacpp.CommonParams()
    settings.model.path = str(path)
    settings.n_ctx = CONTEXT
    settings.n_parallel = 1
    settings.warmup = False
    settings.verbosity = -1
    settings.use_jinja = True
    settings.hostname = "127.0.0.1"
    settings.port = 0
    settings.cpuparams.n_threads = os.cpu_count() or 1
    settings.api_keys = [key]
    try:
        server = xllamacpp.Server(settings)
    except (RuntimeError, ValueError, OSError) as error:
        raise ModelFault(f"{LOCAL} could not load {path.name}: {scrub(str(error))}") from None
    _SERVERS.append(server)
    return f"{server.listening_address}/v1", key


_SERVERS: list[Any] = []
"""Kept alive as long as the process."""
