"""The chat model that is asked: which one, what makes it, and what can go wrong with it in a line.

Chosen by flag, then environment, then config file, then none; with the reason in words. `MECHARULE_LLM` names a model
as `--llm` does. The config file is `config.json` in the user's config folder (or what `MECHARULE_CONFIG` names), like

    {"llm": "openai/qwen3", "base_url": "http://localhost:8080/v1", "price": [0.0, 0.0]}

with the price in dollars a million input and output tokens; "budget" bounds the tokens of a run or a question as
`--llm-budget` does. Keys are read from `ANTHROPIC_API_KEY` and `OPENAI_API_KEY` only. A model that was asked for by
flag and has no key is an error; one that comes from the environment or the config file gives way to none, and says so.

Models are LangChain's over the providers' SDKs, or a script. A GGUF file runs behind llama.cpp's own server on the
loopback under a key that is drawn here; vLLM, Ollama and others are reached by `OPENAI_BASE_URL`. Each model tries a
request again that may work later, at most twice.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from platformdirs import user_config_dir
from pydantic import BaseModel, ConfigDict, NonNegativeFloat, PositiveInt, SecretStr, ValidationError

from mecharule_ops import errors, events
from mecharule_ops.plain_text import typed_path, user_folder

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

Reply = TypeVar("Reply", bound=BaseModel)
LOCAL = "local"
NONE = "none"
MOST_TOKENS = 1_000_000
"""Read and written together, where nobody names a budget."""
_SPEC = re.compile(r"(none)|(mock):.+|(local|anthropic|openai)/.+")
SECONDS = 120.0
"""A request may take; five times as many where the model runs here."""
RETRIES = 2
TOKENS: Final = ("input_tokens", "output_tokens")
MOST_WRITTEN = 8192
"""Tokens of a reply, with what a model thinks before it."""
CONTEXT = 16384
"""Tokens of prompt and reply together of a model in a file."""
_SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)\Z")
_SECRET_SHAPE = re.compile(r"\b(?:sk|pk|key)-[A-Za-z0-9_\-*.]{6,}|(?i:bearer)\s+\S+")
_LONGEST = 200
_TOLD = 499
"""Stands for an error that came with HTTP 200."""
_AROUND = re.compile(r"\A.*</think>|<\|im_end\|>.*\Z|```(?:json)?", re.DOTALL)
"""What servers write around JSON: thoughts, the end of a turn, fences."""
_STREAM_STATUS = {"rate_limit_error": 429, "authentication_error": 401, "permission_error": 403}
"""Of an error event inside a stream that began well, and so carries HTTP 200."""


def scrub(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """One line of at most 200 characters with every key of the environment, and whatever looks like one, cut out."""
    for name, value in environment.items():
        if _SECRET_NAME.search(name) and len(value) >= 6:
            text = text.replace(value, "[key]")
    line = " ".join(_SECRET_SHAPE.sub("[key]", text).split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def fault_of(error: Exception, provider: str) -> errors.ModelUnavailable:
    """The fault that an SDK, or the library that wraps it, raised."""
    if isinstance(error, errors.ModelUnavailable):
        return error
    kind, status = type(error).__name__, getattr(error, "status_code", None)
    if status == 200:
        status = _STREAM_STATUS.get(str(getattr(error, "type", "")), 500)
    match status:
        case None if "Connection" in kind or "Timeout" in kind:
            what = "did not answer; check the network and the base URL"
        case None:
            what = f"gave no reply that reads ({kind}); ask again"
        case _ if status == _TOLD:
            what = "answered with an error (HTTP 200)"
            error = Exception(getattr(error, "body", None) or error)
        case 401 | 403:
            what = f"refused the key (HTTP {status}); set a valid {provider.upper()}_API_KEY"
        case 429:
            what = "limits the rate (HTTP 429); wait and ask again"
        case _ if status >= 500 or status in (408, 409):
            what = f"failed (HTTP {status}); ask again later"
        case _:
            what = f"rejected the request (HTTP {status}); check the model's name"
    return errors.ModelUnavailable(f"{provider} {what}: {scrub(str(error) or kind)}")


def used_by(error: Exception) -> dict[str, int]:
    """The tokens of a reply that an SDK could not read; none where none came or it does not say."""
    try:
        usage = error.response.json()["usage"]  # type: ignore[attr-defined]
        named = (("input_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens"))
        return {name: int(usage.get(name) or usage[other]) for name, other in named}
    except (AttributeError, LookupError, TypeError, ValueError):
        return {}


def said_in(error: Exception, schema: type[Reply]) -> Reply | None:
    """The JSON of a reply that an SDK could not read for what stands around it; None where there is none."""
    with suppress(AttributeError, LookupError, TypeError, ValueError):
        text = error.response.json()["choices"][0]["message"]["content"]  # type: ignore[attr-defined]
        return schema.model_validate_json(_AROUND.sub("", text))
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The model to ask and why it is this one."""

    spec: str
    """`none`, `mock:FILE`, `local/FILE.gguf`, `anthropic/MODEL` or `openai/MODEL`."""
    why: str
    base_url: str | None = None
    price: tuple[float, float] | None = None
    """Dollars a million tokens read and written, as the user gives them: prices change too often to be kept here."""
    most_tokens: int = MOST_TOKENS
    """Read and written together, for one run or question."""

    @property
    def short(self) -> str:
        """The name without the folders of a file."""
        kind, _, rest = self.spec.partition("/")
        return f"{kind}/{Path(rest).name}" if kind == LOCAL else self.spec

    @property
    def provider(self) -> str:
        """Who is asked: `none`, `mock`, `local`, `anthropic` or `openai`."""
        return provider_of(self.spec)

    def dollars(self, read: int, written: int) -> float | None:
        """What so many tokens cost; None where no price is known."""
        return None if self.price is None else (self.price[0] * read + self.price[1] * written) / 1e6

    def told(self, purpose: str, text: str, used: Mapping[str, int], *, ok: bool) -> events.LlmMessage:
        """One request and what came of it, as an event."""
        tokens = {name: used.get(name, 0) for name in TOKENS}
        return events.LlmMessage(model=self.short, purpose=purpose, text=text, ok=ok, **tokens)

    def __str__(self) -> str:
        return f"LLM: {events.OFFLINE if self.spec == NONE else self.short}: {self.why}"


