"""What the loops of proposals and of conversation carry and are given: typed states, injected contexts.

A state holds nothing that a checkpoint could not: texts, numbers, lists. Models, stores and tables come in by
the context of an invocation and are never global.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypedDict

from agent.llm.protocol import OnText, ToolSpec, unheard
from agent.llm.retrying import Asker
from mecharule_ops.events import Event
from mecharule_ops.predicates.proposer import ProposalContext
from mecharule_ops.predicates.table import Refusal
from mecharule_ops.saying.fact import Fact
from tools.registry import ToolResult


class RefusalEntry(TypedDict):
    """A text that was refused."""

    text: str
    reason: str


def sifted(tried: Sequence[str], refusals: Sequence[Refusal]) -> tuple[list[str], list[RefusalEntry]]:
    """(texts that were accepted, those that were refused with their reasons), in the order tried."""
    reasons = {refusal.text: refusal.reason for refusal in refusals}
    refused: list[RefusalEntry] = [
        {"text": text, "reason": reasons[text]} for text in tried if text in reasons
    ]
    return [text for text in tried if text not in reasons], refused


# --- predicate proposals ---------------------------------------------------------------------------------


class ProposalInput(TypedDict):
    """All that a proposal loop is started with."""

    rounds: int
    """Most rounds."""


class ProposalState(TypedDict, total=False):
    """A proposal loop under way, and what a node changes of it."""

    rounds: int
    done: int
    """Rounds asked."""
    waiting: list[str]
    """Proposed and not yet judged."""
    accepted: list[str]
    refused: list[RefusalEntry]
    powers: list[float]
    """Held-back AUC after each round, that of the given vocabulary first."""
    ended: str
    """Why it ended; empty while it goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalRuntime:
    """What a proposal loop works with."""

    asker: Asker
    data: ProposalContext
    """Train records only."""
    task: str
    seed: int
    meanings: Mapping[str, str] = field(default_factory=dict)
    """What the columns hold."""
    examples: int = 8
    """Records of each outcome that the model is shown a round."""
    patience: int = 2
    """Rounds without a rise of the power before it ends."""
    on_text: OnText = unheard


# --- conversation ----------------------------------------------------------------------------------------


class Toolbox(Protocol):
    """The tools of a conversation."""

    is_small: bool
    """Whether the model has a small context."""

    def specs(self, question: str, found: Iterable[str] = ()) -> tuple[ToolSpec, ...]:
        """Those that a question is put with, as the model sees them, and those that were `found`."""
        ...

    def about(self, words: str) -> tuple[tuple[str, ...], str]:
        """(names of tools that tell about something, what each is told and says)."""
        ...

    def call(self, name: str, arguments: Mapping[str, object]) -> ToolResult:
        """A result. Raises `MechaRuleError`."""
        ...

    def facts(self, name: str, result: ToolResult) -> tuple[Fact, ...]:
        """What a result of the tool states."""
        ...


class Said(TypedDict, total=False):
    """One turn as JSON."""

    role: str
    text: str
    calls: list[dict[str, object]]
    answers: str
    kept: list[dict[str, object]]
    """As `Turn.kept`."""


class Consulted(TypedDict):
    """One tool call and what it gave."""

    name: str
    arguments: dict[str, object]
    text: str
    """As the model was shown it; after `error: ` where it is not ok."""
    ok: bool


class ConversationInput(TypedDict):
    """All that a question starts with."""

    turns: list[Said]
    """Earlier turns and the question."""
    question: str
    most_calls: int
    """Most tool calls for this question."""


class ConversationState(TypedDict, total=False):
    """A question under way, and what a node changes of it."""

    turns: list[Said]
    question: str
    most_calls: int
    consulted: list[Consulted]
    facts: list[dict[str, object]]
    """What the tools stated, in order: f1, f2, …"""
    found: list[str]
    """Tools that the model asked about."""
    made: int
    """Tool calls, repeated and refused ones too."""
    repeated: list[str]
    """Tools that were called again with the same arguments."""
    repairs: int
    """Replies that were sent back."""
    draft: str
    """The model's answer in free words before its check."""
    reply: dict[str, object]
    """The model's answer by schema before its check; empty without one."""
    answer: str
    faults: list[str]
    checked: str
    """What was checked and what was not."""
    cited: list[str]
    ended: str
    """Why it ended without an answer; empty otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationRuntime:
    """What a conversation works with."""

    asker: Asker
    toolbox: Toolbox
    run: str
    about: str = ""
    """What the run is about, for the first prompt."""
    on_text: OnText = unheard
    emit: Callable[[Event], None] = lambda event: None
    """Is told each tool call."""
