"""A scripted chat model, `mock:FILE`: replies chosen by what the conversation holds, never by the order of calls.

The file is JSON. The first reply that fits is given; a step that runs twice gets the same reply twice:

    {"replies": [
      {"when": ["why does m4.1234 flip"], "unless": ["[tool]"],
       "calls": [{"name": "why", "arguments": {"neuron": "m4.1234"}}]},
      {"when": ["why does m4.1234 flip", "[tool]"], "find": "\\[(?P<id>f\\d+)\\]",
       "text": "Ablating m4.1234 flips 28 of 64 [$id]."},
      {"when": ["vocabulary"], "unless": ["carry(a, b)"], "json": {"predicates": ["carry(a, b)"]}},
      {"when": ["give up"], "fault": "the model declined to answer"}
    ]}

`when`: texts that all occur in the conversation (every message, begun by `[system]`, `[human]`, `[ai]` or `[tool]`);
`unless`: texts of which none occurs. Of a reply without conditions every conversation fits. `find` is a regular
expression; the named groups of its first match in the latest message that has one replace `$name` in the reply, and
without a match the reply does not fit. A reply is `text`, `json` (for a step that asks for a schema), `calls`, or the
`fault` in its place. Tokens are counted as words.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from string import Template
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableLambda
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from mecharule_ops.errors import ModelUnavailable, UsageError, misfit


class Reply(BaseModel):
    """A reply and when it fits."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=lambda name: name.rstrip("_"))
    when: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    find: re.Pattern[str] | None = None
    text: str = ""
    json_: Any = None
    calls: tuple[dict[str, Any], ...] = ()
    fault: str = ""

    def found(self, told: Sequence[str]) -> Mapping[str, str] | None:
        """What `find` found when the reply fits, else None."""
        whole = "\n".join(told)
        if not all(text in whole for text in self.when) or any(text in whole for text in self.unless):
            return None
        if self.find is None:
            return {}
        match = next(filter(None, map(self.find.search, reversed(told))), None)
        return match and match.groupdict(default="")

    def message(self, found: Mapping[str, str], words: int, place: str) -> AIMessage:
        """The reply with what was found. Raises `ModelUnavailable` where it is one."""
        if self.fault:
            raise ModelUnavailable(self.fault)
        text = self.text if self.json_ is None else json.dumps(self.json_, ensure_ascii=False)
        text = Template(text).safe_substitute(found)
        calls = json.loads(Template(json.dumps(self.calls)).safe_substitute(found))
        written = len(text.split())
        return AIMessage(
            content=text,
            tool_calls=[
                {"id": f"call-{place}-{nth}", "name": call["name"], "args": call.get("arguments", {})}
                for nth, call in enumerate(calls)
            ],
            usage_metadata=UsageMetadata(
                input_tokens=words, output_tokens=written, total_tokens=words + written
            ),
        )


class ScriptedModel(BaseChatModel):
    """A scripted model. Raises `ModelUnavailable` where no reply fits."""

    path: Path
    replies: tuple[Reply, ...]

    @classmethod
    def of(cls, path: Path) -> "ScriptedModel":
        """The model of a file. Raises `UsageError` when it cannot be read."""
        try:
            return cls(path=path, replies=_SCRIPT.validate_json(path.read_text(encoding="utf-8"))["replies"])
        except ValidationError as error:
            wrong: object = misfit(error, "the file")
        except (OSError, ValueError) as error:
            wrong = getattr(error, "strerror", None) or error
        raise UsageError(f"expected a script of a mock model in {path}, got {wrong}")

    @property
    def _llm_type(self) -> str:
        return "mock"

    def bind_tools(self, tools: Sequence[Any], **settings: Any) -> Runnable[Any, AIMessage]:
        """Itself: a script says which tools it calls."""
        return self

    def with_structured_output(self, schema: Any, **settings: Any) -> Runnable[Any, Any]:
        """The reply, and its `json` as the schema reads it, None where it does not: always as `include_raw` asks."""

        def read(message: AIMessage) -> Any:
            with suppress(ValidationError):
                return {"raw": message, "parsed": schema.model_validate_json(str(message.text))}
            return {"raw": message, "parsed": None}

        return self | RunnableLambda(read)

    def _generate(self, messages: list[BaseMessage], *given: Any, **settings: Any) -> ChatResult:
        told = [f"[{one.type}] {one.text}" for one in messages]
        for reply in self.replies:
            if (found := reply.found(told)) is not None:
                message = reply.message(found, len(" ".join(told).split()), str(len(messages)))
                return ChatResult(generations=[ChatGeneration(message=message)])
        raise ModelUnavailable(
            f"mock:{self.path} has no reply for {told[-1][:60]!r}; add one whose texts occur there"
        )


_SCRIPT = TypeAdapter(dict[Literal["replies"], tuple[Reply, ...]])
