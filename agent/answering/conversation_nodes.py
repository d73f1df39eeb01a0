"""Nodes of a conversation: ask the model, call the tools it names, put in the facts that it answers with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, cast

from langgraph.runtime import Runtime

import prompts
from agent.answering.conversation_memory import PROMPT
from agent.answering.facts import facts_from, listed
from agent.answering.prose import Prose, composed, is_empty_of_claims, read, restated
from agent.answering.specs import ANSWER, FIND, answer_spec, numbers_in
from agent.llm.calls import calls_in, looks_like_a_call
from agent.llm.faults import unasked
from agent.llm.protocol import Request, ToolCall, Turn
from agent.state import Consulted, ConversationRuntime, ConversationState, Said
from mecharule_ops.codec import canonical_json
from mecharule_ops.errors import MechaRuleError
from mecharule_ops.events import LONGEST_MESSAGE, ToolCalled
from mecharule_ops.saying.fact import Fact

MOST_REPAIRS = 3
"""Replies of a question that are sent back; the asker's budget bounds them too."""
_MOST_FACTS, _MOST_OF_SMALL = 12, 8
"""Facts of one result that a model is shown, and one of a small context."""
_NO_CALL = (
    "Your reply could not be used: it is no listed tool with arguments that fit, and no answer. "
    'Write {"tool": "NAME", "arguments": {}}.'
)
_NO_FACT = (
    "Your reply could not be used: it names no fact. Call a tool, or answer with the numbers of facts, or say what is "
    "missing."
)
_WITH_OTHERS = "answer when the results of the other calls are there"
_REPEATED = "called before with these arguments; its result was:\n"
_LIMIT = (
    "No more tool calls are allowed for this question. Answer with the facts above, or say what is missing."
)
UNANSWERED = "the model gave no answer that can be shown"
_MISSING = "The model found no fact that answers this."


def ask(state: ConversationState, runtime: Runtime[ConversationRuntime]) -> ConversationState:
    """The model's next turn: tool calls, or an answer; a fault ends the question with its line.

    A call that the model wrote into its text is taken for one where it reads as exactly one; machine text that does
    not is sent back.
    """
    context = runtime.context
    spent = state.get("made", 0) >= state["most_calls"]
    request = next_request(context, state, spent=spent)
    try:
        reply = context.asker.ask(request, context.on_text)
    except MechaRuleError as fault:
        return {"ended": unasked(fault)}
    calls = reply.calls or calls_in(reply.text, request.tools)
    answers = [call for call in calls if call.name == ANSWER]
    is_answer = len(answers) == len(calls) == 1
    if spent and calls and not is_answer:
        return {"ended": f"the model went on calling tools after {state.get('made', 0)} calls"}
    said: Said = {
        "role": "assistant",
        "text": reply.text if reply.calls or not calls else "",
        "calls": [{"id": call.id, "name": call.name, "arguments": dict(call.arguments)} for call in calls],
        # A call read out of the text has no id of the provider's, so that its result could not follow what is kept.
        "kept": [dict(item) for item in reply.kept] if reply.calls or not calls else [],
    }
    if not calls and not reply.text.strip():
        return {"draft": "", "ended": "the model gave an empty answer"}
    if not calls and looks_like_a_call(reply.text):
        return _sent_back({**state, "turns": [*state["turns"], said]}, _NO_CALL)
    return {
        "turns": [*state["turns"], said],
        "draft": "" if calls else reply.text,
        "reply": dict(answers[0].arguments) if is_answer else {},
        "ended": "",
    }


def next_request(context: ConversationRuntime, state: ConversationState, *, spent: bool = False) -> Request:
    """What the model is sent for a state: the rules, what the run is about, the turns, and tools to go on with."""
    system, _ = prompts.load(PROMPT).fill(run=context.run, about=context.about)
    turns = tuple(map(_turn, state["turns"]))
    if spent:
        turns = (*turns, Turn(role="user", text=_LIMIT))
    tools = () if spent else context.toolbox.specs(state["question"], state.get("found", []))
    if context.toolbox.is_small:
        # Of temperature 0, it would make the same call until the last one allowed.
        tools = tuple(tool for tool in tools if tool.name not in state.get("repeated", []))
    tools = (*tools, answer_spec(len(state.get("facts", []))))
    return Request(system=system, turns=turns, tools=tools, purpose="question")


