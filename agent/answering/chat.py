"""Questions about a run: the router first, then a language model, whose facts are put in by name.

What the router wholly understands is answered by its tool at once, and the model may add to it. What it does not goes
to the model with the few tools that fit; a model that fails gives way to the router again, and the answer says so.
What was asked and answered is kept in the run file; a question under way is checkpointed beside it.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import prompts
from agent.answering import conversation
from agent.answering.conversation import laid_out
from agent.answering.facts import listed
from agent.answering.memory import PROMPT, Exchange, Memory
from agent.answering.offers import fillings, fitting
from agent.answering.prose import Prose, read
from agent.answering.router import understand
from agent.answering.toolbox import RunToolbox
from agent.llm.asking import Asker
from agent.llm.choice import Choice, choose, make_model
from agent.llm.faults import unasked
from agent.llm.protocol import OnText, Request, Turn, unheard
from agent.state import ConversationInput, ConversationRuntime, ConversationState, Said
from mecharule_ops.codec import canonical_json
from mecharule_ops.errors import MechaRuleError, StoreError
from mecharule_ops.events import Event
from mecharule_ops.findings.records import Findings
from mecharule_ops.pipeline.opening import findings_of, opened
from tools.registry import Tell
from tools.result import ToolResult

if TYPE_CHECKING:
    from langgraph.checkpoint.sqlite import SqliteSaver

Show = Callable[[Event], None]
ADDING = "add"
"""Of what a model adds to an answer of the router."""
MOST_CALLS = 4
"""Tool calls a question."""
MOST_FACTS = 10
"""Facts of an answer that a model is shown to add to."""
MOST_ADDED = 200
"""Tokens of an addition."""


def ask(
    run: str,
    question: str,
    tell: Tell = lambda line: None,
    *,
    llm: str | None = None,
    earlier: Sequence[Exchange] | None = (),
    on_text: OnText = unheard,
    show: Show = lambda event: None,
    should_stop: Callable[[], bool] | None = None,
    budget: int | None = None,
    environment: Mapping[str, str] = os.environ,
) -> ToolResult:
    """The answer as text and data, by the model that flag, environment or config file choose.

    `earlier` None follows on what was asked about the run before; `on_text` hears the model's unchecked words as they
    come, `show` the events. `should_stop` gives up what the model is asked, inside a request too; `budget` bounds its
    tokens. Raises what choosing a model or opening the run raises; a model that fails is told about, not raised.
    """
    choice = choose(llm, environment, budget)
    model = make_model(choice, environment)
    memory = Memory(run, show, tell)
    if model is None:
        result = conversation.ask(run, question, tell, who=str(choice))
        memory.keep(result)
        return result
    asker = Asker(
        model=model,
        sleep=time.sleep,
        price=choice.price,
        most_tokens=choice.most_tokens,
        emit=memory.emit,
        should_stop=should_stop,
    )
    before = memory.exchanges() if earlier is None else earlier
    return answer(run, question, asker, choice, tell, before, on_text, memory)


def answer(
    run: str,
    question: str,
    asker: Asker,
    choice: Choice,
    tell: Tell,
    earlier: Sequence[Exchange] = (),
    on_text: OnText = unheard,
    memory: Memory | None = None,
) -> ToolResult:
    """The model's checked answer, or the router's with the reason why the model gave none.

    A question that was killed continues at its node when it is asked again: no reply and no tool call is paid twice.
    """
    from agent.graph import conversation_graph, run_to_end

    memory = memory or Memory(run, lambda event: None, tell)
    with opened(run) as open_run:
        findings, path = findings_of(open_run), str(open_run.store.path)
    if understand(question).routes or question.strip() == conversation.ALL:
        return _answered_and_added(path, question, asker, choice, tell, on_text, memory)
    runtime = ConversationRuntime(
        asker=asker,
        toolbox=RunToolbox(path, findings.run, tell),
        run=findings.run,
        on_text=on_text,
        emit=memory.emit,
    )
    begin: ConversationInput = {
        "turns": _turns(earlier, question),
        "question": question,
        "most_calls": MOST_CALLS,
    }
    thread = _thread(asker.model.name, begin)
    with ExitStack() as stack:
        saver = _saver(stack, Path(path), tell)
        state = cast(ConversationState, run_to_end(conversation_graph(saver), begin, runtime, thread))
        if state["ended"]:
            tell(f"{state['ended']}; answered without it")
            who = f"{choice}; it gave no answer"
            offline = conversation.ask(path, question, tell, who=who)
            result = _without(offline, who, choice, state["ended"], asker)
        else:
            result = _result(findings, path, question, choice, state, asker)
        memory.keep(result, _entry(question, asker, state, PROMPT), state.get("cited", []))
        if saver is not None:
            saver.delete_thread(thread)
    return result


def _answered_and_added(
    path: str,
    question: str,
    asker: Asker,
    choice: Choice,
    tell: Tell,
    on_text: OnText,
    memory: Memory,
) -> ToolResult:
    """The router's answer, at once; then what the model adds to its facts, if it adds something without a fault.

    An addition is asked for once: nobody waits for a second try of what can be left out.
    """
    who = f"{choice}; answered by rules"
    offline = conversation.ask(path, question, tell, who=who)
    on_text(f"{offline.data['answer']}\n")
    prose, ended = None, ""
    if offline.facts:
        try:
            said = asker.ask(_adding(offline), on_text, tries=1).text
            prose = read(said, offline.facts, str(offline.data["answer"]))
        except MechaRuleError as fault:
            ended = unasked(fault)
            tell(f"{ended}; answered without it")
    state: ConversationState = {"ended": ended, "faults": []}  # type: ignore[typeddict-item]
    if prose is not None:
        state["faults"] = list(prose.left_out)
        ended = "it added nothing that holds" if prose.left_out else "it added nothing"
    if prose is None or not prose.facts or not prose.sentence:
        result = _without(offline, who, choice, ended or "it was not asked", asker)
    else:
        result = _with(offline, who, choice, prose, asker)
    memory.keep(result, _entry(question, asker, state, ADDING))
    return result


def _adding(offline: ToolResult) -> Request:
    """The request for an addition: the facts of the answer and no tool."""
    data = offline.data
    system, user = prompts.load(ADDING).fill(
        run=str(data["run"]), question=str(data["question"]), facts=listed(offline.facts[:MOST_FACTS])
    )
    turns = (Turn(role="user", text=user),)
    return Request(system=system, turns=turns, max_tokens=MOST_ADDED, purpose="addition")


def _with(offline: ToolResult, who: str, choice: Choice, prose: Prose, asker: Asker) -> ToolResult:
    """The router's answer and under it the model's addition."""
    data = {
        **offline.data,
        "answer": f"{offline.data['answer']}\n{prose.beside}",
        "checked": f"{offline.data['checked']}; added by {choice.short}: {prose.outcome()}",
        "llm": choice.short,
        "added": prose.beside,
        **_spent(asker),
    }
    return replace(offline, data=data, text=laid_out(who, data, f"{choice.short}: {asker.bill}"))


def _without(offline: ToolResult, who: str, choice: Choice, why: str, asker: Asker) -> ToolResult:
    """The router's answer alone, why, and what asking cost."""
    data = {**offline.data, "llm": f"none ({choice.short}: {why})", **_spent(asker)}
    bill = [f"{choice.short}: {why}; {asker.bill}"] if asker.requests else []
    return replace(offline, data=data, text=laid_out(who, data, *bill) if bill else offline.text)


