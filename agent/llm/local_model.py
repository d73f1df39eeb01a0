"""A GGUF file run in this process by llama.cpp, through the optional package `xllamacpp`: no server and no key.

Its replies are held to a grammar: where tools are offered, one of them with its arguments, of which `answer` is one;
where a schema is asked for, that schema. A model too weak to fill the shape well still cannot leave it.
The file is read when the first question is put and kept for the next, with what it has read of a prompt. llama.cpp
also listens on the loopback, for whoever has the key that is drawn here and told to nobody. It calls back with each
chunk and ends the reply when told so; what the listener raises it would swallow, so it is kept and raised later.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from agent.llm.calls import calls_in
from agent.llm.faults import ProviderFault, ReplyUnusable, cut_short, scrub
from agent.llm.parsing import parsed_as
from agent.llm.protocol import OnText, Reply, Request, ToolSpec, Turn, Usage, unheard
from mecharule_ops.codec import canonical_json
from mecharule_ops.errors import UsageError
from mecharule_ops.loading import gguf

PROVIDER = "local"
CONTEXT = 8192
"""Tokens of prompt and reply together."""
_MOST_WRITTEN = 1024
"""Tokens of a reply."""
_AT_ONCE = 128
"""Tokens of a prompt that are read before the listener is asked whether to go on."""
_MOST_ITEMS, _LONGEST_TEXT = 4, 100
"""Of a list, and characters of a text, where a schema is asked for."""
_SILENT = -1
_OPENING = re.compile(r'\{.*?"(?:sentence|missing)"\s*:\s*"', re.DOTALL)
_WHOLE = re.compile(r'(?:[^"\\]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*')


class LocalModel:
    """A model in a file. Raises `UsageError` when there is no such file."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise UsageError(
                f"expected a GGUF file after {PROVIDER}/, got {path}; `mecharule models fetch {gguf.NAME}` fetches one"
            )
        self.name = f"{PROVIDER}/{path.name}"
        self._path = path

    def complete(self, request: Request, on_text: OnText = unheard) -> Reply:
        """One reply, its words told as they come. Raises a fault of `agent.llm.faults`, and what the listener raises.

        The listener hears an empty piece every 128 tokens of the prompt, so that it can end a reply that has not begun.
        """
        stream = LocalStream(on_text=on_text if request.schema is None else lambda piece: on_text(""))
        try:
            _loaded(self._path).handle_chat_completions(_body(request), stream)
        except (RuntimeError, ValueError) as error:
            raise ReplyUnusable(f"{PROVIDER} could not reply: {scrub(str(error))}") from None
        if stream.stopped is not None:
            raise stream.stopped
        if stream.error is not None or not stream.finish:
            raise ProviderFault(f"{PROVIDER} could not reply: {scrub(json.dumps(stream.error, default=str))}")
        return _reply(stream, request)


@lru_cache(maxsize=1)
def _loaded(path: Path) -> Any:
    """The model of a file, the last one used. Raises `ProviderFault`."""
    try:
        import xllamacpp
    except ImportError as error:
        raise ProviderFault(
            f"expected the package xllamacpp for a model in this process, got {error}; "
            "pip install 'mecharule[local]'"
        ) from None
    settings = xllamacpp.CommonParams()
    settings.model.path = str(path)
    settings.n_ctx = CONTEXT
    settings.n_batch = _AT_ONCE
    settings.n_parallel = 1
    settings.warmup = False
    settings.verbosity = _SILENT
    settings.cpuparams.n_threads = os.cpu_count() or 1
    settings.api_keys = [secrets.token_hex()]
    try:
        return xllamacpp.Server(settings)
    except (RuntimeError, ValueError, OSError) as error:
        raise ProviderFault(f"{PROVIDER} could not load {path.name}: {scrub(str(error))}") from None


def _body(request: Request) -> dict[str, Any]:
    system = request.system
    if request.tools:
        listed = "\n".join(tool.line for tool in request.tools)
        system = f'{system}\n\nTools:\n{listed}\n\nReply with {{"tool": …, "arguments": …}}.'
    body: dict[str, Any] = {
        "messages": [{"role": "system", "content": system}, *map(_message, request.turns)],
        "max_tokens": min(request.max_tokens, _MOST_WRITTEN),
        "temperature": request.temperature or 0,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,
    }
    schema = request.schema
    shape = _either(request.tools) if schema is None else _held(schema.model_json_schema(), request.patterns)
    if shape is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "reply", "schema": shape}}
    return body


