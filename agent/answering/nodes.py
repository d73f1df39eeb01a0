"""Nodes of a conversation: ask the model, call the tools it names, check what it answers."""

from __future__ import annotations

from typing import Any, cast

from langgraph.runtime import Runtime

import prompts
from agent.answering.checker import check
from agent.answering.memory import PROMPT
from agent.llm.protocol import Request, ToolCall, Turn
from agent.state import Consulted, ConversationRuntime, ConversationState, Said
from mecharule_ops.codec import canonical_json
from mecharule_ops.errors import MechaRuleError
from mecharule_ops.events import LONGEST_MESSAGE, ToolCalled

_LONGEST_RESULT = 6000
_LIMIT = (
    "No more tool calls are allowed for this question. Answer from what you have, or say what is missing."
)


def ask(state: ConversationState, runtime: Runtime[ConversationRuntime]) -> ConversationState:
    """The model's next turn: tool calls, or the draft of an answer; a fault ends the question with its line."""
    context = runtime.context
    spent = len(state.get("consulted", [])) >= state["most_calls"]
    system, _ = prompts.load(PROMPT).fill(run=context.run, facts=context.facts)
    turns = tuple(map(_turn, state["turns"]))
    if spent:
        turns = (*turns, Turn(role="user", text=_LIMIT))
    tools = () if spent else context.toolbox.specs
    request = Request(system=system, turns=turns, tools=tools, purpose="question")
    try:
        reply = context.asker.ask(request, context.on_text)
    except MechaRuleError as fault:
        return {**_kept(state), "ended": f"the model could not be asked: {fault}"}
    if spent and reply.calls:
        return {**_kept(state), "ended": f"the model went on calling tools after {state['most_calls']} calls"}
    said: Said = {
        "role": "assistant",
        "text": reply.text,
        "calls": [
            {"id": call.id, "name": call.name, "arguments": dict(call.arguments)} for call in reply.calls
        ],
    }
    draft = "" if reply.calls else reply.text
    empty = not reply.calls and not reply.text.strip()
    ended = "the model gave an empty answer" if empty else ""
    return {**_kept(state), "turns": [*state["turns"], said], "draft": draft, "ended": ended}


def consult(state: ConversationState, runtime: Runtime[ConversationRuntime]) -> ConversationState:
    """The results of the calls that the model made; an error is a text that it can act on."""
    consulted = list(state.get("consulted", []))
    turns = list(state["turns"])
    for call in turns[-1]["calls"]:
        name, arguments = str(call["name"]), cast(dict[str, object], call["arguments"])
        runtime.context.on_text(f"\n▸ tool {name}\n")
        if len(consulted) >= state["most_calls"]:
            result: Consulted = _refused(name, arguments, _LIMIT)
        else:
            result = _called(runtime.context, name, arguments)
            consulted.append(result)
            runtime.context.emit(_told(result))
        turns.append({"role": "tool", "answers": str(call["id"]), "text": _shown(result)})
    return {**_kept(state), "turns": turns, "consulted": consulted}


def verify(state: ConversationState, runtime: Runtime[ConversationRuntime]) -> ConversationState:
    """The answer after every number and unit was compared with what it cites."""
    evidence = runtime.context.toolbox.evidence()
    for result in state.get("consulted", []):
        if result["ok"]:
            evidence.add_result(runtime.context.run, result["data"], result["text"])
    checked = check(state["draft"], evidence)
    return {
        **_kept(state),
        "answer": checked.text,
        "faults": [str(mark) for mark in checked.marks],
        "cited": list(checked.cited),
    }


def _told(result: Consulted) -> ToolCalled:
    first = next((line for line in result["text"].splitlines() if line.strip()), "")
    return ToolCalled(
        tool=result["name"],
        arguments=canonical_json(result["arguments"]),
        ok=result["ok"],
        result=first.removeprefix("error: ")[:LONGEST_MESSAGE],
    )


def _called(context: ConversationRuntime, name: str, arguments: dict[str, object]) -> Consulted:
    known = [tool.name for tool in context.toolbox.specs]
    if name not in known:
        return _refused(name, arguments, f"expected a tool of: {', '.join(known)}; got {name!r}")
    try:
        result = context.toolbox.call(name, arguments)
    except MechaRuleError as error:
        return _refused(name, arguments, str(error))
    data = cast(dict[str, object], dict(result.data))
    return {"name": name, "arguments": arguments, "data": data, "text": result.text, "ok": True}


def _refused(name: str, arguments: dict[str, object], reason: str) -> Consulted:
    return {"name": name, "arguments": arguments, "data": {}, "text": f"error: {reason}", "ok": False}


def _shown(result: Consulted) -> str:
    text = result["text"]
    if len(text) <= _LONGEST_RESULT:
        return text
    return text[:_LONGEST_RESULT] + f"\n(cut: {len(text) - _LONGEST_RESULT} characters more)"


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


def _kept(state: ConversationState) -> ConversationState:
    return cast(ConversationState, dict(state))
