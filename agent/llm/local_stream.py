"""One reply of a model in this process, put together from its chunks as they come.

llama.cpp calls back with each chunk and ends the reply when told so; what the listener raises it would swallow, so it
is kept here and raised by whoever asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.llm.protocol import OnText, Usage

_OPENING = re.compile(r'\s*\{\s*"answer"\s*:\s*"')
_WHOLE = re.compile(r'(?:[^"\\]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*')


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
    """The words for a person in a reply so far: those inside `{"answer": "…`, or a text that is no JSON."""
    begun = _OPENING.match(text)
    if begun is None:
        return "" if text.lstrip().startswith("{") else text
    inside = _WHOLE.match(text, begun.end())
    words = json.loads(f'"{inside[0]}"', strict=False) if inside else ""
    return str(words).encode("utf-8", "ignore").decode("utf-8")
