"""A language model as a proposer of predicates, before a run (paper, §4.1): `run --llm NAME`.

    ask → judge ─┬→ ask …
                 └→ end

It is shown columns with their ranges, the vocabulary so far, refusals with their reasons, and records that the model
under study gets wrong beside the nearest that it gets right: train records only. What it writes is parsed,
type-checked and scored by a program, in canonical spelling, and never executed. A part of the train records is held
back from scores and filters; when the vocabulary's AUC there stops rising, the loop ends. Rounds are checkpointed
beside the run file, so a run that was killed goes on at the node, and a loop that ended is not asked again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from jaxtyping import Bool, Float
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langsmith import tracing_context
from pydantic import BaseModel, ConfigDict, Field

import prompts
from agent import showing
from agent.chat_models import chat_model
from agent.choice import Choice
from agent.model_faults import fault_of
from mecharule_ops.codec import parse_json
from mecharule_ops.errors import StoreError
from mecharule_ops.events import Event, LlmMessage
from mecharule_ops.predicates.language import parse_predicate, vocabulary
from mecharule_ops.predicates.proposer import MockProposer, OfflineProposer, ProposalContext, Proposer
from mecharule_ops.predicates.table import PredicateTable, Refusal, build_table
from mecharule_ops.predicates.type_check import PredicateRefused
from mecharule_ops.store.keys import PROPOSALS
from mecharule_ops.store.run_directory import checkpoints_of
from mecharule_ops.store.run_store import RunStore
from mecharule_ops.types import Columns

PROMPT = "propose_predicates"
HELD_BACK = 0.3
"""Share of the train records on which the vocabulary's AUC is measured."""
RISE = 0.002
"""Least rise of that AUC that counts."""
PATIENCE = 2
"""Rounds without a rise before the loop ends."""
EXAMPLES = 8
"""Records of each outcome that a round shows."""
KNOWN = "it is in the vocabulary already; propose another"
_LONGEST_TEXT = 600


class Proposals(BaseModel):
    """What the model replies with."""

    model_config = ConfigDict(extra="forbid")
    predicates: list[str] = Field(max_length=40)