class _Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    llm: str | None = None
    base_url: str | None = None
    price: tuple[NonNegativeFloat, NonNegativeFloat] | None = None
    budget: PositiveInt | None = None


def choose(
    flag: str | None = None, environment: Mapping[str, str] = os.environ, budget: int | None = None
) -> Choice:
    """The model to ask and for how many tokens. Raises `UsageError` on a name or config file that does not read.

    Raises `ModelUnavailable` when the flag names a provider whose key is not set, or a file that is not there.
    """
    path = user_folder("MECHARULE_CONFIG", lambda name: f"{user_config_dir(name)}/config.json", environment)
    config = _config(path)
    idle = next((name for name in ("ANTHROPIC", "OPENAI") if environment.get(f"{name}_API_KEY")), "")
    nothing = f"{idle}_API_KEY is set but no model is named; use --llm {idle.lower()}/MODEL or MECHARULE_LLM"
    sources = [
        (flag, "chosen by --llm"),
        (environment.get("MECHARULE_LLM"), "chosen by MECHARULE_LLM"),
        (config.llm, f"chosen by {path.name}"),
        (NONE, nothing if idle else "no model is named by --llm, MECHARULE_LLM or the config file"),
    ]
    spec, why = next((name, why) for name, why in sources if name)
    provider = provider_of(spec).upper()
    url = environment.get(f"{provider}_BASE_URL") or (config.base_url if provider == "OPENAI" else None)
    # A server at a base URL of the OpenAI kind may need no key.
    has_key = environment.get(f"{provider}_API_KEY") or (provider == "OPENAI" and url)
    file, missing = spec.partition("/")[2], ""
    if provider in ("ANTHROPIC", "OPENAI") and not has_key:
        missing = f"{provider}_API_KEY is not set"
    elif provider == LOCAL.upper() and not typed_path(file).is_file():
        missing = f"{file} is no file on this machine"
    if missing and spec == flag:
        raise errors.ModelUnavailable(f"{missing}; set another, or use --llm none")
    if missing:
        return Choice(spec=NONE, why=f"{spec} {why}, but {missing}")
    most = budget or config.budget or MOST_TOKENS
    return Choice(spec=spec, why=why, base_url=url, price=config.price, most_tokens=most)


def provider_of(spec: str) -> str:
    """`none`, `mock`, `local`, `anthropic` or `openai`. Raises `UsageError` on another name."""
    if (found := _SPEC.fullmatch(spec)) is None:
        raise errors.UsageError(
            f"expected none, mock:FILE, local/FILE.gguf, anthropic/MODEL or openai/MODEL, got {spec!r}"
        )
    return found[found.lastindex or 0]


