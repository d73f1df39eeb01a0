"""Questions about a run put to a language model with tools, every number of its answer checked.

With no model, or one that fails, the same question goes to the rule-based router, and the answer says so. What was
asked and answered is kept in the run file; a question under way is checkpointed beside it.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import prompts
from agent.answering import conversation
from agent.answering.answers import ASKABLE
from agent.answering.memory import PROMPT, Exchange, Memory
from agent.answering.toolbox import RunToolbox
from agent.llm.asking import Asker
from agent.llm.choice import Choice, choose, make_model
from agent.llm.protocol import OnText, unheard
from agent.state import ConversationInput, ConversationRuntime, ConversationState, Said
from mecharule_ops.codec import canonical_json
from mecharule_ops.errors import StoreError
from mecharule_ops.events import Event
from mecharule_ops.findings.records import Findings
from mecharule_ops.questions.unit_account import strongest
from tools._opening import findings_of, opened
from tools.registry import Tell
from tools.result import ToolResult

if TYPE_CHECKING:
    from langgraph.checkpoint.sqlite import SqliteSaver

Show = Callable[[Event], None]
"""Of the conversation."""
MOST_CALLS = 8
"""Tool calls a question."""
_MOST_FACTS = 12


def ask(
    run: str,
    question: str,
    tell: Tell = lambda line: None,
    *,
    llm: str | None = None,
    earlier: Sequence[Exchange] | None = (),
    on_text: OnText = unheard,
    show: Show = lambda event: None,
    environment: Mapping[str, str] = os.environ,
) -> ToolResult:
    """The answer as text and data, by the model that flag, environment or config file choose.

    `earlier` None follows on what was asked about the run before; `on_text` hears the model's unchecked words as they
    come, `show` the events. Raises what choosing a model or opening the run raises; a model that fails is told about,
    not raised.
    """
    choice = choose(llm, environment)
    model = make_model(choice, environment)
    tell(str(choice))
    memory = Memory(run, show, tell)
    if model is None:
        result = conversation.ask(run, question, tell)
        memory.keep(result)
        return result
    asker = Asker(model=model, sleep=time.sleep, price=choice.price, emit=memory.emit)
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
    runtime = ConversationRuntime(
        asker=asker,
        toolbox=RunToolbox(path, tell),
        run=findings.run,
        facts=facts(findings),
        on_text=on_text,
        emit=memory.emit,
    )
    begin: ConversationInput = {"turns": _turns(earlier, question), "most_calls": MOST_CALLS}
    thread = _thread(asker.model.name, begin)
    with ExitStack() as stack:
        saver = _saver(stack, Path(path), tell)
        state = cast(ConversationState, run_to_end(conversation_graph(saver), begin, runtime, thread))
        if state["ended"]:
            tell(f"{state['ended']}; answered without it")
            offline = conversation.ask(path, question, tell)
            data = {**offline.data, "llm": f"none ({choice.spec}: {state['ended']})"}
            result = ToolResult(data=data, text=offline.text, exit_code=offline.exit_code)
        else:
            result = _result(findings, question, choice, state, asker)
        memory.keep(result, _entry(question, asker, state), state.get("cited", []))
        if saver is not None:
            saver.delete_thread(thread)
    return result


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


def facts(findings: Findings) -> str:
    """What the model is told beforehand, every line with its citation."""
    cite = f"[run:{findings.run}]"
    lines = [
        f"Model {findings.model}, task {findings.task}; it succeeds on {findings.task_score.count}/"
        f"{findings.task_score.n} records; τ {findings.tau:g}, ε {findings.epsilon:g} {cite}."
    ]
    for search in findings.searches:
        where = f"{search.intervention.basis.value} {search.regime.arrow}"
        named = ", ".join(str(agonist.neuron) for agonist in search.agonists[:_MOST_FACTS]) or "none"
        cut = f" and {len(search.agonists) - _MOST_FACTS} more" if len(search.agonists) > _MOST_FACTS else ""
        lines.append(f"{where}: localized units, strongest first: {named}{cut} {cite}.")
    return "\n".join(lines)


def follow_ups(findings: Findings) -> tuple[str, ...]:
    """Questions that the tools answer for this run, whatever the model."""
    agonist = strongest(findings)
    unit = None if agonist is None else str(agonist.neuron)
    asked = [one for one in ASKABLE if unit is not None or "{unit}" not in one]
    return tuple(
        one.format(unit=unit)
        for one in asked
        if not any(f"{{{x}}}" in one for x in ("other", "prompt", "run"))
    )


def _turns(earlier: Sequence[Exchange], question: str) -> list[Said]:
    turns: list[Said] = []
    for exchange in earlier:
        turns += [{"role": "user", "text": exchange.question}, {"role": "assistant", "text": exchange.answer}]
    return [*turns, {"role": "user", "text": question}]


def _result(
    findings: Findings, question: str, choice: Choice, state: ConversationState, asker: Asker
) -> ToolResult:
    faults, cited = state["faults"], state["cited"]
    checked = "; ".join(faults) if faults else f"every number checked against {len(cited)} sources"
    data: dict[str, object] = {
        "run": findings.run,
        "question": question,
        "llm": choice.spec,
        "follow_ups": list(follow_ups(findings)),
        "tools": [
            {"tool": one["name"], "arguments": one["arguments"], "ok": one["ok"]} for one in _consulted(state)
        ],
        "answer": state["answer"],
        "checked": checked,
        "verified": not faults,
        "certificates": [id.removeprefix("c:") for id in cited if id.startswith("c:")],
        "input_tokens": asker.spent.input_tokens,
        "output_tokens": asker.spent.output_tokens,
        "dollars": asker.cost,
    }
    lines = [
        str(choice),
        *(f"▸ {one['name']} {_flags(one['arguments'])}".rstrip() for one in _consulted(state)),
    ]
    asked = ["", "You may ask:", *(f"  {one}" for one in follow_ups(findings))]
    return ToolResult(data=data, text="\n".join([*lines, state["answer"], f"({checked})", *asked]))


def _consulted(state: ConversationState) -> list[Any]:
    return list(state.get("consulted", []))


def _flags(arguments: Mapping[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in arguments.items())


def _entry(question: str, asker: Asker, state: ConversationState) -> dict[str, object]:
    """What the run file keeps of a question to a model: no key and no transcript."""
    return {
        "question": question,
        "model": asker.model.name,
        "prompts": {PROMPT: prompts.load(PROMPT).record()},
        "requests": asker.requests,
        "input_tokens": asker.spent.input_tokens,
        "output_tokens": asker.spent.output_tokens,
        "faults": state.get("faults", []),
        "ended": state["ended"],
    }