class ProposalState(TypedDict, total=False):
    """A loop under way: texts, numbers and lists, all of which a checkpoint holds."""

    done: int
    waiting: list[str]
    """Proposed and not yet judged."""
    accepted: list[str]
    refused: list[dict[str, str]]
    powers: list[float]
    """Held-back AUC after each round, that of the given vocabulary first."""
    ended: str
    """Why it ended; empty while it goes on."""
    read: int
    written: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProposer:
    """Proposes what a model thought of and a program judged, beside the offline grammar, which proposes first."""

    model: BaseChatModel
    choice: Choice
    task: str
    rounds: int
    seed: int
    store: RunStore
    meanings: Mapping[str, str] = field(default_factory=dict)
    """What the columns hold."""
    notify: Callable[[str], None] = lambda line: None
    emit: Callable[[Event], None] = lambda event: None
    _last: dict[tuple[str, ...], tuple[PredicateTable, float, tuple[Refusal, ...]]] = field(
        default_factory=dict
    )
    """What was judged last, by its texts."""

    def propose(self, context: ProposalContext) -> tuple[str, ...]:
        """The grammar's texts, then accepted ones, then refused ones so that the run keeps why; no known ones.

        Costs at most `rounds` model requests the first time, and none afterwards.
        """
        first = OfflineProposer().propose(context)
        ended: Any = self.store.find(PROPOSALS)
        if ended is None:
            ended = self._run(_wider(context, first))
        known = {*context.known, *(refusal.text for refusal in context.refusals)}
        tried = [*ended["accepted"], *(entry["text"] for entry in ended["refused"])]
        return tuple(text for text in dict.fromkeys((*first, *tried)) if text not in known)

    def _run(self, data: ProposalContext) -> Mapping[str, Any]:
        with checkpoints(self.store.path) as saver, tracing_context(enabled=False):
            graph = self._graph(data, saver)
            config: Any = {"configurable": {"thread_id": "proposals"}, "recursion_limit": 1000}
            begin: ProposalState | None = None
            if not graph.get_state(config).next:
                lists: Any = {"waiting": [], "accepted": [], "refused": []}
                power = self._judged((), data)[1]
                begin = {**lists, "done": 0, "ended": "", "powers": [power], "read": 0, "written": 0}
            state = graph.invoke(begin, config, durability="sync")
        price = self.choice.price
        kept = {
            "model": self.choice.short,
            "prompts": {PROMPT: prompts.load(PROMPT).record()},
            "rounds": state["done"],
            **{name: state[name] for name in ("powers", "accepted", "refused", "ended")},
            "input_tokens": state["read"],
            "output_tokens": state["written"],
            "dollars": None if price is None else price.cost(state["read"], state["written"]),
        }
        self.store.put(PROPOSALS, kept)
        self.notify(
            f"{self.choice.short}: {len(state['accepted'])} predicates accepted, {len(state['refused'])} refused in "
            f"{state['done']} rounds; held-back AUC {state['powers'][0]:.3f} → {state['powers'][-1]:.3f}; "
            f"{state['ended']} ({state['read']:,} + {state['written']:,} tokens)"
        )
        return kept

    def _graph(self, data: ProposalContext, saver: SqliteSaver) -> CompiledStateGraph[Any, Any, Any, Any]:
        graph = StateGraph(ProposalState)
        graph.add_node("ask", lambda state: self._ask(state, data))
        graph.add_node("judge", lambda state: self._judge(state, data))
        graph.add_edge(START, "ask")
        graph.add_conditional_edges("ask", lambda state: END if state["ended"] else "judge", ["judge", END])
        graph.add_conditional_edges("judge", lambda state: END if state["ended"] else "ask", ["ask", END])
        return graph.compile(checkpointer=saver)

    def _ask(self, state: ProposalState, data: ProposalContext) -> ProposalState:
        """Texts that the model proposes; a fault ends the loop with its sentence and loses nothing."""
        asker = self.model.with_structured_output(Proposals, include_raw=True)
        try:
            reply: Any = asker.invoke(self._request(state, data))
            proposals, used = reply["parsed"], reply["raw"].usage_metadata or {}
        except Exception as error:
            fault = fault_of(error, self.choice.provider)
            self._tell(str(fault), {}, ok=False)
            return {"waiting": [], "ended": f"the model gave no usable reply: {fault}"}
        if proposals is None:
            self._tell("a reply that is no list of predicates", used, ok=False)
            return {"waiting": [], "ended": "the model gave no list of predicates", **_spent(state, used)}
        self._tell(", ".join(proposals.predicates), used, ok=True)
        texts = dict.fromkeys(_spelt(text[:_LONGEST_TEXT], data) for text in proposals.predicates)
        tried = {*state["accepted"], *(entry["text"] for entry in state["refused"])}
        known = {*data.known, *(_spelt(refusal.text, data) for refusal in data.refusals)}
        again: list[Any] = [{"text": text, "reason": KNOWN} for text in texts if text in known - tried]
        new = [text for text in texts if text not in known | tried]
        goes_on = new or (again and state["done"] + 1 < self.rounds)
        return {
            "done": state["done"] + 1,
            "waiting": new,
            "refused": [*state["refused"], *again],
            "ended": "" if goes_on else "the model had nothing new to propose",
            **_spent(state, used),
        }

    def _tell(self, text: str, used: Mapping[str, int], *, ok: bool) -> None:
        tokens = {name: used.get(name, 0) for name in ("input_tokens", "output_tokens")}
        self.emit(LlmMessage(model=self.choice.short, purpose="predicates", text=text, ok=ok, **tokens))

    def _judge(self, state: ProposalState, data: ProposalContext) -> ProposalState:
        """What became of the texts that wait, and whether the AUC still rises."""
        tried = (*state["accepted"], *state["waiting"])
        table, power, refusals = self._judged(tried, data)
        refused: list[Any] = [asdict(one) for one in refusals if one.text in tried]
        powers = [*state["powers"], power]
        before, recent = powers[:-PATIENCE], powers[-PATIENCE:]
        ended = "the rounds are spent" if state["done"] >= self.rounds else ""
        if state["read"] + state["written"] >= self.choice.most_tokens:
            ended = "the tokens are spent"
        if before and max(recent) < max(before) + RISE:
            ended = f"held-back AUC stopped rising at {max(powers):.3f}"
        accepted = [text for text in tried if all(text != one["text"] for one in refused)]
        self._last[tuple(accepted)] = table, power, ()
        return {
            "waiting": [],
            "accepted": accepted,
            "refused": [*state["refused"], *refused],
            "powers": powers,
            "ended": ended,
        }

    def _judged(
        self, texts: tuple[str, ...], data: ProposalContext
    ) -> tuple[PredicateTable, float, tuple[Refusal, ...]]:
        """The table of known and new texts, its AUC on the records held back, and who was refused; the last is kept."""
        if texts not in self._last:
            back = _held_back(data.labels, self.seed)
            table, refusals = build_table(
                (*data.known, *texts), data.columns, data.labels, ~back, prompt_columns=data.prompt_columns
            )
            self._last.clear()
            self._last[texts] = table, power(table.matrix, data.labels, back), refusals
        return self._last[texts]

    def _request(self, state: ProposalState, data: ProposalContext) -> list[SystemMessage | HumanMessage]:
        table, _, _ = self._judged(tuple(state["accepted"]), data)
        drawn = np.random.default_rng((self.seed, state["done"])).permutation(np.flatnonzero(~data.labels))
        wrong = sorted(drawn[:EXAMPLES].tolist())
        names = [name for name in data.columns if name in data.prompt_columns]
        residual = _residual(table, data, self.seed)
        earlier: list[Any] = [asdict(one) for one in data.refusals]

        def paired(places: Sequence[int]) -> str:
            return showing.pairs(data.columns, places, data.labels, names, ("wrong", "right"))

        system, user = prompts.load(PROMPT).fill(
            task=self.task,
            columns=showing.columns(data.columns, data.prompt_columns, self.meanings),
            language=vocabulary(),
            vocabulary=showing.vocabulary(table),
            refusals=showing.refusals([*earlier, *state["refused"]]),
            pairs=paired(wrong),
            residuals=paired(residual),
            power=f"{state['powers'][-1]:.3f}",
        )
        return [SystemMessage(system), HumanMessage(user)]


