"""Asking a model patiently and within a budget: bounded retries, tokens and cost counted.

A transient fault is tried again after the wait that the provider names, else after 1, 2, 4 … s; a reply that
does not read is answered with what was wrong with it, one that was cut has twice the room. Everything else is raised
at once. At most `tries` requests a question, whatever went wrong. Every reply and fault is told as an event, with what
was spent so far.

A request can be given up while it is under way: the model is asked on a thread of its own; when the person stops, the
caller is free at once, and the thread ends with the next piece that the model sends, which closes the stream.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue

from agent.llm.faults import ReplyCut, ReplyStopped, ReplyUnusable, TransientFault, scrub
from agent.llm.protocol import LanguageModel, OnText, Reply, Request, Turn, Usage, unheard
from mecharule_ops.errors import BudgetSpent, MechaRuleError
from mecharule_ops.events import Event, LlmCost, LlmMessage

MOST_TOKENS = 1_000_000
"""Read and written together, where nobody names a budget."""
LONGEST_WAIT = 60.0
"""Seconds; a provider that asks for more is not waited for."""
_EVERY = 0.05
"""Seconds between two looks at whether to stop."""


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
    sleep: Callable[[float], None] = time.sleep
    price: TokenPrice | None = None
    tries: int = 3
    most_requests: int = 100
    most_tokens: int = MOST_TOKENS
    """Input and output together, over the life of this asker."""
    emit: Callable[[Event], None] = lambda event: None
    should_stop: Callable[[], bool] | None = None
    """Looked at while a request is under way; None where nobody can stop one."""
    clock: Callable[[], float] = time.monotonic
    spent: Usage = field(default_factory=Usage)
    requests: int = 0
    """Requests made, retries included."""
    seconds: float = 0.0
    """Inside requests, by `clock`."""

    @property
    def bill(self) -> str:
        """What was asked, read, written and waited for, in a line."""
        asked = f"{self.requests} request{'' if self.requests == 1 else 's'}"
        cost = "" if self.cost is None else f", ${self.cost:.4f}"
        read, written = self.spent.input_tokens, self.spent.output_tokens
        return f"{asked}, {read:,} tokens read and {written:,} written in {self.seconds:.1f} s{cost}"

    @property
    def cost(self) -> float | None:
        """Dollars so far; None when no price was given."""
        return None if self.price is None else self.price.cost(self.spent)

    def ask(self, request: Request, on_text: OnText = unheard, tries: int | None = None) -> Reply:
        """A reply. Raises the last fault when patience ends, `BudgetSpent` when the purse is empty.

        `tries` stands in for the asker's own. No request begins once the tokens are spent, and a reply may be as long
        as what is left; a prompt may go beyond.
        """
        tries = tries or self.tries
        for attempt in range(1, tries + 1):
            try:
                return self._once(request, on_text)
            except TransientFault as fault:
                wait = 2.0 ** (attempt - 1) if fault.retry_after is None else fault.retry_after
                if attempt == tries or wait > LONGEST_WAIT:
                    raise
                on_text("\n[asking again]\n")
                self._wait(wait)
            except ReplyUnusable as fault:
                if attempt == tries:
                    raise
                on_text("\n[asking again]\n")
                room = 2 if isinstance(fault, ReplyCut) else 1
                request = replace(_corrected(request, str(fault)), max_tokens=room * request.max_tokens)
        raise AssertionError("the last try returns or raises")

    def _once(self, request: Request, on_text: OnText) -> Reply:
        used = self.spent.input_tokens + self.spent.output_tokens
        if self.requests >= self.most_requests or used >= self.most_tokens:
            raise BudgetSpent(
                f"the model's budget is spent: {self.requests} requests, {used:,} tokens; what was found is kept"
            )
        self.requests += 1
        request = replace(request, max_tokens=min(request.max_tokens, self.most_tokens - used))
        began = self.clock()
        on_text("")
        try:
            reply = self._complete(request, on_text)
        except MechaRuleError as fault:
            charged = fault.usage if isinstance(fault, ReplyUnusable) else Usage()
            self.spent += charged
            self._tell(request, str(fault), charged, ok=False)
            raise
        finally:
            self.seconds += self.clock() - began
        self.spent += reply.usage
        self._tell(request, _said(request, reply), reply.usage, ok=True)
        return reply

    def _complete(self, request: Request, on_text: OnText) -> Reply:
        if self.should_stop is None:
            return self.model.complete(request, on_text)
        return until_stopped(lambda hear: self.model.complete(request, hear), on_text, self.should_stop)

    def _wait(self, seconds: float) -> None:
        """Sleeps, a second at a time where somebody can stop it. Raises `ReplyStopped`."""
        if self.should_stop is None:
            self.sleep(seconds)
            return
        while seconds > 0:
            if self.should_stop():
                raise ReplyStopped
            self.sleep(min(1.0, seconds))
            seconds -= 1.0

    def _tell(self, request: Request, text: str, usage: Usage, *, ok: bool) -> None:
        self.emit(
            LlmMessage(
                model=self.model.name,
                purpose=request.purpose,
                text=scrub(text),
                ok=ok,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
            )
        )
        self.emit(
            LlmCost(
                requests=self.requests,
                input_tokens=self.spent.input_tokens,
                output_tokens=self.spent.output_tokens,
                dollars=self.cost,
            )
        )


def _said(request: Request, reply: Reply) -> str:
    """What may be shown before a check: proposals and calls as they are, of an answer only its length."""
    if reply.calls:
        return f"calls {', '.join(call.name for call in reply.calls)}"
    if request.schema is None:
        return f"an answer of {len(reply.text)} characters, checked before it is shown"
    return " ".join(reply.text.split())


def _corrected(request: Request, fault: str) -> Request:
    """The request with a turn that says what was wrong; a second correction replaces the first."""
    again = "Reply again." if request.schema is None else "Reply again, in the schema."
    correction = Turn(role="user", text=f"Your reply could not be used: {fault}. {again}")
    turns = request.turns
    if turns[-1].role == "user" and turns[-1].text.startswith("Your reply could not be used: "):
        turns = turns[:-1]
    return replace(request, turns=(*turns, correction))


def until_stopped(
    complete: Callable[[OnText], Reply], on_text: OnText, should_stop: Callable[[], bool]
) -> Reply:
    """The reply of `complete`. Raises what it raises, and `ReplyStopped` once `should_stop` says so."""
    came: SimpleQueue[Reply | BaseException] = SimpleQueue()
    given_up = threading.Event()

    def hear(piece: str) -> None:
        if given_up.is_set():
            raise ReplyStopped
        on_text(piece)

    def work() -> None:
        try:
            came.put(complete(hear))
        except BaseException as fault:
            came.put(fault)

    threading.Thread(target=work, daemon=True).start()
    while not should_stop():
        try:
            reply = came.get(timeout=_EVERY)
        except Empty:
            continue
        if isinstance(reply, BaseException):
            raise reply
        return reply
    given_up.set()
    raise ReplyStopped
