"""Questions about a run put to a language model with tools, every number of its answer checked.

With no model, or one that fails, the same question goes to the rule-based router, and the answer says so.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import prompts
from agent import conversation
from agent.answers import ASKABLE
from agent.llm.asking import Asker
from agent.llm.choice import Choice, choose, make_model
from agent.llm.protocol import OnText, unheard
from agent.state import ConversationInput, ConversationRuntime, ConversationState, Said
from agent.toolbox import RunToolbox
from mecharule_ops.errors import StoreError
from mecharule_ops.findings.records import Findings
from mecharule_ops.questions.unit_account import strongest
from tools.opening import LAST_ANSWER, findings_of, opened
from tools.registry import Tell
from tools.result import ToolResult

PROMPT = "converse"
"""Of the conversation."""
MOST_CALLS = 8
"""Tool calls a question."""
LOG = "llm-questions"
"""Artefact: what was asked of which model, with which prompt, at which cost."""
_MOST_FACTS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A question and its checked answer, for the next question to follow on."""

    question: str
    answer: str


def ask(
    run: str,
    question: str,
    tell: Tell = lambda line: None,
    *,
    llm: str | None = None,
    earlier: Sequence[Exchange] = (),
    on_text: OnText = unheard,
    environment: Mapping[str, str] = os.environ,
) -> ToolResult:
    """The answer as text and data, by the model that flag, environment or config file choose.

    `on_text` hears the model's unchecked words as they come. Raises what choosing a model or opening the run
    raises; a model that fails is told about, not raised.
    """
    choice = choose(llm, environment)
    model = make_model(choice, environment)
    tell(str(choice))
    if model is None:
        return conversation.ask(run, question, tell)
    asker = Asker(model=model, sleep=time.sleep, price=choice.price)
    return answer(run, question, asker, choice, tell, earlier, on_text)


def answer(
    run: str,
    question: str,
    asker: Asker,
    choice: Choice,
    tell: Tell,
    earlier: Sequence[Exchange] = (),
    on_text: OnText = unheard,
) -> ToolResult:
    """The model's checked answer, or the router's with the reason why the model gave none."""
    from agent.graph import conversation_graph, run_to_end

    with opened(run) as open_run:
        findings, path = findings_of(open_run), str(open_run.store.path)
    runtime = ConversationRuntime(
        asker=asker, toolbox=RunToolbox(path, tell), run=findings.run, facts=facts(findings), on_text=on_text
    )
    begin: ConversationInput = {"turns": _turns(earlier, question), "most_calls": MOST_CALLS}
    state = cast(ConversationState, run_to_end(conversation_graph(), begin, runtime, "question"))
    _log(path, question, asker, state, tell)
    if state["ended"]:
        tell(f"{state['ended']}; answered without it")
        offline = conversation.ask(path, question, tell)
        data = {**offline.data, "llm": f"none ({choice.spec}: {state['ended']})"}
        return ToolResult(data=data, text=offline.text, exit_code=offline.exit_code)
    return _result(findings, question, choice, state, asker)


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


def _log(path: str, question: str, asker: Asker, state: ConversationState, tell: Tell) -> None:
    """Keep what was asked and what is cited; a run that another process works on is left alone."""
    entry = {
        "question": question,
        "model": asker.model.name,
        "prompts": {PROMPT: prompts.load(PROMPT).record()},
        "requests": asker.requests,
        "input_tokens": asker.spent.input_tokens,
        "output_tokens": asker.spent.output_tokens,
        "faults": state.get("faults", []),
        "ended": state["ended"],
    }
    cited = [id.removeprefix("c:") for id in state.get("cited", []) if id.startswith("c:")]
    try:
        with opened(path, write=True) as run:
            log = cast(list[object], run.store.get(LOG)) if run.store.has(LOG) else []
            run.store.put(LOG, [*log, entry])
            if cited:
                run.store.put(LAST_ANSWER, {"question": question, "certificates": cited})
    except StoreError as error:
        tell(f"the question is not remembered in the run: {error}")