def _either(tools: tuple[ToolSpec, ...]) -> dict[str, Any] | None:
    """One of the tools with its arguments, an answer among them; None where no tool is offered."""
    if not tools:
        return None
    calls = [
        _object({"tool": {"const": tool.name}, "arguments": _without_words(dict(tool.schema))})
        for tool in tools
    ]
    return {"anyOf": calls}


def _held(schema: dict[str, Any], patterns: Mapping[str, str]) -> dict[str, Any]:
    """A bounded schema whose lists of these names hold only texts of their pattern."""
    bounded: dict[str, Any] = _bounded(schema)
    for name, pattern in patterns.items():
        bounded["properties"][name]["items"] = {"type": "string", "pattern": pattern}
    return bounded


def _bounded(value: Any) -> Any:
    """A schema whose lists and texts end: a weak model would fill the whole reply with the first of them."""
    if isinstance(value, list):
        return [_bounded(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _bounded(item) for key, item in value.items()}
    if kept.get("type") == "array":
        kept["maxItems"] = min(kept.get("maxItems", _MOST_ITEMS), _MOST_ITEMS)
    if kept.get("type") == "string" and not kept.keys() & {"const", "enum"}:
        kept["maxLength"] = min(kept.get("maxLength", _LONGEST_TEXT), _LONGEST_TEXT)
    return kept


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _without_words(value: Any) -> Any:
    """A schema without its descriptions, which a grammar has no use for."""
    if isinstance(value, dict):
        return {key: _without_words(item) for key, item in value.items() if key != "description"}
    return [_without_words(item) for item in value] if isinstance(value, list) else value


def _message(turn: Turn) -> dict[str, str]:
    """A turn in the two roles that every chat template knows; calls and results are written out."""
    if turn.role == "tool":
        return {"role": "user", "content": f"Result:\n{turn.text}"}
    calls = [canonical_json({"tool": call.name, "arguments": dict(call.arguments)}) for call in turn.calls]
    return {"role": turn.role, "content": "\n".join([*([turn.text] if turn.text else []), *calls])}


def _reply(stream: LocalStream, request: Request) -> Reply:
    if stream.finish == "length":
        most = min(request.max_tokens, _MOST_WRITTEN)
        raise cut_short(most, stream.usage)
    text = stream.text
    if request.schema is not None:
        return Reply(text=text, parsed=_parsed(stream, request.schema), usage=stream.usage)
    calls = calls_in(text, request.tools)
    return Reply(text="" if calls else text, calls=calls, usage=stream.usage)


def _parsed(stream: LocalStream, schema: type[BaseModel]) -> BaseModel | None:
    try:
        return parsed_as(schema, stream.text)
    except ReplyUnusable as fault:
        raise ReplyUnusable(str(fault), stream.usage) from None


@dataclass(slots=True, kw_only=True)
class LocalStream:
    """What has come so far; called with a chunk, says whether the reply is to end."""

    on_text: OnText
    """Hears the words of an answer; an empty piece while the prompt is read or a call is written."""
    text: str = ""
    finish: str = ""
    """Why the reply ended; empty while it goes on."""
    usage: Usage = field(default_factory=Usage)
    error: Mapping[str, Any] | None = None
    """In place of a reply."""
    stopped: BaseException | None = None
    """What the listener raised."""
    told: int = 0
    """Characters heard."""

    def __call__(self, chunk: Mapping[str, Any]) -> bool:
        try:
            self._take(chunk)
        except BaseException as stopped:
            self.stopped = stopped
        return self.stopped is not None

    def _take(self, chunk: Mapping[str, Any]) -> None:
        self.error = chunk.get("error", self.error)
        for choice in chunk.get("choices", ()):
            self.text += choice["delta"].get("content") or ""
            self.finish = choice.get("finish_reason") or self.finish
        if used := chunk.get("usage"):
            self.usage = Usage(
                input_tokens=int(used["prompt_tokens"]), output_tokens=int(used["completion_tokens"])
            )
        words = spoken(self.text)
        self.on_text(words[self.told :])
        self.told = len(words)


def spoken(text: str) -> str:
    """The words for a person in a reply so far: those of an answer's sentence, or a text that is no JSON."""
    begun = _OPENING.match(text.lstrip())
    if begun is None:
        return "" if text.lstrip().startswith("{") else text
    inside = _WHOLE.match(text.lstrip(), begun.end())
    words = json.loads(f'"{inside[0]}"', strict=False) if inside else ""
    return str(words).encode("utf-8", "ignore").decode("utf-8")