def consult(state: ConversationState, runtime: Runtime[ConversationRuntime]) -> ConversationState:
    """The results of the calls that the model made, as facts; an error is a text that it can act on.

    The same call again is not made: it gets its former result.
    """
    context = runtime.context
    consulted, facts = list(state.get("consulted", [])), list(state.get("facts", []))
    turns, found, made = list(state["turns"]), list(state.get("found", [])), state.get("made", 0)
    repeated = list(state.get("repeated", []))
    for call in turns[-1]["calls"]:
        name, arguments = str(call["name"]), cast(dict[str, object], call["arguments"])
        context.on_text(f"\n▸ tool {name}\n")
        earlier = [one for one in consulted if (one["name"], one["arguments"]) == (name, arguments)]
        if name == ANSWER:
            text = f"error: {_WITH_OTHERS}"
        elif made >= state["most_calls"]:
            text = f"error: {_LIMIT}"
        elif name == FIND:
            names, text = context.toolbox.about(str(arguments.get("about", "")))
            found = list(dict.fromkeys([*found, *names]))
        elif earlier:
            text = f"{_REPEATED}{_shown(earlier[0])}"
            repeated.append(name)
        else:
            result, stated = _called(context, name, arguments, len(facts))
            facts += [dict(asdict(fact)) for fact in stated]
            consulted.append(result)
            context.emit(_told(result))
            text = _shown(result)
        made += 1
        turns.append({"role": "tool", "answers": str(call["id"]), "text": text})
    now: ConversationState = {"turns": turns, "consulted": consulted, "facts": facts}
    return {**now, "found": found, "made": made, "repeated": repeated}


def verify(state: ConversationState, runtime: Runtime[ConversationRuntime]) -> ConversationState:
    """The answer with its facts put in, or what is missing; one that has neither is sent back.

    A reply that names no fact, but whose every figure is in facts, is answered by these.
    """
    facts, reply = facts_from(state.get("facts", [])), state.get("reply", {})
    if reply:
        prose = composed(numbers_in(reply.get("facts", "")), str(reply.get("sentence", "")), facts)
        missing = str(reply.get("missing", "")).strip()
        if not prose.facts and missing:
            return _missing(missing, facts)
    else:
        prose = read(state["draft"], facts)
        if not prose.facts and (stated := restated(state["draft"], facts)):
            prose = replace(prose, facts=stated)
    if not prose.facts:
        return {"answer": "", **_sent_back(state, _NO_FACT)}
    return _answered(prose)


def _answered(prose: Prose, text: str | None = None) -> ConversationState:
    return {
        "answer": prose.text if text is None else text,
        "faults": list(prose.left_out),
        "checked": prose.outcome(),
        "cited": list(prose.cited),
    }


def _missing(words: str, facts: Sequence[Fact]) -> ConversationState:
    """What a model says is missing, where its words state nothing, and under it what its tools state."""
    holds = is_empty_of_claims(words)
    prose = Prose(sentence=words if holds else "", facts=tuple(facts), left_out=() if holds else (words,))
    said = f"{_MISSING} What is missing, in its words: {words.rstrip('.')}." if holds else _MISSING
    under = ["Its tools state:", *(fact.cited for fact in facts)] if facts else []
    return _answered(prose, "\n".join([said, *under]))


def _sent_back(state: ConversationState, reason: str) -> ConversationState:
    """A repair turn that says what was wrong with the last; after a few of them the question ends."""
    repairs = state.get("repairs", 0) + 1
    if repairs > MOST_REPAIRS:
        return {"draft": "", "reply": {}, "ended": UNANSWERED}
    calls = state["turns"][-1].get("calls", [])
    told: list[Said] = [{"role": "tool", "answers": str(call["id"]), "text": reason} for call in calls]
    turns = [*state["turns"], *(told or [cast(Said, {"role": "user", "text": reason})])]
    return {"turns": turns, "draft": "", "reply": {}, "repairs": repairs, "ended": ""}


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
        most = _MOST_OF_SMALL if context.toolbox.is_small else _MOST_FACTS
        facts = context.toolbox.facts(name, result)[:most]
    except MechaRuleError as error:
        return {"name": name, "arguments": arguments, "text": str(error), "ok": False}, ()
    return {"name": name, "arguments": arguments, "text": listed(facts, known + 1), "ok": True}, facts


def _shown(result: Consulted) -> str:
    return result["text"] if result["ok"] else f"error: {result['text']}"


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
        kept=tuple(said.get("kept", [])),
    )
