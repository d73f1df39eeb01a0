"""A scripted chat model, `mock:FILE`: replies chosen by what the conversation holds, never by the order of calls.

The file is JSON. The first reply that fits is given; a step that runs twice gets the same reply twice:

    {"replies": [
      {"last": ["why does m4.1234 flip"],
       "calls": [{"name": "why", "arguments": {"neuron": "m4.1234"}}]},
      {"when": ["why does m4.1234 flip", "[tool]"], "find": "\\[(?P<id>f\\d+)\\]",
       "text": "Ablating m4.1234 flips 28 of 64 [$id]."},
      {"when": ["vocabulary"], "unless": ["carry(a, b)"], "json": {"predicates": ["carry(a, b)"]}},
      {"when": ["give up"], "fault": "refusal"}
    ]}

`when`: texts that all occur in the conversation (every message, begun by `[system]`, `[human]`, `[ai]` or `[tool]`);
`last`: texts that all occur in the last message; `unless`: texts of which none occurs. Of a reply without conditions
every conversation fits. `find` is a regular expression; the named groups of its first match in the last message, else
of its last one before, replace `$name` in the reply, and without a match the reply does not fit. A reply is `text`,
`json` (for a step that asks for a schema), `calls`, or a `fault`: key, rate-limit, server, timeout, cut, refusal.
Tokens are counted as words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any, Literal

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableLambda
from pydantic import BaseModel, ConfigDict, ValidationError

from agent.model_faults import ModelFault
from mecharule_ops.errors import UsageError, misfit

FAULTS: Mapping[str, str] = {
    "key": "mock refused the key (HTTP 401); set a valid key",
    "rate-limit": "mock limits the rate (HTTP 429); wait and ask again",
    "server": "mock failed (HTTP 500); ask again later",
    "timeout": "mock timed out; ask again later",
    "cut": "mock ended its reply before it was whole; ask again",
    "refusal": "the model declined to answer; ask another way",
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
    fault: Literal["key", "rate-limit", "server", "timeout", "cut", "refusal"] | None = None


class _Script(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    replies: tuple[_Scripted, ...]


class ScriptedModel(BaseChatModel):
    """A scripted model. Raises `UsageError` when its file cannot be read, `ModelFault` where no reply fits."""

    path: Path
    replies: tuple[Any, ...] = ()

    @classmethod
    def of(cls, path: Path) -> ScriptedModel:
        """The model of a file."""
        return cls(path=path, replies=_read(path).replies)

    @property
    def _llm_type(self) -> str:
        return "mock"

    def bind_tools(self, tools: Sequence[Any], **settings: Any) -> Runnable[Any, AIMessage]:
        """Itself: a script says which tools it calls."""
        return self

    def with_structured_output(self, schema: Any, **settings: Any) -> Runnable[Any, Any]:
        """The reply's `json` as the schema reads it; None, or an error, where it does not."""

        def read(message: AIMessage) -> Any:
            try:
                parsed = schema.model_validate_json(str(message.text))
            except ValidationError:
                if not settings.get("include_raw"):
                    raise
                parsed = None
            return {"raw": message, "parsed": parsed} if settings.get("include_raw") else parsed

        return self | RunnableLambda(read)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **settings: Any,
    ) -> ChatResult:
        told = "\n".join(f"[{one.type}] {one.text}" for one in messages)
        last = f"[{messages[-1].type}] {messages[-1].text}"
        for scripted in self.replies:
            if (found := _fits(scripted, told, last)) is not None:
                return ChatResult(
                    generations=[ChatGeneration(message=_reply(scripted, found, messages, told))]
                )
        raise ModelFault(f"mock:{self.path} has no reply for {last[:60]!r}; add one whose texts occur there")


def _fits(scripted: _Scripted, told: str, last: str) -> Mapping[str, str] | None:
    """What `find` found when the reply fits, else None."""
    fits = (
        all(text in told for text in scripted.when)
        and all(text in last for text in scripted.last)
        and not any(text in told for text in scripted.unless)
    )
    if not fits or scripted.find is None:
        return {} if fits else None
    match = re.search(scripted.find, last) or next(reversed(list(re.finditer(scripted.find, told))), None)
    return match.groupdict(default="") if match else None


def _reply(
    scripted: _Scripted, found: Mapping[str, str], messages: Sequence[BaseMessage], told: str
) -> AIMessage:
    if scripted.fault is not None:
        raise ModelFault(FAULTS[scripted.fault])
    text = scripted.text if scripted.json_ is None else json.dumps(scripted.json_, ensure_ascii=False)
    text = Template(text).safe_substitute(found)
    calls = [
        {
            "id": f"call-{len(messages)}-{place}",
            "name": call.name,
            "args": json.loads(Template(json.dumps(call.arguments)).safe_substitute(found)),
        }
        for place, call in enumerate(scripted.calls)
    ]
    read, written = len(told.split()), len(text.split())
    usage = UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)
    return AIMessage(content=text, tool_calls=calls, usage_metadata=usage)


def _read(path: Path) -> _Script:
    try:
        script = _Script.model_validate_json(path.read_text(encoding="utf-8"))
        for scripted in script.replies:
            re.compile(scripted.find or "")
    except ValidationError as error:
        wrong: object = misfit(error, "the file")
    except (OSError, ValueError, re.error) as error:
        wrong = getattr(error, "strerror", None) or error
    else:
        return script
    raise UsageError(f"expected a script of a mock model in {path}, got {wrong}")
