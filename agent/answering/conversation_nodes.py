"""Nodes of a conversation: ask the model, call the tools it names, check what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, cast

from langgraph.runtime import Runtime

import prompts
from agent.answering.conversation_memory import PROMPT
from agent.answering.facts import listed
from agent.answering.prose import read
from agent.llm.calls import calls_in, looks_like_a_call
from agent.llm.faults import unasked
from agent.llm.protocol import Request, ToolCall, Turn
from agent.state import Consulted, ConversationRuntime, ConversationState, Said
from mecharule_ops.codec import canonical_json
from mecharule_ops.errors import MechaRuleError
from mecharule_ops.events import LONGEST_MESSAGE, ToolCalled
from mecharule_ops.saying.fact import Fact

_MOST_FACTS = 12
"""Facts of one result that a model is shown."""
_MOST_WORDS = 600
"""Tokens of a reply: an answer is short, and a call is shorter."""
_NO_CALL = (
    "Your reply could not be used: it is no listed tool with arguments that fit, and no answer in words. "
    'Write {"tool": "NAME", "arguments": {}} or an answer.'
)
_NO_FACT = "Your reply could not be used: it names no fact. Write ⟦f1⟧ where fact f1 belongs, or call a tool."
_REPEATED = "this tool was called with these arguments before; its facts stand above. Answer from them."
_LIMIT = (
    "No more tool calls are allowed for this question. Answer from what you have, or say what is missing."
)


def ask(state: ConversationState, runtime: Runtime[ConversationRuntime]) -> ConversationState:
    """The model's next turn: tool calls, or the draft of an answer; a fault ends the question with its line.

    A call that the model wrote into its text is taken for one where it reads as exactly one; machine text that does
    not is sent back once.
    """
    context = runtime.context
    consulted = state.get("consulted", [])
    spent = len(consulted) >= state["most_calls"] or any(one["text"] == _REPEATED for one in consulted)
    request = first_request(context, state, spent=spent)
    try:
        reply = context.asker.ask(request, context.on_text)
    except MechaRuleError as fault:
        return {"ended": unasked(fault)}
    calls = reply.calls or calls_in(reply.text, request.tools)
    if spent and reply.calls:
        return {"ended": f"the model went on calling tools after {len(consulted)} calls"}
    said: Said = {
        "role": "assistant",
        "text": reply.text if reply.calls or not calls else "",
        "calls": [{"id": call.id, "name": call.name, "arguments": dict(call.arguments)} for call in calls],
    }
    if not calls and not reply.text.strip():
        return {"draft": "", "ended": "the model gave an empty answer"}
    if not calls and looks_like_a_call(reply.text):
        return _sent_back(state, said, _NO_CALL)
    turns = [*state["turns"], said]
    return {"turns": turns, "draft": "" if calls else reply.text, "ended": ""}


def first_request(context: ConversationRuntime, state: ConversationState, *, spent: bool = False) -> Request:
    """What the model is sent for a state: the rules, the turns, and the few tools that fit the question."""
    system, _ = prompts.load(PROMPT).fill(run=context.run)
    turns = tuple(map(_turn, state["turns"]))
    if spent:
        turns = (*turns, Turn(role="user", text=_LIMIT))
    tools = () if spent else context.toolbox.specs(state["question"])
    return Request(system=system, turns=turns, tools=tools, max_tokens=_MOST_WORDS, purpose="question")


def consult(state: ConversationState, runtime: Runtime[ConversationRuntime]) -> ConversationState:
    """The results of the calls that the model made, as facts; an error is a text that it can act on.

    The same call again is not made: it ends the calls of the question.
    """
    consulted, facts = list(state.get("consulted", [])), list(state.get("facts", []))
    turns = list(state["turns"])
    for call in turns[-1]["calls"]:
        name, arguments = str(call["name"]), cast(dict[str, object], call["arguments"])
        runtime.context.on_text(f"\n▸ tool {name}\n")
        if len(consulted) >= state["most_calls"]:
            result: Consulted = _refused(name, arguments, _LIMIT)
        elif any((one["name"], one["arguments"]) == (name, arguments) for one in consulted):
            result = _refused(name, arguments, _REPEATED)
            consulted.append(result)
        else:
            result, stated = _called(runtime.context, name, arguments, len(facts))
            facts += [dict(asdict(fact)) for fact in stated]
            consulted.append(result)
            runtime.context.emit(_told(result))
        text = result["text"] if result["ok"] else f"error: {result['text']}"
        turns.append({"role": "tool", "answers": str(call["id"]), "text": text})
    return {"turns": turns, "consulted": consulted, "facts": facts}


def verify(state: ConversationState, runtime: Runtime[ConversationRuntime]) -> ConversationState:
    """The answer with its facts put in; one that names none is sent back once."""
    prose = read(state["draft"], [fact_from(kept) for kept in state.get("facts", [])])
    if not prose.facts:
        return {"answer": "", **_sent_back(state, None, _NO_FACT)}
    return {
        "answer": prose.text,
        "faults": list(prose.left_out),
        "checked": prose.outcome(),
        "cited": list(prose.cited),
    }


def fact_from(kept: Mapping[str, object]) -> Fact:
    """A fact from its JSON."""
    listed = {name: tuple(cast(list[str], kept[name])) for name in ("sources", "kinds")}
    return Fact(**{**kept, **listed})  # type: ignore[arg-type]


def _sent_back(state: ConversationState, said: Said | None, reason: str) -> ConversationState:
    """One repair turn that says what was wrong; the second time the question ends."""
    if state.get("repaired"):
        return {"draft": "", "ended": "the model gave no answer that can be shown"}
    turns = [*state["turns"], *([said] if said else []), cast(Said, {"role": "user", "text": reason})]
    return {"turns": turns, "draft": "", "repaired": True, "ended": ""}


def _told(result: Consulted) -> ToolCalled:
    first = next((line for line in result["text"].splitlines() if line.strip()), "")
    return ToolCalled(
        tool=result["name"],
        arguments=canonical_json(result["arguments"]),
        ok=result["ok"],
        result=first[:LONGEST_MESSAGE],
    )


def _called(
    context: ConversationRuntime, name: str, arguments: dict[str, object], known: int
) -> tuple[Consulted, tuple[Fact, ...]]:
    """What a call gave, and its facts; `known` facts have names already."""
    try:
        result = context.toolbox.call(name, arguments)
        facts = context.toolbox.facts(name, result)[:_MOST_FACTS]
    except MechaRuleError as error:
        return _refused(name, arguments, str(error)), ()
    text = listed(facts, known + 1)
    return {"name": name, "arguments": arguments, "text": text, "ok": True}, facts


def _refused(name: str, arguments: dict[str, object], reason: str) -> Consulted:
    return {"name": name, "arguments": arguments, "text": reason, "ok": False}


def _turn(said: Said) -> Turn:
    calls = cast(list[dict[str, Any]], said.get("calls", []))
    role: Any = said["role"]
    return Turn(
        role=role,
        text=said["text"],
        calls=tuple(
            ToolCall(id=call["id"], name=call["name"], arguments=call["arguments"]) for call in calls
        ),
        answers=said.get("answers", ""),
    )
