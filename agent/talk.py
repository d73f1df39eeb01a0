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
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command
from langsmith import tracing_context

from agent.assistant import Assistant, replies_in
from agent.choice import Choice
from agent.consent import PURSE, Consent, Priced, nobody
from agent.model_faults import ModelFault, fault_of
from agent.prose import MARK, Cited
from agent.sheet import sheet
from agent.toolbox import Toolbox, calls_of, cited_of
from mecharule_ops.codec import canonical_json
from mecharule_ops.errors import MechaRuleError
from mecharule_ops.events import Event, LlmMessage, ToolCalled
from mecharule_ops.numbers import plural
from mecharule_ops.run.opening import findings_of, opened
from mecharule_ops.store.run_directory import checkpoints_of

_EVERY = 0.05
_FIRST_LINE = 160


class Stopped(MechaRuleError):
    """The person stopped the model."""

    exit_code = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What a question took."""

    requests: int
    read: int
    cached: int
    """Of the tokens read, those that came from the provider's cache."""
    written: int
    seconds: float
    ablating: float
    """Seconds of ablations, as priced."""
    dollars: float | None

    @property
    def words(self) -> str:
        """In a line."""
        cost = "" if self.dollars is None else f", ${self.dollars:.4f}"
        return (
            f"{plural(self.requests, 'request')}, {self.read:,} tokens read ({self.cached:,} of them cached) and "
            f"{self.written:,} written in {self.seconds:.1f} s{cost}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a model answered, checked."""

    text: str
    """With its marks."""
    marks: tuple[str, ...]
    facts: tuple[Cited, ...]
    """Those that it cites."""
    calls: tuple[tuple[str, str], ...]
    """Each tool called, with its arguments as text."""
    bill: Bill


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """A conversation of one model about the run at `path`."""

    model: Any
    choice: Choice
    path: Path
    tell: Callable[[str], None] = lambda line: None
    heard: Callable[[str], None] = lambda text: None
    emit: Callable[[Event], None] = lambda event: None
    consent: Consent = nobody
    should_stop: Callable[[], bool] = lambda: False
    purse: float = PURSE
    look: bool = False
    decides: bool = False
    """Whether the model may decide registered claims, which is a person's to do in a conversation."""
    clock: Callable[[], float] = field(default=time.monotonic)

    def ask(self, question: str, earlier: Sequence[tuple[str, str]] = ()) -> Answer:
        """The checked answer. Raises `ModelFault`, and `Stopped` once `should_stop` says so."""
        with opened(str(self.path)) as run:
            told = sheet(run, findings_of(run))
        assistant = Assistant(
            model=self.model,
            toolbox=Toolbox(str(self.path), self._tell, decides=self.decides),
            sheet=told,
            purse=self.purse,
            most_tokens=self.choice.most_tokens,
            look=self.look,
            heard=self.heard,
        )
        began = self.clock()
        with tracing_context(enabled=False):
            state = asyncio.run(self._until_stopped(assistant, question, earlier))
        return _answer(state, self.clock() - began, self.choice)

    def _tell(self, line: str) -> None:
        if self.should_stop():
            raise Stopped("the question was stopped")
        self.tell(line)

    async def _until_stopped(
        self, assistant: Assistant, question: str, earlier: Sequence[tuple[str, str]]
    ) -> Any:
        work = asyncio.ensure_future(self._work(assistant, question, earlier))
        while not work.done():
            await asyncio.wait([work], timeout=_EVERY)
            if self.should_stop() and not work.done():
                work.cancel()
                await asyncio.wait([work], timeout=1.0)
                raise Stopped("the question was stopped")
        return work.result()

    async def _work(self, assistant: Assistant, question: str, earlier: Sequence[tuple[str, str]]) -> Any:
        thread = _thread(self.choice.spec, question, earlier)
        config: Any = {"configurable": {"thread_id": thread}, "recursion_limit": 100}
        async with AsyncExitStack() as stack:
            saver = await self._saver(stack)
            graph = assistant.graph(saver)
            going_on = await graph.aget_state(config)
            begin: Any = None if going_on.next else assistant.begin(question, earlier)
            while True:
                await self._stream(graph, begin, config)
                state = await graph.aget_state(config)
                asked = [one.value for task in state.tasks for one in task.interrupts]
                if not asked:
                    break
                price = Priced(calls=tuple(asked[0]["calls"]), words=asked[0]["words"])
                begin = Command(resume=await asyncio.to_thread(self.consent, price))
            await saver.adelete_thread(thread)
        return state.values

    async def _saver(self, stack: AsyncExitStack) -> AsyncSqliteSaver | InMemorySaver:
        """The run's checkpointer; beside a run where nothing can be written one in memory, which is said."""
        try:
            file = str(checkpoints_of(self.path))
            saver = await stack.enter_async_context(AsyncSqliteSaver.from_conn_string(file))
            await saver.setup()
        except sqlite3.Error as error:
            self.tell(f"the question could not be continued after a kill: {error}")
            return InMemorySaver()
        return saver

    async def _stream(self, graph: Any, begin: Any, config: Any) -> None:
        """The graph until its end or an interrupt; what each node did is told as events."""
        provider = self.choice.spec.partition("/")[0]
        calls: dict[str, Any] = {}
        try:
            async for step in graph.astream(begin, config, stream_mode="updates"):
                for node, update in step.items():
                    if node in ("ask", "number") and update:
                        for message in update["messages"]:
                            calls |= {call["id"]: call["args"] for call in calls_of(message)}
                            self._told(message, calls)
        except MechaRuleError:
            raise
        except Exception as error:
            fault = fault_of(error, provider)
            self.emit(
                LlmMessage(
                    model=self.choice.short,
                    purpose="question",
                    text=str(fault),
                    ok=False,
                    input_tokens=0,
                    output_tokens=0,
                )
            )
            raise fault from None

    def _told(self, message: Any, calls: Mapping[str, Any]) -> None:
        if isinstance(message, AIMessage):
            used = message.usage_metadata or {"input_tokens": 0, "output_tokens": 0}
            called = ", ".join(call["name"] for call in message.tool_calls)
            self.emit(
                LlmMessage(
                    model=self.choice.short,
                    purpose="question",
                    text=f"calls {called}" if called else f"an answer of {len(str(message.text))} characters",
                    ok=True,
                    input_tokens=used["input_tokens"],
                    output_tokens=used["output_tokens"],
                )
            )
        elif isinstance(message, ToolMessage):
            said = str(message.content).strip().partition("\n")[0][:_FIRST_LINE]
            asked = canonical_json(calls.get(message.tool_call_id, {}))
            is_ok = not said.startswith(("error:", "not run:")) and message.status != "error"
            self.emit(ToolCalled(tool=str(message.name), arguments=asked, ok=is_ok, result=said))


def _thread(model: str, question: str, earlier: Sequence[tuple[str, str]]) -> str:
    """The name of a question's checkpoints: the same question after the same talk, put to the same model."""
    content = canonical_json(
        {"model": model, "question": question, "earlier": [list(each) for each in earlier]}
    )
    return f"question-{hashlib.sha256(content.encode()).hexdigest()[:16]}"


def _answer(state: Any, seconds: float, choice: Choice) -> Answer:
    replies = replies_in(state["messages"])
    looked = state.get("looked", [])
    used: list[Any] = [*(one.usage_metadata for one in replies if one.usage_metadata), *looked]
    read, written = (sum(one[what] for one in used) for what in ("input_tokens", "output_tokens"))
    cached = sum(one.get("input_token_details", {}).get("cache_read", 0) for one in used)
    price = choice.price
    facts = cited_of(state["messages"])
    if not state["answer"]:
        raise ModelFault("the model gave no answer; ask again, or another way")
    return Answer(
        text=state["answer"],
        marks=tuple(state["marks"]),
        facts=tuple(facts[id] for id in state["cited"] if id in facts),
        calls=tuple(
            (call["name"], canonical_json(call["args"])) for one in replies for call in calls_of(one)
        ),
        bill=Bill(
            requests=len(replies) + len(looked),
            read=read,
            cached=cached,
            written=written,
            seconds=seconds,
            ablating=state.get("spent", 0.0),
            dollars=None if price is None else price.cost(read, written),
        ),
    )


def checked_words(answer: Answer) -> str:
    """How the check came out, in a sentence."""
    if not (answer.marks or answer.facts):
        return "it cites no fact, and states no figure"
    if not answer.marks:
        return f"every figure stands in the {plural(len(answer.facts), 'fact')} cited"
    return f"{plural(len(answer.marks), 'sentence')} marked {MARK}: not held by the facts cited"