def _config(path: Path) -> _Config:
    """What the file says. Raises `UsageError`."""
    wanted = "expected llm, base_url, price and budget (keys come from the environment only)"
    try:
        return _Config.model_validate_json(path.read_text(encoding="utf-8")) if path.exists() else _Config()
    except (OSError, ValueError) as error:
        wrong = errors.misfit(error, "the file") if isinstance(error, ValidationError) else error
        raise errors.UsageError(f"{wanted} in {path}, got {wrong}") from None


def chat_model(choice: Choice, environment: Mapping[str, str] = os.environ) -> BaseChatModel:
    """The chosen model, which is not `none`; loads the provider's SDK. Raises `UsageError`, `ModelUnavailable`."""
    if choice.spec.startswith("mock:"):
        from agent.scripted import ScriptedModel

        return ScriptedModel.of(Path(choice.spec.removeprefix("mock:")))
    provider, _, model = choice.spec.partition("/")
    seconds = SECONDS * 5 if provider == LOCAL else SECONDS
    patient: dict[str, Any] = {"max_retries": RETRIES, "timeout": seconds, "max_tokens": MOST_WRITTEN}
    try:
        if provider == "anthropic":
            from langchain_anthropic import ChatAnthropic

            patient |= {"base_url": choice.base_url} if choice.base_url else {}
            secret = SecretStr(environment["ANTHROPIC_API_KEY"])
            made = ChatAnthropic(model_name=model, api_key=secret, **patient)
            made._client._client.event_hooks = {"response": [_told]}
            made._async_client._client.event_hooks = {"response": [_told_async]}
            return made
        from langchain_openai import ChatOpenAI
        from openai import DefaultAsyncHttpxClient, DefaultHttpxClient
    except ImportError as error:
        raise errors.ModelUnavailable(
            f"expected a package for models of {provider} that imports, got {scrub(str(error))}; install it anew"
        ) from None
    address, key = choice.base_url, environment.get("OPENAI_API_KEY", "unused")
    if provider == LOCAL:
        path = typed_path(model)
        model, (address, key) = path.stem, _served(path)
    return ChatOpenAI(
        model=model,
        api_key=SecretStr(key),
        base_url=address,
        # A server of the OpenAI kind knows chat completions; the provider itself keeps thinking between responses.
        use_responses_api=address is None,
        stream_usage=True,
        stream_chunk_timeout=seconds,
        http_client=DefaultHttpxClient(event_hooks={"response": [_told]}),
        # Each question has an event loop of its own, on which no connection of another can be used.
        http_async_client=DefaultAsyncHttpxClient(event_hooks={"response": [_told_async]}),
        **patient,
    )


def _told(response: Any) -> None:
    """Marks an error that a server tells with HTTP 200, so that it is read as one."""
    if response.status_code == 200 and "json" in response.headers.get("content-type", ""):
        response.read()
        with suppress(ValueError):
            if isinstance(body := response.json(), dict) and body.get("error"):
                response.status_code = _TOLD


async def _told_async(response: Any) -> None:
    if "json" in response.headers.get("content-type", ""):
        await response.aread()
    _told(response)


@lru_cache(maxsize=1)
def _served(path: Path) -> tuple[str, str]:
    """The address and the key of llama.cpp's server over a file. Raises `ModelUnavailable`."""
    try:
        import xllamacpp
    except ImportError as error:
        raise errors.ModelUnavailable(
            f"expected the package xllamacpp for a model in a file, got {error}; pip install 'mecharule[local]'"
        ) from None
    key, settings = secrets.token_hex(), xllamacpp.CommonParams()
    settings.model.path, settings.cpuparams.n_threads = str(path), os.cpu_count() or 1
    own: dict[str, Any] = {"n_ctx": CONTEXT, "n_parallel": 1, "warmup": False, "verbosity": -1}
    own |= {"use_jinja": True, "hostnames": ["127.0.0.1"], "port": 0, "api_keys": [key]}
    for name, value in own.items():
        setattr(settings, name, value)
    try:
        server = xllamacpp.Server(settings)
    except (RuntimeError, ValueError, OSError) as error:
        raise errors.ModelUnavailable(f"{LOCAL} could not load {path.name}: {scrub(str(error))}") from None
    _SERVERS.append(server)
    return f"{server.listening_address}/v1", key


_SERVERS: list[Any] = []
"""Kept alive as long as the process."""
