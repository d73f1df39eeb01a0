"""Which model is asked: flag, then environment, then config file, then none; with the reason in words.

`MECHARULE_LLM` names a model as `--llm` does. The config file is `config.json` in the user's config folder (or
the file that `MECHARULE_CONFIG` names), for example

    {"llm": "openai/qwen3", "base_url": "http://localhost:8080/v1", "price": [0.0, 0.0]}

with the price in dollars a million input and output tokens (or `MECHARULE_LLM_PRICE=3,15`). `MECHARULE_LLM_BUDGET` and
"budget" bound the tokens of a run, a refinement or a question as `--llm-budget` does; `MECHARULE_LLM_EFFORT` and
"effort" say how much a model that thinks is to think. Keys are read from
`ANTHROPIC_API_KEY` and `OPENAI_API_KEY` only. A model that was asked for by flag and has no key is an error;
one that comes from the environment or the config file gives way to none, and says so.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_config_dir
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent.model_faults import ModelFault
from mecharule_ops.errors import UsageError, misfit
from mecharule_ops.events import OFFLINE
from mecharule_ops.plain_text import user_folder

PROVIDERS = ("anthropic", "openai")
LOCAL = "local"
NONE = "none"
MOST_TOKENS = 1_000_000
"""Read and written together, where nobody names a budget."""
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPrice:
    """Dollars a million tokens, as the user gives them: prices change too often to be kept here."""

    input: float
    output: float

    def cost(self, read: int, written: int) -> float:
        """Dollars."""
        return (self.input * read + self.output * written) / 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The model to ask and why it is this one."""

    spec: str
    """`none`, `mock:FILE`, `local/FILE.gguf`, `anthropic/MODEL` or `openai/MODEL`."""
    why: str
    base_url: str | None = None
    price: TokenPrice | None = None
    most_tokens: int = MOST_TOKENS
    """Read and written together, for one run, refinement or question."""
    effort: str | None = None
    """How much a model that thinks is to think; None leaves it to the model."""

    @property
    def short(self) -> str:
        """The name without the folders of a file."""
        kind, _, rest = self.spec.partition("/")
        return f"{kind}/{Path(rest).name}" if kind == LOCAL else self.spec

    @property
    def provider(self) -> str:
        """Who is asked: `none`, `mock`, `local`, `anthropic` or `openai`."""
        return provider_of(self.spec)

    @property
    def is_small(self) -> bool:
        """Whether it is taken for a model of a small context: a file, or one at a base URL of the OpenAI kind."""
        kind, _, _ = self.spec.partition("/")
        return kind == LOCAL or (kind == "openai" and self.base_url is not None)

    @property
    def who(self) -> str:
        """Who answers, in a few words."""
        return OFFLINE if self.spec == NONE else self.short

    def __str__(self) -> str:
        return f"LLM: {self.who}: {self.why}"


class _Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    llm: str | None = None
    base_url: str | None = None
    price: tuple[float, float] | None = None
    budget: int | None = Field(default=None, gt=0)
    effort: str | None = None


def choose(
    flag: str | None = None, environment: Mapping[str, str] = os.environ, budget: int | None = None
) -> Choice:
    """The model to ask and for how many tokens. Raises `UsageError` on a name or config file that does not read.

    Raises `ModelFault` when the flag names a provider whose key is not set.
    """
    path = _config_path(environment)
    config = _config(path)
    sources = [
        (flag, "chosen by --llm"),
        (environment.get("MECHARULE_LLM"), "chosen by MECHARULE_LLM"),
        (config.llm, f"chosen by {path.name}"),
    ]
    spec, why = next(((name, why) for name, why in sources if name), (NONE, _nothing_chosen(environment)))
    provider = provider_of(spec)
    url = _base_url(provider, environment) or (config.base_url if provider == "openai" else None)
    if provider in PROVIDERS and not _has_key(provider, url, environment):
        missing = f"{provider.upper()}_API_KEY is not set"
        if spec == flag:
            raise ModelFault(f"{missing}; set it, or use --llm none")
        return Choice(spec=NONE, why=f"{spec} {why}, but {missing}")
    most = budget or _budget(environment) or config.budget or MOST_TOKENS
    return Choice(
        spec=spec,
        why=why,
        base_url=url,
        price=_price(environment, config),
        most_tokens=most,
        effort=_effort(environment.get("MECHARULE_LLM_EFFORT") or config.effort),
    )


def provider_of(spec: str) -> str:
    """`none`, `mock`, `local`, `anthropic` or `openai`. Raises `UsageError` on another name."""
    if spec == NONE:
        return NONE
    kind, colon, file = spec.partition(":")
    if kind == "mock" and colon and file:
        return kind
    provider, _, model = spec.partition("/")
    if provider in (*PROVIDERS, LOCAL) and model:
        return provider
    raise UsageError(
        f"expected none, mock:FILE, local/FILE.gguf, anthropic/MODEL or openai/MODEL, got {spec!r}"
    )


def _has_key(provider: str, url: str | None, environment: Mapping[str, str]) -> bool:
    """A server at a base URL of the OpenAI kind may need none."""
    return bool(environment.get(f"{provider.upper()}_API_KEY")) or (provider == "openai" and url is not None)


def _base_url(provider: str, environment: Mapping[str, str]) -> str | None:
    return environment.get(f"{provider.upper()}_BASE_URL") or None


def _nothing_chosen(environment: Mapping[str, str]) -> str:
    keys = [f"{name.upper()}_API_KEY" for name in PROVIDERS if environment.get(f"{name.upper()}_API_KEY")]
    if keys:
        provider = keys[0].removesuffix("_API_KEY").lower()
        return f"{keys[0]} is set but no model is named; use --llm {provider}/MODEL or MECHARULE_LLM"
    return "no model is named by --llm, MECHARULE_LLM or the config file"


def _config_path(environment: Mapping[str, str]) -> Path:
    return user_folder("MECHARULE_CONFIG", lambda name: f"{user_config_dir(name)}/config.json", environment)


def _config(path: Path) -> _Config:
    wanted = "expected llm, base_url, price, budget and effort (keys come from the environment only)"
    try:
        return _Config.model_validate_json(path.read_text(encoding="utf-8")) if path.exists() else _Config()
    except ValidationError as error:
        raise UsageError(f"{wanted} in {path}, got {misfit(error, 'the file')}") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{wanted} in {path}, got {error}") from error


def _budget(environment: Mapping[str, str]) -> int | None:
    told = environment.get("MECHARULE_LLM_BUDGET")
    if not told:
        return None
    if not told.isdecimal() or int(told) < 1:
        raise UsageError(f"expected a number of tokens from 1 on in MECHARULE_LLM_BUDGET, got {told!r}")
    return int(told)


def _effort(told: str | None) -> str | None:
    if told is None or told in EFFORTS:
        return told
    raise UsageError(f"expected an effort of {', '.join(EFFORTS)}, got {told!r}")


def _price(environment: Mapping[str, str], config: _Config) -> TokenPrice | None:
    told = environment.get("MECHARULE_LLM_PRICE")
    pair = config.price
    if told:
        numbers = [float(part) for part in told.split(",") if part.replace(".", "", 1).isdigit()]
        if len(numbers) != 2 or told.count(",") != 1:
            raise UsageError(
                f"expected dollars a million tokens such as 3,15 in MECHARULE_LLM_PRICE, got {told!r}"
            )
        pair = (numbers[0], numbers[1])
    return None if pair is None else TokenPrice(input=pair[0], output=pair[1])
