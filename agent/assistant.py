"""The one loop of the assistant: model ⇄ tools, with a price put to the person, and a check of the words at the end.

    ask ─┬→ consent → tools → number → ask …
         └→ check ─┬→ ask (once: what its facts do not hold is sent back)
                   └→ end

`consent` prices the calls of a turn before any runs: within the purse they run and are billed, beyond it the graph
interrupts and the person answers. It is a node of its own, since an interrupted node runs again when the graph goes on.
`check` marks what still fails; nothing is removed. A state is checkpointed at each step, so a question that was killed
goes on where it was.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypedDict

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command, interrupt
from pydantic import BaseModel, Field

import prompts
from agent.choice import MOST_TOKENS
from agent.consent import PURSE, in_words, not_run, pays
from agent.model_faults import ModelFault, fault_of
from agent.prose import Checked, Cited, check, cited_in, with_marks
from agent.toolbox import Toolbox, calls_of, cited_of, numbered
from mecharule_ops.codec import canonical_json
from mecharule_ops.errors import MechaRuleError
from tools.result import Quoted

PROMPT = "assistant"
MOST_TURNS = 12
"""Replies of the model to one question, the repair among them."""


class State(TypedDict, total=False):
    """A question on its way to its answer."""

    messages: Annotated[list[AnyMessage], add_messages]
    question: str
    refused: dict[str, str]
    """Calls of this turn that do not run, by id, each with the reason."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Assistant:
    """A model with the tools of one run.

    `look` compares each sentence with the facts that it cites in one further request (`second_look`).
    """

    model: BaseChatModel
    provider: str
    toolbox: Toolbox
    sheet: str
    purse: float = PURSE
    look: bool = False
    most_tokens: int = MOST_TOKENS
    """Read and written: from there on the model answers with what it has."""
    hear: Callable[[str], None] = field(default=lambda text: None)
    """Hears the model's unchecked words as they come."""

    def graph(self, saver: Any = None) -> CompiledStateGraph[Any, Any, Any, Any]:
        """The loop, checkpointed by `saver`."""
        tools = self.toolbox.tools()
        graph = StateGraph(State)
        graph.add_node("ask", self._asking(self.model.bind_tools(tools)))
        graph.add_node("consent", self._consent)
        graph.add_node("tools", ToolNode(tools, awrap_tool_call=_unless_refused))
        graph.add_node("number", _number)
        graph.add_node("check", self._check)
        graph.add_edge(START, "ask")
        graph.add_conditional_edges("ask", _after_asking, ["consent", "check"])
        graph.add_edge("consent", "tools")
        graph.add_edge("tools", "number")
        graph.add_edge("number", "ask")
        graph.add_conditional_edges("check", lambda state: END if "answer" in state else "ask", ["ask", END])
        return graph.compile(checkpointer=saver)

    def begin(self, question: str, earlier: Sequence[tuple[str, str]] = ()) -> State:
        """The state of a new question after the questions and answers before it."""
        system, _ = prompts.load(PROMPT).fill(sheet=self.sheet)
        # What stays the same from turn to turn is asked to be cached, where a provider needs to be asked.
        cached: list[str | dict[Any, Any]] = [
            {"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}
        ]
        told: list[AnyMessage] = [SystemMessage(cached)]
        for asked, answered in earlier:
            told += [HumanMessage(asked), AIMessage(answered)]
        return {"messages": [*told, HumanMessage(question)], "question": question, "spent": 0.0}

    def _asking(self, model: Any) -> Any:
        async def ask(state: State) -> State:
            replies = replies_in(state["messages"])
            used = sum(one.usage_metadata["total_tokens"] for one in replies if one.usage_metadata)
            last = len(replies) >= MOST_TURNS - 1 or used >= self.most_tokens
            messages = [*state["messages"], *([HumanMessage(_LAST)] if last else [])]
            reply = await self._reply(model, messages)
            message = AIMessage(
                content=reply.content,
                tool_calls=[] if last else reply.tool_calls,
                usage_metadata=reply.usage_metadata,
                additional_kwargs=reply.additional_kwargs,
                response_metadata={**reply.response_metadata, _OWN: True},
            )
            return {"messages": [message]}

        return ask

    async def _reply(self, model: Any, messages: Sequence[AnyMessage]) -> Any:
        """A reply as its pieces make it. Raises `ModelFault` with what it took as far as it came."""
        reply: Any = None
        made = -1
        try:
            async for chunk in model.astream(messages):
                # Some servers number no calls: a piece without an id goes on with the call before it.
                for piece in getattr(chunk, "tool_call_chunks", ()):
                    made += bool(piece["id"])
                    piece["index"] = made if piece["index"] is None else piece["index"]
                reply = chunk if reply is None else reply + chunk
                self.hear(chunk.text)
        except Exception as error:
            fault = fault_of(error, self.provider)
            if used := reply and reply.usage_metadata:
                fault.read, fault.written = used["input_tokens"], used["output_tokens"]
            raise fault from None
        if reply is None:
            raise ModelFault(f"{self.provider} gave no reply that reads; ask again")
        return reply

    def _consent(self, state: State) -> State:
        calls = calls_of(state["messages"][-1])
        quotes: dict[str, Quoted] = {}
        refused: dict[str, str] = {}
        for one in calls:
            try:
                if (quote := self.toolbox.quote(one["name"], one["args"])) is not None:
                    quotes[one["id"]] = quote
            except MechaRuleError as error:
                refused[one["id"]] = f"error: {error}"
        spent, seconds = state.get("spent", 0.0), [quote.seconds for quote in quotes.values()]
        if quotes and not pays(self.purse - spent, seconds):
            said = [in_words(one["name"], one["args"]) for one in calls if one["id"] in quotes]
            words = "; ".join(quote.words for quote in quotes.values())
            answer = interrupt({"calls": said, "words": words})
            if answer is not True:
                refused |= {id: not_run(answer, quote.words) for id, quote in quotes.items()}
                seconds = []
        return {"refused": refused, "spent": spent + sum(each or 0.0 for each in seconds)}

    async def _check(self, state: State) -> State:
        messages = state["messages"]
        text = str(messages[-1].text).strip()
        facts = cited_of(messages)
        checked = check(text, facts, _asked(messages), _refusals(messages), self.sheet)
        looked = state.get("looked", [])
        if self.look:
            checked, used = await second_look(self.model, checked, facts)
            looked = [*looked, used] if used else looked
        faults = [one for one in checked if one.fault]
        if faults and not state.get("repaired"):
            told = "\n".join(f"- {one.text}\n  {one.fault}" for one in faults)
            sent_back = HumanMessage(_REPAIR.format(faults=told), name=_CHECK)
            return {"repaired": True, "messages": [sent_back], "looked": looked}
        return {
            "looked": looked,
            "answer": with_marks(text, checked),
            "marks": [f"{one.text} {one.fault}" for one in faults],
            "cited": list(cited_in(checked)),
        }


_OWN = "of this question"
"""Marks the replies of this question among those of the conversation before."""
_CHECK = "check"
"""Who says what the program sends back, which is nothing that a person said."""
_LAST = "Answer now with what you have; no further call will run."
_REPAIR = (
    "A program compared your answer with the facts that it cites. These sentences do not hold:\n{faults}\n"
    "Write the whole answer again: correct them, cite the facts that hold them, or leave them out."
)


def replies_in(messages: Sequence[AnyMessage]) -> list[AIMessage]:
    """The model's replies to this question."""
    return [one for one in messages if isinstance(one, AIMessage) and _OWN in one.response_metadata]


def _after_asking(state: State) -> Literal["consent", "check"]:
    return "consent" if calls_of(state["messages"][-1]) else "check"


async def _unless_refused(
    request: ToolCallRequest, execute: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
) -> ToolMessage | Command[Any]:
    call = request.tool_call
    why = request.state.get("refused", {}).get(call["id"])
    if why is None:
        return await execute(request)
    return ToolMessage(content=why, name=call["name"], tool_call_id=call["id"] or "", artifact=[])


def _number(state: State) -> State:
    """The results of this turn with their facts numbered; messages of the same id replace those before."""
    messages = state["messages"]
    begin = (
        next(place for place in range(len(messages) - 1, -1, -1) if isinstance(messages[place], AIMessage))
        + 1
    )
    new = [one for one in messages[begin:] if isinstance(one, ToolMessage)]
    return {"messages": list(numbered(messages[:begin], new))}


def _asked(messages: Sequence[AnyMessage]) -> str:
    """What the person has said."""
    said = (one for one in messages if isinstance(one, HumanMessage) and one.name != _CHECK)
    return "\n".join(str(one.text) for one in said)


def _refusals(messages: Sequence[AnyMessage]) -> tuple[Cited, ...]:
    """Of calls that did not run what was asked and why not, which have no id; what they quote is not the program's."""
    calls = {call["id"]: call["args"] for one in messages for call in calls_of(one)}
    return tuple(
        Cited(
            id="",
            sentence=re.sub(r"'[^']*'", "…", str(one.text)),
            arguments=canonical_json(calls.get(one.tool_call_id, {})),
        )
        for one in messages
        if isinstance(one, ToolMessage) and not one.artifact
    )


class Verdict(BaseModel):
    """Whether a sentence follows from its facts."""

    number: int = Field(description="of the sentence")
    verdict: Literal["follows", "contradicts", "adds"]
    why: str = Field(default="", description="in a few words, where it does not follow")


class Verdicts(BaseModel):
    """One verdict a sentence."""

    verdicts: list[Verdict]


async def second_look(
    model: BaseChatModel, checked: Sequence[Checked], facts: Mapping[str, Cited]
) -> tuple[tuple[Checked, ...], dict[str, Any]]:
    """Each sentence that cites facts, compared with them by a model in one request, in any language; and what it took.

    One that says the opposite, or more than its facts, is marked so. A request that fails marks nothing and loses
    nothing: the comparison of figures stands.
    """
    sentences = {place: one for place, one in enumerate(checked) if one.cites and not one.fault}
    if not sentences:
        return tuple(checked), {}
    asked = "\n\n".join(
        f"{place}. {one.text}\nFacts:\n" + "\n".join(f"[{id}] {facts[id].sentence}" for id in one.cites)
        for place, one in sentences.items()
    )
    system, _ = prompts.load("second_look").fill()
    looker = model.with_structured_output(Verdicts, include_raw=True)
    try:
        reply: Any = await looker.ainvoke([SystemMessage(system), HumanMessage(asked)])
    except Exception:
        return tuple(checked), {}
    faults = {
        one.number: f"{'says the opposite of' if one.verdict == 'contradicts' else 'says more than'} its facts"
        + (f": {one.why}" if one.why else "")
        for one in (reply["parsed"].verdicts if reply["parsed"] else ())
        if one.verdict != "follows" and one.number in sentences
    }
    told = tuple(replace(one, fault=faults.get(place, one.fault)) for place, one in enumerate(checked))
    return told, dict(reply["raw"].usage_metadata or {})
