"""One question about a run, with a language model: the loop of model and tools, the person's consent, the check.

    ask ─┬→ consent → tools → ask …
         └→ check ─┬→ ask (once: what its facts do not hold is sent back)
                   └→ end

`consent` prices the calls of a turn before any runs: within the purse they run and are billed, beyond it the graph
interrupts and the person answers. It is a node of its own, since an interrupted node runs again when the graph goes on.
`check` marks what still fails; nothing is removed. Each step is checkpointed beside the run file under a name made of
the question's words and its place in the conversation: asked again after a kill it goes on where it was. The loop runs
on an event loop of its own, so that stopping cancels a request under way.
"""

import asyncio
import hashlib
import os
import re
import secrets
import sqlite3
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.utils import message_chunk_to_message
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command, Send, interrupt
from langsmith import tracing_context
from pydantic import BaseModel, Field

import prompts
from agent import chat_models, consent, prose, showing
from agent.toolbox import DECIDES, Toolbox, as_read, calls_of, cited_of
from mecharule_ops import codec, events
from mecharule_ops.errors import AblationStopped, BudgetSpent, MechaRuleError, ModelUnavailable, StoreError
from mecharule_ops.facts.fact import Fact, ids_among, said
from mecharule_ops.numbers import plural
from mecharule_ops.run.opening import findings_of, opened
from mecharule_ops.store.run_directory import checkpoints_of
from tools.result import Quoted, ToolResult

PROMPT = "assistant"
MOST_TURNS = 12
"""Replies of the model to one question, the repair among them."""
_EVERY = 0.05
_FIRST_LINE = 160
_CHECK = "check"
"""Who says what the program sends back, which is nothing that a person said."""
_LAST = "Answer now with what you have; no further call will run."


class State(TypedDict, total=False):
    """A question on its way to its answer."""

    messages: Annotated[list[AnyMessage], add_messages]
    spent: float
    """Seconds of ablations so far, as priced."""
    repaired: bool
    answer: str
    """With its marks; empty until the end."""
    marks: list[str]
    """Each sentence that is marked, with its fault."""
    cited: list[str]
    """Ids of the facts that the answer cites."""
    looked: list[dict[str, Any]]
    """What the second looks read and wrote."""


