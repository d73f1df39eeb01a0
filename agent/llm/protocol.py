"""What the agent asks of a language model, and what it gets back: one protocol for every provider.

A request is a system text and turns; a reply is text, or an object of the schema asked for, or tool calls,
always with its token counts. Nothing here knows a provider.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from pydantic import BaseModel

import prompts

MOST_WRITTEN = 8192
"""Tokens of a reply where nothing else is said: a model that thinks first spends most of them so."""
OnText = Callable[[str], None]
"""Told each piece of text as it arrives; an empty piece says that a request is under way, or a model thinks."""


def unheard(text: str) -> None:
    """Nobody listens to the stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as the model sees it."""

    name: str
    description: str
    schema: Mapping[str, object]
    """JSON schema of its arguments, an object."""

    @property
    def line(self) -> str:
        """The tool in a line, its arguments with their meanings; one that may be left out has a question mark."""
        properties: Any = self.schema.get("properties", {})
        required: Any = self.schema.get("required", ())
        said = [f"{name}{'' if name in required else '?'}: {_meaning(of)}" for name, of in properties.items()]
        return f"- {self.name}({'; '.join(said)}): {self.description}"


def _meaning(argument: Mapping[str, Any]) -> str:
    kind = " or ".join(map(str, argument["enum"])) if "enum" in argument else argument.get("type", "text")
    return str(argument.get("description", kind))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call that the model wants made."""

    id: str
    """The provider's name for the call; its result must carry it."""
    name: str
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn of the conversation."""

    role: Literal["user", "assistant", "tool"]
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    """Of an assistant's turn."""
    answers: str = ""
    """Id of the call that a tool's turn answers."""
    kept: tuple[Mapping[str, Any], ...] = ()
    """Of an assistant's turn: what its provider wants back as it came, thinking among it; opaque, JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One question to a model."""

    system: str
    turns: tuple[Turn, ...]
    schema: type[BaseModel] | None = None
    """Shape of the reply; None for free text."""
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int = MOST_WRITTEN
    temperature: float | None = None
    """Left to the model where None, and where the provider takes none."""
    patterns: Mapping[str, str] = field(default_factory=dict)
    """Of fields of `schema` that are lists of texts, a regular expression for the texts; for who can be held to one."""
    purpose: str = "request"
    """What it is for, in the event stream; the model is not told."""

    @classmethod
    def of(cls, prompt: str, filled: Mapping[str, str], **more: Any) -> Request:
        """A prompt of `prompts/` with its inputs: its system text, then what the user says in one turn."""
        system, user = prompts.load(prompt).fill(**filled)
        return cls(system=system, turns=(Turn(role="user", text=user),), **more)

    def transcript(self) -> str:
        """Everything the model is shown, as one text: what tests and scripted models look at."""
        lines = [self.system]
        for turn in self.turns:
            calls = "".join(f" {call.name}({dict(call.arguments)})" for call in turn.calls)
            lines.append(f"[{turn.role}] {turn.text}{calls}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens that were charged."""

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    parsed: BaseModel | None = None
    """The object of the schema that was asked for."""
    usage: Usage = Usage()
    kept: tuple[Mapping[str, Any], ...] = ()
    """For `Turn.kept` of the turn that this reply becomes."""


@runtime_checkable
class LanguageModel(Protocol):
    """A model that can be asked."""

    @property
    def name(self) -> str:
        """As chosen on the command line: `anthropic/…`, `openai/…`, `mock:FILE`."""
        ...

    def complete(self, request: Request, on_text: OnText = unheard) -> Reply:
        """One reply. Raises a fault of `agent.llm.faults`; never retries by itself."""
        ...