def proposer_of(choice: Choice, **more: Any) -> Proposer | None:
    """The proposer of a choice, `more` as `ModelProposer` takes it; None for `none`, which leaves the offline grammar.

    A mock file that holds a list is the scripted rounds of `MockProposer`; one that holds an object is a model.
    """
    if choice.spec.startswith("mock:") and _holds_rounds(path := Path(choice.spec.removeprefix("mock:"))):
        return MockProposer(path)
    model = chat_model(choice)
    return None if model is None else ModelProposer(model=model, choice=choice, **more)


@contextmanager
def checkpoints(run_file: Path) -> Iterator[SqliteSaver]:
    """The checkpointer of a run, in a file beside the run file. Raises `StoreError` when it cannot be written."""
    path = checkpoints_of(run_file)
    try:
        with SqliteSaver.from_conn_string(str(path)) as saver:
            saver.setup()
            yield saver
    except sqlite3.Error as error:
        raise StoreError(f"expected to write checkpoints to {path}, SQLite says: {error}") from error


def _spent(state: ProposalState, used: Mapping[str, int]) -> ProposalState:
    return {
        "read": state["read"] + used.get("input_tokens", 0),
        "written": state["written"] + used.get("output_tokens", 0),
    }


def _spelt(text: str, data: ProposalContext) -> str:
    """The canonical text, so that another spelling is no new one; the text itself when it is no predicate."""
    try:
        return parse_predicate(text, data.schema).text
    except PredicateRefused:
        return text


def _held_back(labels: Bool[np.ndarray, " record"], seed: int) -> Bool[np.ndarray, " record"]:
    """True for the records that the AUC is measured on: the same share of each outcome."""
    generator = np.random.default_rng([seed, len(labels)])
    mask = np.zeros(len(labels), dtype=bool)
    for wanted in (True, False):
        positions = np.flatnonzero(labels == wanted)
        mask[generator.permutation(positions)[: int(HELD_BACK * len(positions))]] = True
    return mask


def power(
    matrix: Bool[np.ndarray, "record predicate"],
    labels: Bool[np.ndarray, " record"],
    back: Bool[np.ndarray, " record"],
) -> float:
    """AUC on the records held back, in [0, 1]; 0.5 without predicates or with one outcome only."""
    if len(set(labels[back].tolist())) < 2:
        return 0.5
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(labels[back], _expected(matrix, labels, back)[back]))


def _expected(
    matrix: Bool[np.ndarray, "record predicate"],
    labels: Bool[np.ndarray, " record"],
    back: Bool[np.ndarray, " record"],
) -> Float[np.ndarray, " record"]:
    """How much the vocabulary speaks for success of every record, fitted on those not held back; 0 without a fit."""
    if not matrix.shape[1] or len(set(labels[~back].tolist())) < 2:
        return np.zeros(len(labels))
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression(C=1.0, max_iter=200).fit(matrix[~back], labels[~back])
    return np.asarray(fitted.decision_function(matrix), dtype=np.float64)


def _residual(table: PredicateTable, data: ProposalContext, seed: int) -> list[int]:
    """The failures that the vocabulary takes most surely for successes."""
    sure = _expected(table.matrix, data.labels, _held_back(data.labels, seed))
    failures = np.flatnonzero(~data.labels)
    order = np.argsort(-sure[failures], kind="stable")[: EXAMPLES // 2]
    return [int(position) for position in failures[order]]


def _wider(context: ProposalContext, texts: Sequence[str]) -> ProposalContext:
    """The context in which these texts have been proposed already."""
    if not texts:
        return context
    everything = np.ones(len(context.labels), dtype=bool)
    columns: Columns = context.columns
    table, refused = build_table(
        (*context.known, *texts), columns, context.labels, everything, prompt_columns=context.prompt_columns
    )
    known = {predicate.text: score for predicate, score in zip(table.predicates, table.scores, strict=True)}
    return replace(context, known=known, refusals=(*context.refusals, *refused))


def _holds_rounds(path: Path) -> bool:
    """Whether a script is a list; one that does not read is left for its reader to complain about."""
    try:
        return isinstance(parse_json(path.read_text(encoding="utf-8")), list)
    except (OSError, ValueError, RecursionError):
        return False
