"""One question put to a language model: what it adds to the router's answer, or its own where the router has none.

It calls tools, and names facts, which are put in by name; those of the tools that it called are shown even where it
fails to word an answer. A question under way is checkpointed beside the run file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel, ConfigDict, Field

import prompts
from agent.answering.briefing import briefing
from agent.answering.conversation import laid_out
from agent.answering.conversation_memory import PROMPT, Exchange, Memory
from agent.answering.facts import facts_from, listed
from agent.answering.offers import offers_of
from agent.answering.prose import Prose, composed
from agent.answering.specs import LONGEST_SENTENCE
from agent.answering.toolbox import RunToolbox
from agent.llm.choice import Choice
from agent.llm.faults import unasked
from agent.llm.protocol import OnText, Request
from agent.llm.retrying import Asker
from agent.state import ConversationInput, ConversationRuntime, ConversationState, Said
from mecharule_ops.codec import canonical_json
from mecharule_ops.errors import MechaRuleError, StoreError
from mecharule_ops.run.opening import findings_of, opened
from mecharule_ops.saying.fact import Fact, certificate_ids
from tools.registry import Tell, ToolResult

if TYPE_CHECKING:
    from langgraph.checkpoint.sqlite import SqliteSaver

ADDING = "add"
"""Of what a model adds to an answer of the router."""
MOST_CALLS = 8
"""Tool calls a question."""
MOST_FACTS = 10
"""Facts of an answer that a model is shown to add to."""
_FOLLOWED_BY_SMALL, _REMEMBERED = 1, 400
"""Exchanges, and characters of each answer, that a model of a small context follows on."""
_UNWORDED = "The model gave no answer that can be shown; its tools state:"


class Addition(BaseModel):
    """What a model adds to an answer: facts by number, and a sentence that connects them."""

    model_config = ConfigDict(extra="forbid")
    facts: list[int] = Field(max_length=MOST_FACTS)
    sentence: str = Field(max_length=LONGEST_SENTENCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedOfModel:
    """One question on its way to an answer."""

    run: str
    offline: ToolResult
    """What the router answers."""
    asker: Asker
    choice: Choice
    tell: Tell
    on_text: OnText
    memory: Memory

    def by_model(self, earlier: Sequence[Exchange]) -> ToolResult:
        """The answer of the graph; the router's where the model gave none."""
        from agent.graph import conversation_graph, run_to_end

        with opened(self.run) as run:
            findings, path = findings_of(run), run.store.path
            offers = offers_of(run, findings)
        small = self.choice.is_small
        runtime = ConversationRuntime(
            asker=self.asker,
            toolbox=RunToolbox(
                str(path), findings.run, self.tell, is_small=small, unit=next(iter(offers.strongest), "")
            ),
            run=findings.run,
            about=briefing(findings, offers.prompt),
            on_text=self.on_text,
            emit=self.memory.emit,
        )
        question = str(self.offline.data["question"])
        begin: ConversationInput = {
            "turns": _turns(_shortened(earlier) if small else earlier, question),
            "question": question,
            "most_calls": MOST_CALLS,
        }
        thread = _thread(self.asker.model.name, begin)
        with ExitStack() as stack:
            saver = _saver(stack, path, self.tell)
            state = cast(ConversationState, run_to_end(conversation_graph(saver), begin, runtime, thread))
            if state["ended"] and (facts := facts_from(state.get("facts", []))):
                self.tell(f"{state['ended']}; the facts of its tools are shown")
                said = "\n".join([_UNWORDED, *(fact.cited for fact in facts)])
                unworded = Prose(sentence="", facts=facts, left_out=())
                checked: ConversationState = {"answer": said, "faults": [], "checked": unworded.outcome()}
                state = {**state, **checked, "cited": list(unworded.cited)}
                result = self._told(findings.run, offers.after("summary"), state)
            elif state["ended"]:
                self.tell(f"{state['ended']}; answered without it")
                result = self._alone(f"{self.choice}; it gave no answer", state["ended"])
            else:
                result = self._told(findings.run, offers.after("summary"), state)
            self._keep(result, PROMPT, state.get("faults", []), state["ended"])
            if saver is not None:
                saver.delete_thread(thread)
        return result

    def added(self) -> ToolResult:
        """The router's answer, at once; then what the model adds to its facts, if it adds anything.

        An addition is asked for once: nobody waits for a second try of what can be left out.
        """
        who = f"{self.choice}; answered by rules"
        offline = self.offline
        above = str(offline.data["answer"])
        self.on_text(f"{above}\n")
        prose, ended = None, "it was not asked"
        if offline.facts:
            try:
                said = self.asker.ask(_adding(offline), self.on_text, tries=1).parsed
                added = said if isinstance(said, Addition) else Addition(facts=[], sentence="")
                prose = composed(added.facts, added.sentence, offline.facts[:MOST_FACTS], above)
                ended = "it added nothing that holds" if prose.left_out else "it added nothing"
            except MechaRuleError as fault:
                ended = unasked(fault)
                self.tell(f"{ended}; answered without it")
        if prose is None or not prose.facts or not prose.sentence:
            result = self._alone(who, ended)
        else:
            ended = ""
            data = {
                "answer": f"{above}\n{prose.beside}",
                "checked": f"{offline.data['checked']}; added by {self.choice.short}: {prose.outcome()}",
                "llm": self.choice.short,
                "added": prose.beside,
            }
            result = self._laid_out(who, {**offline.data, **data}, self.asker.bill, offline.facts)
        self._keep(result, ADDING, [] if prose is None else list(prose.left_out), ended)
        return result

    def _told(self, run: str, offers: Sequence[str], state: ConversationState) -> ToolResult:
        """The answer that the graph came to."""
        consulted: list[Any] = list(state.get("consulted", []))
        data: dict[str, object] = {
            "run": run,
            "question": state["question"],
            "llm": self.choice.short,
            "follow_ups": list(offers),
            "tools": [
                {"tool": one["name"], "arguments": one["arguments"], "ok": one["ok"]} for one in consulted
            ],
            "answer": state["answer"],
            "checked": state["checked"],
            "verified": not state["faults"],
            "certificates": list(certificate_ids(state["cited"])),
        }
        calls = [f"▸ {one['name']} {_flags(one['arguments'])}".rstrip() for one in consulted]
        return self._laid_out("\n".join([str(self.choice), *calls]), data, self.asker.bill)

    def _alone(self, who: str, why: str) -> ToolResult:
        """The router's answer alone, why, and what asking cost."""
        data = {**self.offline.data, "llm": f"none ({self.choice.short}: {why})"}
        bill = f"{why}; {self.asker.bill}" if self.asker.requests else ""
        return self._laid_out(who, data, bill, self.offline.facts)

    def _laid_out(
        self, who: str, data: Mapping[str, object], bill: str, facts: tuple[Fact, ...] = ()
    ) -> ToolResult:
        spent = {
            "input_tokens": self.asker.spent.input_tokens,
            "output_tokens": self.asker.spent.output_tokens,
            "dollars": self.asker.cost,
            "seconds": self.asker.seconds,
        }
        text = laid_out(who, data, *([f"{self.choice.short}: {bill}"] if bill else []))
        return ToolResult(data={**data, **spent}, text=text, facts=facts)

    def _keep(self, result: ToolResult, prompt: str, faults: Sequence[str], ended: str) -> None:
        """What the run file keeps of a question to a model: no key and no transcript."""
        entry = {
            "question": str(self.offline.data["question"]),
            "model": self.asker.model.name,
            "prompts": {prompt: prompts.load(prompt).record()},
            "requests": self.asker.requests,
            "input_tokens": self.asker.spent.input_tokens,
            "output_tokens": self.asker.spent.output_tokens,
            "faults": list(faults),
            "ended": ended,
        }
        self.memory.keep(result, entry)


def _adding(offline: ToolResult) -> Request:
    """The request for an addition: the facts of the answer and no tool."""
    data = offline.data
    facts = listed(offline.facts[:MOST_FACTS])
    filled = {"run": str(data["run"]), "question": str(data["question"]), "facts": facts}
    return Request.of(ADDING, filled, schema=Addition, purpose="addition")


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


def _shortened(earlier: Sequence[Exchange]) -> list[Exchange]:
    """The latest exchange, cut, for a model that can read little."""
    return [
        Exchange(question=one.question, answer=one.answer[:_REMEMBERED])
        for one in earlier[-_FOLLOWED_BY_SMALL:]
    ]


def _turns(earlier: Sequence[Exchange], question: str) -> list[Said]:
    turns: list[Said] = []
    for exchange in earlier:
        turns += [{"role": "user", "text": exchange.question}, {"role": "assistant", "text": exchange.answer}]
    return [*turns, {"role": "user", "text": question}]


def _flags(arguments: Mapping[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in arguments.items())
