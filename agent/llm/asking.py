"""Asking a model patiently and within a budget: bounded retries, tokens and cost counted.

A transient fault is tried again after the wait that the provider names, else after 1, 2, 4 … s; a reply that
does not read is answered with what was wrong with it. Everything else is raised at once. At most `tries`
requests a question, whatever went wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from agent.llm.faults import ReplyUnusable, TransientFault
from agent.llm.protocol import LanguageModel, OnText, Reply, Request, Turn, Usage, unheard
from mecharule_ops.errors import BudgetSpent

LONGEST_WAIT = 60.0
"""Seconds; a provider that asks for more is not waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPrice:
    """Dollars a million tokens, as the user gives them: prices change too often to be kept here."""

    input: float
    output: float

    def cost(self, usage: Usage) -> float:
        """Dollars."""
        return (self.input * usage.input_tokens + self.output * usage.output_tokens) / 1e6


@dataclass(slots=True, kw_only=True)
class Asker:
    """A model with patience and a purse. `sleep` waits for seconds."""

    model: LanguageModel
    sleep: Callable[[float], None]
    price: TokenPrice | None = None
    tries: int = 3
    most_requests: int = 100
    most_tokens: int = 1_000_000
    """Input and output together, over the life of this asker."""
    spent: Usage = field(default_factory=Usage)
    requests: int = 0
    """Requests made, retries included."""

    @property
    def cost(self) -> float | None:
        """Dollars so far; None when no price was given."""
        return None if self.price is None else self.price.cost(self.spent)

    def ask(self, request: Request, on_text: OnText = unheard) -> Reply:
        """A reply. Raises the last fault when patience ends, `BudgetSpent` when the purse is empty."""
        for attempt in range(1, self.tries + 1):
            try:
                return self._once(request, on_text)
            except TransientFault as fault:
                wait = 2.0 ** (attempt - 1) if fault.retry_after is None else fault.retry_after
                if attempt == self.tries or wait > LONGEST_WAIT:
                    raise
                on_text("\n[asking again]\n")
                self.sleep(wait)
            except ReplyUnusable as fault:
                if attempt == self.tries:
                    raise
                on_text("\n[asking again]\n")
                request = _corrected(request, str(fault))
        raise AssertionError("the last try returns or raises")

    def _once(self, request: Request, on_text: OnText) -> Reply:
        used = self.spent.input_tokens + self.spent.output_tokens
        if self.requests >= self.most_requests or used >= self.most_tokens:
            raise BudgetSpent(
                f"the model's budget is spent: {self.requests} requests, {used:,} tokens; what was found is kept"
            )
        self.requests += 1
        reply = self.model.complete(request, on_text)
        self.spent += reply.usage
        return reply


def _corrected(request: Request, fault: str) -> Request:
    """The request with a turn that says what was wrong; a second correction replaces the first."""
    correction = Turn(role="user", text=f"Your reply could not be used: {fault}. Reply again, in the schema.")
    turns = request.turns
    if turns[-1].role == "user" and turns[-1].text.startswith("Your reply could not be used: "):
        turns = turns[:-1]
    return replace(request, turns=(*turns, correction))