@dataclass
class Talk:
    """A model with the tools of the run at `path`; `look` compares each sentence with its facts by a second request."""

    model: Any
    choice: chat_models.Choice
    path: Path
    listener: consent.Listener = field(default_factory=consent.Listener)
    purse: float = consent.PURSE
    look: bool = False
    decides: bool = False
    """Whether the model may decide registered claims unasked; in a conversation the person is asked."""

    def __post_init__(self) -> None:
        with opened(str(self.path)) as run:
            self.sheet = showing.sheet(run, findings_of(run))
        tell = consent.unless_stopped(self.listener.tell, self.listener.should_stop)
        decides = self.decides or self.listener.consent is not consent.nobody
        self.toolbox = Toolbox(str(self.path), tell, by=self.choice.short, decides=decides)
        self.earlier = self.listener.earlier or ()
        self._tools, self._one_at_a_time = self.toolbox.tools(), asyncio.Lock()
        self._asked = self.model.bind_tools(self._tools)

    def ask(self, question: str) -> ToolResult:
        """The checked answer, its facts folded below. Raises `ModelUnavailable`, `AblationStopped`."""
        began, file = time.monotonic(), checkpoints_of(self.path)
        if not os.access(file.parent, os.W_OK):
            self.listener.tell(f"it could not be continued after a kill: {file.parent} is read-only")
            file = Path(":memory:")
        opening = AsyncSqliteSaver.from_conn_string(str(file))
        try:
            with tracing_context(enabled=False), asyncio.Runner() as runner:
                saver = runner.run(opening.__aenter__())
                try:
                    state = self._to_its_end(runner, saver, question)
                finally:
                    runner.run(opening.__aexit__(None, None, None))
        except sqlite3.Error as error:
            raise StoreError(f"expected to write checkpoints to {file}, SQLite says: {error}") from error
        return self._answer(question, state, time.monotonic() - began)

    def _to_its_end(self, runner: asyncio.Runner, saver: AsyncSqliteSaver, question: str) -> State:
        """The state at the end. A price is put to the person here, where no graph runs and ^C is heard."""
        told = codec.canonical_json([self.choice.spec, question, [list(each) for each in self.earlier]])
        graph, thread = self.graph(saver), hashlib.sha256(told.encode()).hexdigest()
        config: Any = {"configurable": {"thread_id": thread}, "recursion_limit": 100}
        step: Any = None if runner.run(graph.aget_state(config)).next else self.begin(question)
        try:
            while step is not END:
                state = runner.run(self._until_stopped(graph.ainvoke(step, config, durability="sync")))
                priced = state.get("__interrupt__")
                step = Command(resume=self.listener.consent(priced[0].value)) if priced else END
        except (Exception, KeyboardInterrupt):  # A kill leaves the steps, so that the question goes on there.
            runner.run(_forget(saver, thread))
            raise
        runner.run(_forget(saver, thread))
        return state

    def graph(self, saver: Any) -> Any:
        """The loop, checkpointed by `saver`."""
        graph = StateGraph(State)
        graph.add_node("ask", self._ask)
        graph.add_node("consent", self._consent)
        graph.add_node("tools", ToolNode(self._tools, awrap_tool_call=self._called))
        graph.add_node("check", self._check)
        graph.add_edge(START, "ask")
        graph.add_conditional_edges(
            "ask", lambda state: "consent" if calls_of(state["messages"][-1]) else "check"
        )
        graph.add_conditional_edges("consent", _after_consent, ["tools", "ask"])
        graph.add_edge("tools", "ask")
        graph.add_conditional_edges("check", lambda state: END if "answer" in state else "ask", ["ask", END])
        return graph.compile(checkpointer=saver)

    def begin(self, question: str) -> State:
        """The state of a new question after the questions and answers before it."""
        system, _ = prompts.load(PROMPT).fill(sheet=self.sheet)
        # What stays the same from turn to turn is asked to be cached, where a provider needs to be asked.
        cached: Any = {"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}
        told: list[AnyMessage] = [SystemMessage([cached])]
        for asked, answered in self.earlier:
            told += [HumanMessage(asked), AIMessage(answered)]
        return {"messages": [*told, HumanMessage(question)]}

    async def _until_stopped(self, working: Coroutine[Any, Any, Any]) -> Any:
        work = asyncio.ensure_future(working)
        while not (await asyncio.wait([work], timeout=_EVERY))[0]:
            if self.listener.should_stop():
                work.cancel()
                await asyncio.wait([work], timeout=1.0)
                raise AblationStopped("the question was stopped")
        return work.result()

    def _replies(self, messages: Sequence[AnyMessage]) -> list[AIMessage]:
        """The model's replies to this question."""
        return [one for one in messages if isinstance(one, AIMessage)][len(self.earlier) :]

    async def _ask(self, state: State) -> State:
        replies = self._replies(state["messages"])
        used = sum(one.usage_metadata["total_tokens"] for one in replies if one.usage_metadata)
        is_last = len(replies) >= MOST_TURNS - 1 or used >= self.choice.most_tokens
        reply = await self._reply([*as_read(state["messages"]), *([HumanMessage(_LAST)] if is_last else [])])
        return {"messages": [reply.model_copy(update={"tool_calls": []}) if is_last else reply]}

    async def _reply(self, messages: Sequence[AnyMessage]) -> Any:
        """A reply as its pieces make it, told as an event. Raises `ModelUnavailable`, told with what it took."""
        reply: Any = None
        made = -1
        try:
            async for chunk in self._asked.astream(messages):
                # Some servers number no calls: a piece without an id goes on with the call before it.
                for piece in getattr(chunk, "tool_call_chunks", ()):
                    made += bool(piece["id"] or piece["name"])
                    piece["index"] = made if piece["index"] is None else piece["index"]
                reply = chunk if reply is None else reply + chunk
                self.listener.hear(chunk.text)
            if reply is None:
                raise ModelUnavailable(f"{self.choice.provider} gave no reply that reads; ask again")
        except Exception as error:
            fault = chat_models.fault_of(error, self.choice.provider)
            self._told(str(fault), reply, ok=False)
            raise fault from None
        called = ", ".join(call["name"] for call in reply.tool_calls)
        said = f"calls {called}" if called else f"an answer of {len(reply.text)} characters"
        self._told(said, reply, ok=bool(called or reply.text.strip()))
        # Some servers give every reply one id, by which messages would replace each other, and calls none.
        whole: Any = message_chunk_to_message(reply)
        calls = [{**one, "id": one["id"] or f"call-{secrets.token_hex(4)}"} for one in whole.tool_calls]
        return whole.model_copy(update={"id": None, "tool_calls": calls})

    def _told(self, text: str, reply: Any, *, ok: bool) -> None:
        self.listener.show(self.choice.told("question", text, (reply and reply.usage_metadata) or {}, ok=ok))

    def _consent(self, state: State) -> State:
        calls, quotes, refused = calls_of(state["messages"][-1]), dict[str, Quoted](), dict[str, str]()
        for one in calls:
            try:
                quote, is_put = self.toolbox.quote(one["name"], one["args"]), self._is_put(one)
                if quote or is_put:
                    quotes[one["id"]] = quote or Quoted(example_forwards=0, seconds=0.0)
            except MechaRuleError as error:
                refused[one["id"]] = f"error: {error}"
        spent, seconds = state.get("spent", 0.0), [quote.seconds for quote in quotes.values()]
        asked = [one for one in calls if one["id"] in quotes]
        if any(map(self._is_put, asked)) or (asked and not consent.pays(self.purse - spent, seconds)):
            priced = [(one["name"], one["args"]) for one in asked]
            answer = interrupt(consent.put(priced, "; ".join(quote.words for quote in quotes.values())))
            if answer is not True:
                refused |= {id: consent.not_run(answer, quote.words) for id, quote in quotes.items()}
                seconds = []
        told = [self._seen(one, _refusal(one, refused[one["id"]])) for one in calls if one["id"] in refused]
        return {"messages": [*told], "spent": spent + sum(each or 0.0 for each in seconds)}

    def _is_put(self, called: Any) -> bool:
        """Whether the person is asked whatever it costs."""
        return called["name"] == DECIDES and not self.decides

    async def _called(self, request: ToolCallRequest, execute: Callable[[Any], Awaitable[Any]]) -> Any:
        # One after another, so that facts are numbered in the order of the calls and one model is in memory.
        async with self._one_at_a_time:
            return self._seen(request.tool_call, await execute(request))

    def _seen(self, call: Any, message: ToolMessage) -> ToolMessage:
        """The result of a call, told as an event."""
        said = str(message.content) or next((one["sentence"] for one in message.artifact or ()), "")
        first, ok = said.partition("\n")[0][:_FIRST_LINE], message.status != "error"
        arguments = codec.canonical_json(call["args"])
        self.listener.show(events.ToolCalled(tool=call["name"], arguments=arguments, ok=ok, result=first))
        return message

    async def _check(self, state: State) -> State:
        messages, facts = state["messages"], cited_of(state["messages"])
        text = str(messages[-1].text).strip()
        people = [one for one in messages if isinstance(one, HumanMessage) and one.name != _CHECK]
        asked = "\n".join(str(one.text) for one in people)
        checked = prose.check(text, facts, asked, _refusals(messages), self.sheet)
        looked = state.get("looked", [])
        if self.look:
            checked, used = await second_look(self.model, checked, facts)
            looked = [*looked, used] if used else looked
        faults = [one for one in checked if one.fault]
        if faults and not state.get("repaired"):
            told = "\n".join(f"- {one.text}\n  {one.fault}" for one in faults)
            sent_back = HumanMessage(f"{said('talk.faults')}\n{told}\n{said('talk.again')}", name=_CHECK)
            return {"repaired": True, "messages": [sent_back], "looked": looked}
        return {
            "looked": looked,
            "answer": prose.with_marks(text, checked),
            "marks": [f"{one.text} {one.fault}" for one in faults],
            "cited": list(dict.fromkeys(id for one in checked for id in one.cites)),
        }

    def _answer(self, question: str, state: State, seconds: float) -> ToolResult:
        """The words with their marks, the facts that they cite folded below, what it took."""
        if not state["answer"]:
            raise ModelUnavailable("the model gave no answer; ask again, or another way")
        messages, facts, looked = state["messages"], cited_of(state["messages"]), state["looked"]
        replies = self._replies(messages)
        results = {one.tool_call_id: one for one in messages if isinstance(one, ToolMessage)}
        calls = [one for each in replies for one in calls_of(each)]
        cited = [facts[id] for id in state["cited"] if id in facts]
        used: list[Any] = [*(one.usage_metadata for one in replies if one.usage_metadata), *looked]
        read, written = (sum(one[what] for one in used) for what in chat_models.TOKENS)
        cached = sum(one.get("input_token_details", {}).get("cache_read", 0) for one in used)
        requests, dollars = len(replies) + len(looked), self.choice.dollars(read, written)
        usage = {"requests": plural(requests, "request"), "read": read, "cached": cached, "written": written}
        bill = said(
            "talk.bill", **usage, seconds=seconds, dollars="" if dollars is None else f", ${dollars:.4f}"
        )
        checked = f"every figure stands in the {plural(len(cited), 'fact')} cited"
        if marks := state["marks"]:
            checked = f"{plural(len(marks), 'sentence')} marked {prose.MARK}: not held by the facts cited"
        elif not cited:
            checked = "it cites no fact, and states no figure"
        data: dict[str, Any] = {
            "question": question,
            "answer": state["answer"],
            "checked": checked,
            "marks": marks,
            "tools": [
                {"tool": one["name"], "arguments": one["args"], "ok": results[one["id"]].status != "error"}
                for one in calls
            ],
            "cited": {one.id: one.sentence for one in cited},
            "certificates": list(ids_among(source for one in cited for source in one.sources)),
            "llm": self.choice.short,
            "requests": requests,
            "input_tokens": read,
            "cached_tokens": cached,
            "output_tokens": written,
            "seconds": seconds,
            "ablation_seconds": state.get("spent", 0.0),
            "dollars": dollars,
        }
        folded = ["Facts:", *(f"  [{one.id}] {one.sentence}" for one in cited)] if cited else []
        is_declined = any(str(one.content).startswith(consent.NOT_RUN) for one in results.values())
        return ToolResult(
            text="\n".join([state["answer"], "", *folded, f"{checked}. {self.choice.short}: {bill}."]),
            facts=tuple(Fact(sentence=one.sentence.removesuffix("."), sources=one.sources) for one in cited),
            exit_code=BudgetSpent.exit_code if is_declined else 0,
            data=data,
        )


async def _forget(saver: Any, thread: str) -> None:
    """Delete the steps of a question, those too that are still being written."""
    writing = asyncio.all_tasks() - {asyncio.current_task()}
    for task in writing:
        task.cancel()
    await asyncio.gather(*writing, return_exceptions=True)
    await saver.adelete_thread(thread)


def _after_consent(state: State) -> list[Send] | str:
    """The calls of the last turn that are not refused."""
    messages = state["messages"]
    refused = {one.tool_call_id for one in messages if isinstance(one, ToolMessage)}
    calls = next(calls_of(one) for one in reversed(messages) if isinstance(one, AIMessage))
    agreed = [one for one in calls if one["id"] not in refused]
    return [Send("tools", agreed)] if agreed else "ask"


def _refusal(call: Any, why: str) -> ToolMessage:
    return ToolMessage(content=why, name=call["name"], tool_call_id=call["id"], artifact=[], status="error")


def _refusals(messages: Sequence[AnyMessage]) -> list[prose.Cited]:
    """Why calls did not run, which has no id, with what was asked; what a line quotes is not the program's."""
    asked = codec.canonical_json([call["args"] for one in messages for call in calls_of(one)])
    lines = (str(one.content) for one in messages if isinstance(one, ToolMessage) and not one.artifact)
    return [prose.Cited(id="", sentence=re.sub(r"'[^']*'", "…", line), arguments=asked) for line in lines]


_FAULTS = {"contradicts": "the opposite of", "adds": "more than"}


class Verdict(BaseModel):
    """Whether a sentence follows from its facts."""

    number: int = Field(description="of the sentence")
    verdict: Literal["follows", "contradicts", "adds"]
    why: str = Field(default="", description="in a few words, where it does not follow")


class Verdicts(BaseModel):
    """One verdict a sentence."""

    verdicts: list[Verdict]


async def second_look(
    model: Any, checked: Sequence[prose.Checked], facts: Mapping[str, prose.Cited]
) -> tuple[tuple[prose.Checked, ...], dict[str, Any]]:
    """Each sentence that cites facts, compared with them by a model in one request, in any language; and what it took.

    One that says the opposite, or more than its facts, is marked so. A request that fails marks nothing and loses
    nothing: the comparison of figures stands.
    """
    sentences = {place: one for place, one in enumerate(checked) if one.cites and not one.fault}
    if not sentences:
        return tuple(checked), {}
    asked = []
    for place, one in sentences.items():
        asked += [f"{place}. {one.text}", "Facts:", *(f"[{id}] {facts[id].sentence}" for id in one.cites), ""]
    system, _ = prompts.load("second_look").fill()
    looker = model.with_structured_output(Verdicts, include_raw=True)
    try:
        reply: Any = await looker.ainvoke([SystemMessage(system), HumanMessage("\n".join(asked))])
    except Exception as error:
        return tuple(checked), chat_models.used_by(error)
    faults = {}
    for verdict in reply["parsed"].verdicts if reply["parsed"] else ():
        if verdict.verdict in _FAULTS and verdict.number in sentences:
            why = f": {verdict.why}" if verdict.why else ""
            faults[verdict.number] = f"says {_FAULTS[verdict.verdict]} its facts{why}"
    told = tuple(replace(one, fault=faults.get(place, one.fault)) for place, one in enumerate(checked))
    return told, dict(reply["raw"].usage_metadata or {})
