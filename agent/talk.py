"""One question about a run, with a language model: what came before, the loop, the person's consent, what is kept.

The loop runs on an event loop of its own, so that stopping cancels a request under way. A question is checkpointed
beside the run file under a name made of its words and its place in the conversation: asked again after a kill it goes
on where it was.
"""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command
from langsmith import tracing_context

from agent.assistant import Assistant, replies_in
from agent.choice import Choice
from agent.consent import NOT_RUN, PURSE, Exchanges, Listener, Priced
from agent.model_faults import ModelFault
from agent.prose import MARK, Cited
from agent.toolbox import Toolbox, calls_of, cited_of, went_well
from mecharule_ops.codec import canonical_json
from mecharule_ops.errors import MechaRuleError
from mecharule_ops.events import LlmMessage, ToolCalled
from mecharule_ops.findings.records import Findings
from mecharule_ops.numbers import plural
from mecharule_ops.pages.screen import screen
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import findings_of, opened, short_name
from mecharule_ops.store.run_directory import checkpoints_of

_EVERY = 0.05
_FIRST_LINE = 160
_MOST = 5500
"""Characters of a sheet: at most 1,500 tokens."""
_FEW = 8
"""Values of a column that are listed."""


class Stopped(MechaRuleError):
    """The person stopped the model."""

    exit_code = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What a question took."""

    requests: int
    input_tokens: int
    cached_tokens: int
    """Of the tokens read, those that came from the provider's cache."""
    output_tokens: int
    seconds: float
    ablation_seconds: float
    """Seconds of ablations, as priced."""
    dollars: float | None

    @property
    def words(self) -> str:
        """In a line."""
        cost = "" if self.dollars is None else f", ${self.dollars:.4f}"
        return (
            f"{plural(self.requests, 'request')}, {self.input_tokens:,} tokens read ({self.cached_tokens:,} of them "
            f"cached) and {self.output_tokens:,} written in {self.seconds:.1f} s{cost}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a model answered, checked."""

    text: str
    """With its marks."""
    marks: tuple[str, ...]
    facts: tuple[Cited, ...]
    """Those that it cites."""
    calls: tuple[tuple[str, Any, bool], ...]
    """Each tool called, its arguments, and whether it gave a result."""
    declined: bool
    """Whether a call did not run for its price."""
    bill: Bill


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """A conversation of one model about the run at `path`."""

    model: Any
    choice: Choice
    path: Path
    listener: Listener = field(default_factory=Listener)
    purse: float = PURSE
    look: bool = False
    decides: bool = False
    """Whether the model may decide registered claims, which is a person's to do in a conversation."""
    clock: Callable[[], float] = field(default=time.monotonic)

    def ask(self, question: str) -> Answer:
        """The checked answer. Raises `ModelFault`, and `Stopped` once `should_stop` says so."""
        with opened(str(self.path)) as run:
            told = sheet(run, findings_of(run))
        assistant = Assistant(
            model=self.model,
            provider=self.choice.provider,
            toolbox=Toolbox(str(self.path), self._tell, decides=self.decides),
            sheet=told,
            purse=self.purse,
            most_tokens=self.choice.most_tokens,
            look=self.look,
            hear=self.listener.hear,
        )
        earlier = self.listener.earlier or ()
        began, thread = self.clock(), _thread(self.choice.spec, question, earlier)
        try:
            state = self._to_its_end(assistant, assistant.begin(question, earlier), thread)
        except (Exception, KeyboardInterrupt):  # A kill leaves the steps, so that the question goes on there.
            self._forget(thread)
            raise
        self._forget(thread)
        return _answer(state, self.clock() - began, self.choice)

    def _tell(self, line: str) -> None:
        if self.listener.should_stop():
            raise Stopped("the question was stopped")
        self.listener.tell(line)

    def _to_its_end(self, assistant: Assistant, begin: Any, thread: str) -> Any:
        """The state at the end. A price is put to the person here, where no graph runs and ^C is heard."""
        memory = InMemorySaver()
        with tracing_context(enabled=False), asyncio.Runner() as runner:
            while True:
                state = runner.run(self._until_stopped(self._work(assistant, begin, thread, memory)))
                asked = [one.value for task in state.tasks for one in task.interrupts]
                if not asked:
                    return state.values
                price = Priced(calls=tuple(asked[0]["calls"]), words=asked[0]["words"])
                begin = Command(resume=self.listener.consent(price))

    async def _until_stopped(self, working: Coroutine[Any, Any, Any]) -> Any:
        work = asyncio.ensure_future(working)
        while not work.done():
            await asyncio.wait([work], timeout=_EVERY)
            if self.listener.should_stop() and not work.done():
                work.cancel()
                await asyncio.wait([work], timeout=1.0)
                raise Stopped("the question was stopped")
        return work.result()

    async def _work(self, assistant: Assistant, begin: Any, thread: str, memory: InMemorySaver) -> Any:
        """The graph until its end or a price, from where a kill left it; what each node did is told as events."""
        config: Any = {"configurable": {"thread_id": thread}, "recursion_limit": 100}
        async with AsyncExitStack() as stack:
            graph = assistant.graph(await self._saver(stack, memory))
            before = await graph.aget_state(config)
            messages = before.values.get("messages", ())
            calls = {call["id"]: call["args"] for one in messages for call in calls_of(one)}
            going_on = before.next and not isinstance(begin, Command)
            try:
                async for step in graph.astream(None if going_on else begin, config, stream_mode="updates"):
                    for message in (
                        one
                        for node in ("ask", "number")
                        for one in (step.get(node) or {}).get("messages", ())
                    ):
                        calls |= {call["id"]: call["args"] for call in calls_of(message)}
                        self._told(message, calls)
            except ModelFault as fault:
                self._told_of_model(str(fault), fault.read, fault.written, ok=False)
                raise
            return await graph.aget_state(config)

    async def _saver(self, stack: AsyncExitStack, memory: InMemorySaver) -> AsyncSqliteSaver | InMemorySaver:
        """The run's checkpointer; beside a run where nothing can be written the one in memory, which is said."""
        try:
            file = str(checkpoints_of(self.path))
            saver = await stack.enter_async_context(AsyncSqliteSaver.from_conn_string(file))
            await saver.setup()
        except sqlite3.Error as error:
            self.listener.tell(f"the question could not be continued after a kill: {error}")
            return memory
        return saver

    def _forget(self, thread: str) -> None:
        """Drop the steps of a question that ended, however it did; only one that was killed goes on."""
        file = checkpoints_of(self.path)
        with suppress(sqlite3.Error), SqliteSaver.from_conn_string(str(file)) as saver:
            saver.delete_thread(thread)

    def _told(self, message: Any, calls: Mapping[str, Any]) -> None:
        if isinstance(message, AIMessage):
            used = message.usage_metadata or {"input_tokens": 0, "output_tokens": 0}
            called = ", ".join(call["name"] for call in message.tool_calls)
            said = f"calls {called}" if called else f"an answer of {len(str(message.text))} characters"
            ok = bool(called or str(message.text).strip())
            self._told_of_model(said, used["input_tokens"], used["output_tokens"], ok=ok)
        elif isinstance(message, ToolMessage):
            said = str(message.content).strip().partition("\n")[0][:_FIRST_LINE]
            asked = canonical_json(calls.get(message.tool_call_id, {}))
            self.listener.show(
                ToolCalled(tool=str(message.name), arguments=asked, ok=went_well(message), result=said)
            )

    def _told_of_model(self, text: str, read: int, written: int, *, ok: bool) -> None:
        tokens = {"input_tokens": read, "output_tokens": written}
        self.listener.show(
            LlmMessage(model=self.choice.short, purpose="question", text=text, ok=ok, **tokens)
        )


def sheet(run: Run, findings: Findings) -> str:
    """The sheet of a finished run, the same at every question, so that providers cache it.

    A data value stands quoted and is cut short.
    """
    searched = ", ".join(
        f"{short_name(one)} ({one.cost.candidates:,} units, {len(one.tau_agonists)} at τ)"
        for one in findings.searches
    )
    head = [
        screen(findings, ends=False),
        f"Searched: {searched}. τ {findings.tau:g}, α {findings.alpha:g}, seed {findings.seed}, "
        f"proposer {findings.proposer}, {len(run.records):,} records.",
        "Columns for conditions: " + "; ".join(_columns(run)),
    ]
    text = "\n".join(head)
    return text if len(text) <= _MOST else f"{text[: _MOST - 1]}…"


def _columns(run: Run) -> list[str]:
    """Each column with its type and range, or its values where they are few."""
    told = []
    for name, values in run.observed.columns.items():
        kinds = np.unique(values)
        if kinds.dtype.kind in "iuf" and len(kinds) > _FEW:
            told.append(f"{name} (number, {kinds[0]} to {kinds[-1]})")
        elif len(kinds) <= _FEW:
            told.append(f"{name} ({', '.join(repr(_cut(str(each))) for each in kinds)})")
        else:
            told.append(f"{name} (text, such as {_cut(str(kinds[0]))!r})")
    return told


def _cut(text: str, most: int = 24) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _thread(model: str, question: str, earlier: Exchanges) -> str:
    """The name of a question's checkpoints: the same question after the same talk, put to the same model."""
    content = canonical_json(
        {"model": model, "question": question, "earlier": [list(each) for each in earlier]}
    )
    return f"question-{hashlib.sha256(content.encode()).hexdigest()[:16]}"


def _answer(state: Any, seconds: float, choice: Choice) -> Answer:
    replies, looked = replies_in(state["messages"]), state.get("looked", [])
    used: list[Any] = [*(one.usage_metadata for one in replies if one.usage_metadata), *looked]
    read, written = (sum(one[what] for one in used) for what in ("input_tokens", "output_tokens"))
    facts, price = cited_of(state["messages"]), choice.price
    if not state["answer"]:
        raise ModelFault("the model gave no answer; ask again, or another way")
    results = [one for one in state["messages"] if isinstance(one, ToolMessage)]
    went = {one.tool_call_id: went_well(one) for one in results}
    bill = Bill(
        requests=len(replies) + len(looked),
        input_tokens=read,
        cached_tokens=sum(one.get("input_token_details", {}).get("cache_read", 0) for one in used),
        output_tokens=written,
        seconds=seconds,
        ablation_seconds=state.get("spent", 0.0),
        dollars=None if price is None else price.cost(read, written),
    )
    return Answer(
        text=state["answer"],
        marks=tuple(state["marks"]),
        facts=tuple(facts[id] for id in state["cited"] if id in facts),
        calls=tuple(
            (one["name"], one["args"], went[one["id"]]) for each in replies for one in calls_of(each)
        ),
        declined=any(str(one.content).startswith(NOT_RUN) for one in results),
        bill=bill,
    )


def checked_words(answer: Answer) -> str:
    """How the check came out, in a sentence."""
    if not (answer.marks or answer.facts):
        return "it cites no fact, and states no figure"
    if not answer.marks:
        return f"every figure stands in the {plural(len(answer.facts), 'fact')} cited"
    return f"{plural(len(answer.marks), 'sentence')} marked {MARK}: not held by the facts cited"
