"""A scripted model, `mock:FILE`: replies chosen by what the prompt holds, never by the order of calls.

The file is JSON. The first reply that fits is given; a step that runs twice gets the same reply twice:

    {"replies": [
      {"last": ["why does m4.1234 flip"],
       "calls": [{"name": "why", "arguments": {"unit": "m4.1234"}}]},
      {"when": ["why does m4.1234 flip", "[tool]"], "find": "\\[c:(?P<id>[0-9a-f]+)\\]",
       "text": "Ablating m4.1234 flips 28/64 [c:$id]."},
      {"when": ["vocabulary"], "unless": ["carry(a, b)"], "json": {"predicates": ["carry(a, b)"]}},
      {"when": ["give up"], "fault": "refusal"}
    ]}

`when`: texts that all occur in the prompt (system text and every turn, each turn begun by `[user]`,
`[assistant]` or `[tool]`); `last`: texts that all occur in the last turn; `unless`: texts of which none occurs
in the prompt. Of a reply without conditions every prompt fits. `find` is a regular expression; the named
groups of its last match in the prompt replace `$name` in the reply, and without a match the reply does not
fit. A reply is `text`, `json` (for a step that asks for a schema), `calls`, or a `fault`: key, rate-limit,
server, timeout, cut, refusal, unusable. Tokens are counted as words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from agent.llm.faults import (
    MechaRuleError,
    ProviderFault,
    ReplyRefused,
    ReplyUnusable,
    TransientFault,
    cut_off,
    unreachable,
)
from agent.llm.parsing import parsed_as
from agent.llm.protocol import OnText, Reply, Request, ToolCall, Usage, unheard
from mecharule_ops.codec import canonical_json
from mecharule_ops.errors import UsageError, misfit

FAULTS: Mapping[str, MechaRuleError] = {
    "key": ProviderFault("mock refused the key (HTTP 401); set a valid key"),
    "rate-limit": TransientFault("mock limits the rate (HTTP 429, it asks for 1 s); wait and ask again", 1.0),
    "server": TransientFault("mock failed (HTTP 500); ask again later"),
    "timeout": unreachable("mock", "timed out"),
    "cut": cut_off("mock"),
    "refusal": ReplyRefused("the model declined to answer; ask another way"),
    "unusable": ReplyUnusable("expected a reply in the schema, got something else"),
}


class _Call(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    arguments: dict[str, Any] = {}


class _Scripted(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=lambda name: name.rstrip("_"))
    when: tuple[str, ...] = ()
    last: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    find: str | None = None
    text: str = ""
    json_: Any = None
    calls: tuple[_Call, ...] = ()
    fault: Literal["key", "rate-limit", "server", "timeout", "cut", "refusal", "unusable"] | None = None


class _Script(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    replies: tuple[_Scripted, ...]


class MockModel:
    """A scripted model. Raises `UsageError` when its file cannot be read."""

    def __init__(self, path: Path) -> None:
        self.name = f"mock:{path}"
        self._script = _read(path)

    def complete(self, request: Request, on_text: OnText = unheard) -> Reply:
        """The first reply that fits, or its fault; `ProviderFault` when none fits."""
        prompt, last = request.transcript(), request.turns[-1].text
        for scripted in self._script.replies:
            found = _fits(scripted, prompt, last)
            if found is not None:
                return _reply(scripted, found, request, on_text)
        raise ProviderFault(f"{self.name} has no reply for {last[:60]!r}; add one whose texts occur there")


def _fits(scripted: _Scripted, prompt: str, last: str) -> Mapping[str, str] | None:
    """What `find` found when the reply fits, else None."""
    fits = (
        all(text in prompt for text in scripted.when)
        and all(text in last for text in scripted.last)
        and not any(text in prompt for text in scripted.unless)
    )
    if not fits or scripted.find is None:
        return {} if fits else None
    matches = list(re.finditer(scripted.find, prompt))
    return matches[-1].groupdict(default="") if matches else None


def _reply(scripted: _Scripted, found: Mapping[str, str], request: Request, on_text: OnText) -> Reply:
    if scripted.fault is not None:
        raise FAULTS[scripted.fault]
    structured = None if scripted.json_ is None else canonical_json(_filled(scripted.json_, found))
    text = _filled(scripted.text, found) if structured is None else structured
    calls = tuple(
        ToolCall(
            id=f"call-{len(request.turns)}-{place}", name=call.name, arguments=_filled(call.arguments, found)
        )
        for place, call in enumerate(scripted.calls)
    )
    for word in re.findall(r"\S+\s*", text):
        on_text(word)
    spent = Usage(input_tokens=len(request.transcript().split()), output_tokens=len(text.split()))
    return Reply(
        text=text, calls=calls, parsed=None if calls else parsed_as(request.schema, text), usage=spent
    )


def _filled(value: Any, found: Mapping[str, str]) -> Any:
    """The value with `$name` replaced in every text inside it."""
    if isinstance(value, str):
        return Template(value).safe_substitute(found)
    if isinstance(value, dict):
        return {key: _filled(item, found) for key, item in value.items()}
    return [_filled(item, found) for item in value] if isinstance(value, list) else value


def _read(path: Path) -> _Script:
    try:
        script = _Script.model_validate_json(path.read_text(encoding="utf-8"))
        for scripted in script.replies:
            re.compile(scripted.find or "")
    except OSError as error:
        raise UsageError(f"expected a script of a mock model in {path}, got {error.strerror}") from error
    except ValidationError as error:
        wrong = misfit(error, "the file")
        raise UsageError(f"expected a script of a mock model in {path}, got {wrong}") from None
    except (ValueError, re.error) as error:
        raise UsageError(f"expected a script of a mock model in {path}, got {error}") from error
    return script
