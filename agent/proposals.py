"""A language model as a proposer of predicates, before a run (paper, §4.1): `run --llm NAME`.

    round ─┬→ round …
           └→ end

A round shows it columns with their ranges, the vocabulary so far, refusals with their reasons, and records that the
model under study gets wrong beside the nearest that it gets right: train records only. What it writes is parsed,
type-checked and scored by a program, in canonical spelling, and never executed. Rounds are checkpointed beside the run
file, so a run that was killed goes on after the last one, and a loop that ended is not asked again.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, TypedDict

import numpy as np
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langsmith import tracing_context
from pydantic import BaseModel, ConfigDict, Field

import prompts
from agent import chat_models, showing
from mecharule_ops import events, numbers
from mecharule_ops.errors import StoreError
from mecharule_ops.predicates import language, type_check
from mecharule_ops.predicates.proposer import OfflineProposer, ProposalContext
from mecharule_ops.predicates.table import PredicateTable, Refusal, build_table
from mecharule_ops.store import keys, run_directory, run_store

PROMPT = "propose_predicates"
EXAMPLES = 8
"""Pairs of records that a round shows."""
_NO_LIST = "the model gave no list of predicates"
_LONGEST_TEXT = 600


class Proposals(BaseModel):
    """What the model replies with."""

    model_config = ConfigDict(extra="forbid")
    predicates: list[str] = Field(max_length=40)


class ProposalState(TypedDict, total=False):
    """A loop under way: texts, numbers and lists, all of which a checkpoint holds."""

    rounds: int
    accepted: list[str]
    refused: list[dict[str, str]]
    ended: str
    """Why it ended; empty while it goes on."""
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProposer:
    """Proposes what a model thought of and a program judged, beside the offline grammar, which proposes first."""

    model: BaseChatModel
    choice: chat_models.Choice
    task: str
    rounds: int
    seed: int
    store: run_store.RunStore
    meanings: Mapping[str, str] = field(default_factory=dict)
    """What the columns hold."""
    emit: Callable[[events.Event], None] = lambda event: None

    def propose(self, context: ProposalContext) -> tuple[str, ...]:
        """The grammar's texts, then accepted ones, then refused ones so that the run keeps why; no known ones.

        Costs at most `rounds` model requests the first time, and none afterwards.
        """
        first = OfflineProposer().propose(context)
        kept: Any = self.store.find(keys.PROPOSALS) or self._run(context, first)
        known = {*context.known, *(refusal.text for refusal in context.refusals)}
        tried = [*kept["accepted"], *(entry["text"] for entry in kept["refused"])]
        return tuple(text for text in dict.fromkeys((*first, *tried)) if text not in known)

    def _run(self, data: ProposalContext, first: Sequence[str]) -> Mapping[str, Any]:
        table, _ = _judged((*data.known, *first), data)
        given = [predicate.text for predicate in table.predicates]
        graph = StateGraph(ProposalState)
        graph.add_node("round", partial(self._round, data=data, given=given))
        graph.add_edge(START, "round")
        graph.add_conditional_edges("round", lambda state: END if state["ended"] else "round", ["round", END])
        config: Any = {"configurable": {"thread_id": "proposals"}, "recursion_limit": 1000}
        file = str(run_directory.checkpoints_of(self.store.path))
        try:
            with SqliteSaver.from_conn_string(file) as saver, tracing_context(enabled=False):
                app = graph.compile(checkpointer=saver)
                begin = ProposalState(
                    rounds=0, accepted=[], refused=[], ended="", input_tokens=0, output_tokens=0
                )
                state = app.invoke(None if app.get_state(config).next else begin, config, durability="sync")
        except sqlite3.Error as error:
            raise StoreError(f"expected to write checkpoints to {file}, SQLite says: {error}") from error
        dollars = self.choice.dollars(state["input_tokens"], state["output_tokens"])
        prompt = {PROMPT: prompts.load(PROMPT).sha256}
        kept = {**state, "model": self.choice.short, "prompts": prompt, "dollars": dollars}
        self.store.put(keys.PROPOSALS, kept)
        counts = f"{len(state['accepted'])} predicates accepted, {len(state['refused'])} refused"
        told = f"`mecharule show {self.store.path.stem} --section rules` says what became of each"
        rounds = f"{numbers.plural(state['rounds'], 'round')}; {state['ended']}"
        self.emit(events.Notice(text=f"{self.choice.short}: {counts} in {rounds}; {told}"))
        return kept

    def _round(self, state: ProposalState, *, data: ProposalContext, given: Sequence[str]) -> ProposalState:
        """What the model proposes and what became of it; a fault ends the loop with its sentence and loses nothing."""
        table, _ = _judged((*given, *state["accepted"]), data)
        asker = self.model.with_structured_output(Proposals, include_raw=True)
        try:
            reply: Any = asker.invoke(self._request(state, data, table))
        except Exception as error:
            fault = str(chat_models.fault_of(error, self.choice.provider))
            reply = {"parsed": chat_models.said_in(error, Proposals)}
            ended, used = f"the model gave no usable reply: {fault}", chat_models.used_by(error)
        else:
            fault, ended, used = _NO_LIST, _NO_LIST, reply["raw"].usage_metadata or {}
        said = reply["parsed"]
        text = ", ".join(said.predicates) if said else fault
        self.emit(self.choice.told("predicates", text, used, ok=bool(said)))
        read, written = (state[name] + used.get(name, 0) for name in chat_models.TOKENS)
        if not said:
            return {"ended": ended, "input_tokens": read, "output_tokens": written}
        tried = {*state["accepted"], *(one["text"] for one in state["refused"])}
        spelt = dict.fromkeys(_spelt(each, data) for each in said.predicates)
        new = [text for text in spelt if text not in tried]
        texts = [*state["accepted"], *new]
        refused: list[Any] = [asdict(one) for one in _judged((*given, *texts), data)[1] if one.text in texts]
        rounds = state["rounds"] + 1
        ended = "the rounds are spent" if rounds >= self.rounds else ""
        if read + written >= self.choice.most_tokens:
            ended = "the tokens are spent"
        return {
            "rounds": rounds,
            "accepted": [text for text in texts if all(text != one["text"] for one in refused)],
            "refused": [*state["refused"], *refused],
            "ended": ended if new else "the model had nothing new to propose",
            "input_tokens": read,
            "output_tokens": written,
        }

    def _request(self, state: ProposalState, data: ProposalContext, table: PredicateTable) -> list[Any]:
        names = [name for name in data.columns if name in data.prompt_columns]
        earlier: list[Any] = [asdict(one) for one in data.refusals]
        wrong, right = np.flatnonzero(~data.labels), np.flatnonzero(data.labels)
        drawn = np.random.default_rng([self.seed, state["rounds"]]).permutation(wrong)[:EXAMPLES]
        system, user = prompts.load(PROMPT).fill(
            task=self.task,
            columns=showing.columns(data.columns, data.prompt_columns, self.meanings),
            language=language.vocabulary(),
            vocabulary=showing.vocabulary(table),
            refusals=showing.refusals([*earlier, *state["refused"]]),
            pairs=showing.rows_in_pairs(data.columns, "wrong/right", sorted(drawn.tolist()), right, names),
        )
        return [SystemMessage(system), HumanMessage(user)]


def _judged(texts: Sequence[str], data: ProposalContext) -> tuple[PredicateTable, tuple[Refusal, ...]]:
    everything = np.ones(len(data.labels), dtype=bool)
    return build_table(texts, data.columns, data.labels, everything, prompt_columns=data.prompt_columns)


def _spelt(text: str, data: ProposalContext) -> str:
    """The canonical text, so that another spelling is no new one; the text itself when it is no predicate."""
    try:
        return language.parse_predicate(text[:_LONGEST_TEXT], language.schema_of(data.columns)).text
    except type_check.PredicateRefused:
        return text[:_LONGEST_TEXT]
