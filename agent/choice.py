"""Which model is asked: flag, then environment, then config file, then none; with the reason in words.

`MECHARULE_LLM` names a model as `--llm` does. The config file is `config.json` in the user's config folder (or
the file that `MECHARULE_CONFIG` names), for example

    {"llm": "openai/qwen3", "base_url": "http://localhost:8080/v1", "price": [0.0, 0.0]}

with the price in dollars a million input and output tokens; "budget" bounds the tokens of a run or a question as
`--llm-budget` does, "effort" says how much a model that thinks is to think. Keys are read from `ANTHROPIC_API_KEY` and
`OPENAI_API_KEY` only. A model that was asked for by flag and has no key is an error; one that comes from the
environment or the config file gives way to none, and says so.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from platformdirs import user_config_dir
from pydantic import BaseModel, ConfigDict, NonNegativeFloat, PositiveInt, ValidationError

from agent.model_faults import ModelFault
from mecharule_ops.errors import UsageError, misfit
from mecharule_ops.events import OFFLINE
from mecharule_ops.plain_text import user_folder

LOCAL = "local"
NONE = "none"
MOST_TOKENS = 1_000_000
"""Read and written together, where nobody names a budget."""
_SPEC = re.compile(r"(none)|(mock):.+|(local|anthropic|openai)/.+")


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
    def who(self) -> str:
        """Who answers, in a few words."""
        return OFFLINE if self.spec == NONE else self.short

    def dollars(self, read: int, written: int) -> float | None:
        """What so many tokens cost; None where no price is known."""
        return None if self.price is None else (self.price[0] * read + self.price[1] * written) / 1e6

    def __str__(self) -> str:
        return f"LLM: {self.who}: {self.why}"


class _Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    llm: str | None = None
    base_url: str | None = None
    price: tuple[NonNegativeFloat, NonNegativeFloat] | None = None
    budget: PositiveInt | None = None
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None


def choose(
    flag: str | None = None, environment: Mapping[str, str] = os.environ, budget: int | None = None
) -> Choice:
    """The model to ask and for how many tokens. Raises `UsageError` on a name or config file that does not read.

    Raises `ModelFault` when the flag names a provider whose key is not set.
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
    if provider in ("ANTHROPIC", "OPENAI") and not has_key:
        missing = f"{provider}_API_KEY is not set"
        if spec == flag:
            raise ModelFault(f"{missing}; set it, or use --llm none")
        return Choice(spec=NONE, why=f"{spec} {why}, but {missing}")
    most = budget or config.budget or MOST_TOKENS
    return Choice(
        spec=spec, why=why, base_url=url, price=config.price, most_tokens=most, effort=config.effort
    )


def provider_of(spec: str) -> str:
    """`none`, `mock`, `local`, `anthropic` or `openai`. Raises `UsageError` on another name."""
    if (found := _SPEC.fullmatch(spec)) is None:
        raise UsageError(
            f"expected none, mock:FILE, local/FILE.gguf, anthropic/MODEL or openai/MODEL, got {spec!r}"
        )
    return found[found.lastindex or 0]


def _config(path: Path) -> _Config:
    """What the file says. Raises `UsageError`."""
    wanted = "expected llm, base_url, price, budget and effort (keys come from the environment only)"
    try:
        return _Config.model_validate_json(path.read_text(encoding="utf-8")) if path.exists() else _Config()
    except ValidationError as error:
        raise UsageError(f"{wanted} in {path}, got {misfit(error, 'the file')}") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{wanted} in {path}, got {error}") from error
