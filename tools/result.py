"""What every tool gives back: data for programs, text for people, an exit code for shells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One sentence that a tool states, with what it is about and where it can be checked."""

    template: str
    """The sentence without its full stop, `{value}` where the value stands."""
    value: str = ""
    """As printed, such as `28/64`; empty where the sentence has no value of its own."""
    unit: str | None = None
    slice: str | None = None
    """`D+`, `D-`, or None when it is about neither or both."""
    sources: tuple[str, ...] = ()
    """`c:ID` for a certificate, `run:ID` for what the run itself states."""

    @property
    def sentence(self) -> str:
        """The template with its value."""
        return self.template.replace("{value}", self.value)

    @property
    def cited(self) -> str:
        """The sentence with its sources."""
        return f"{self.sentence} {self.citation}".rstrip() + "."

    @property
    def citation(self) -> str:
        return " ".join(f"[{source}]" for source in self.sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """`data` is short JSON with ids and no arrays of the model; `text` says the same in sentences or a table."""

    data: Mapping[str, object] = field(default_factory=dict)
    text: str = ""
    exit_code: int = 0
    facts: tuple[Fact, ...] = ()
    """What an answer may say of it; empty for a tool whose sentences an answer template makes of `data`."""