def _spent(asker: Asker) -> dict[str, object]:
    spent = asker.spent
    return {
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
        "dollars": asker.cost,
        "seconds": asker.seconds,
    }


def _saver(stack: ExitStack, path: Path, tell: Tell) -> SqliteSaver | None:
    """The run's checkpointer until the stack closes; None beside a run that nothing can be written to."""
    from agent.graph import checkpoints

    try:
        return stack.enter_context(checkpoints(path))
    except StoreError as error:
        tell(f"the question could not be continued after a kill: {error}")
        return None


def _thread(model: str, begin: ConversationInput) -> str:
    """The name of a question's checkpoints: the same question after the same talk, put to the same model."""
    content = canonical_json({"model": model, "turns": [dict(turn) for turn in begin["turns"]]})
    return f"question-{hashlib.sha256(content.encode('ascii')).hexdigest()[:16]}"


def _turns(earlier: Sequence[Exchange], question: str) -> list[Said]:
    turns: list[Said] = []
    for exchange in earlier:
        turns += [{"role": "user", "text": exchange.question}, {"role": "assistant", "text": exchange.answer}]
    return [*turns, {"role": "user", "text": question}]


def _result(
    findings: Findings, path: str, question: str, choice: Choice, state: ConversationState, asker: Asker
) -> ToolResult:
    faults, cited, checked = state["faults"], state["cited"], state["checked"]
    with opened(path) as run:
        offers = fitting("summary", fillings(run, findings))
    data: dict[str, object] = {
        "run": findings.run,
        "question": question,
        "llm": choice.short,
        "follow_ups": list(offers),
        "tools": [
            {"tool": one["name"], "arguments": one["arguments"], "ok": one["ok"]} for one in _consulted(state)
        ],
        "answer": state["answer"],
        "checked": checked,
        "verified": not faults,
        "certificates": [id.removeprefix("c:") for id in cited if id.startswith("c:")],
        **_spent(asker),
    }
    calls = [f"▸ {one['name']} {_flags(one['arguments'])}".rstrip() for one in _consulted(state)]
    who = "\n".join([str(choice), *calls])
    return ToolResult(data=data, text=laid_out(who, data, f"{choice.short}: {asker.bill}"))


def _consulted(state: ConversationState) -> list[Any]:
    return list(state.get("consulted", []))


def _flags(arguments: Mapping[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in arguments.items())


def _entry(question: str, asker: Asker, state: ConversationState, prompt: str) -> dict[str, object]:
    """What the run file keeps of a question to a model: no key and no transcript."""
    return {
        "question": question,
        "model": asker.model.name,
        "prompts": {prompt: prompts.load(prompt).record()},
        "requests": asker.requests,
        "input_tokens": asker.spent.input_tokens,
        "output_tokens": asker.spent.output_tokens,
        "faults": state.get("faults", []),
        "ended": state["ended"],
    }
