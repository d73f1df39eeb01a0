"""What every tool gives back: data for programs, text for people, an exit code for shells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mecharule_ops.saying.fact import Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """`data` is short JSON with ids and no arrays of the model; `text` says the same in sentences or a table."""

    data: Mapping[str, object] = field(default_factory=dict)
    text: str = ""
    exit_code: int = 0
    facts: tuple[Fact, ...] = ()
    """What an answer may say of it; empty for a tool whose sentences an answer template makes of `data`."""
