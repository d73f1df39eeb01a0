"""A language model as a proposer of predicates, for the pipeline: `--llm anthropic/…|openai/…|mock:FILE`.

It is handed what every proposer is handed, the train records; it keeps no reference to a run's columns. Its
loop is checkpointed beside the run file, so a run killed in the middle continues at the node, and a loop that
ended is not asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np

import prompts
from agent.graph import checkpoints, proposal_graph, run_to_end
from agent.llm.choice import Choice, make_model
from agent.llm.protocol import OnText, unheard
from agent.llm.retrying import Asker
from agent.proposing.proposal_nodes import PROMPT
from agent.state import ProposalInput, ProposalRuntime, ProposalState
from mecharule_ops.codec import parse_json
from mecharule_ops.events import Event
from mecharule_ops.predicates.proposer import MockProposer, OfflineProposer, ProposalContext, Proposer
from mecharule_ops.predicates.table import build_table
from mecharule_ops.store.keys import PROPOSALS
from mecharule_ops.store.run_store import RunStore

_THREAD = "proposals"


class LlmProposer:
    """Proposes what a model thought of and a program judged; everything tried comes back, best first.

    `beside` proposes first, so that a model adds to what is found without one and takes nothing away.
    """

    def __init__(
        self,
        asker: Asker,
        *,
        task: str,
        rounds: int,
        seed: int,
        store: RunStore | None = None,
        beside: Proposer | None = None,
        meanings: Mapping[str, str] | None = None,
        notify: Callable[[str], None] = unheard,
        on_text: OnText = unheard,
    ) -> None:
        self._asker = asker
        self._task = task
        self._rounds = rounds
        self._seed = seed
        self._store = store
        self._beside = beside
        self._meanings = meanings or {}
        self._notify = notify
        self._on_text = on_text
        self._ended: ProposalState | None = None

    def propose(self, context: ProposalContext) -> tuple[str, ...]:
        """Texts of `beside`, then accepted ones, then refused ones so that the run keeps why; known ones are left out.

        Costs at most `rounds` model requests, retries aside, the first time, and none afterwards.
        """
        first = () if self._beside is None else self._beside.propose(context)
        if self._ended is None:
            self._ended = self._run(_wider(context, first))
            self._notify(self._sentence(self._ended))
        known = {*context.known, *(refusal.text for refusal in context.refusals)}
        tried = [*self._ended["accepted"], *(entry["text"] for entry in self._ended["refused"])]
        return tuple(text for text in dict.fromkeys((*first, *tried)) if text not in known)

    def _run(self, context: ProposalContext) -> ProposalState:
        runtime = ProposalRuntime(
            asker=self._asker,
            data=context,
            task=self._task,
            seed=self._seed,
            meanings=self._meanings,
            on_text=self._on_text,
        )
        begin: ProposalInput = {"rounds": self._rounds}
        with nullcontext() if self._store is None else checkpoints(self._store.path) as saver:
            ended = run_to_end(proposal_graph(saver), begin, runtime, _THREAD)
        if self._store is not None:
            self._store.put(PROPOSALS, self._record(ended))
        return cast(ProposalState, ended)

    def _record(self, ended: ProposalState) -> dict[str, object]:
        """What the run file keeps: model, prompt, powers, cost; no key and no transcript."""
        spent = self._asker.spent
        return {
            "model": self._asker.model.name,
            "prompts": {PROMPT: prompts.load(PROMPT).record()},
            "rounds": ended["done"],
            "powers": ended["powers"],
            "accepted": ended["accepted"],
            "refused": ended["refused"],
            "ended": ended["ended"],
            "input_tokens": spent.input_tokens,
            "output_tokens": spent.output_tokens,
            "dollars": self._asker.cost,
        }

    def _sentence(self, ended: ProposalState) -> str:
        cost = "" if self._asker.cost is None else f", ${self._asker.cost:.4f}"
        spent = self._asker.spent
        return (
            f"{self._asker.model.name}: {len(ended['accepted'])} predicates accepted, {len(ended['refused'])} "
            f"refused in {ended['done']} rounds; held-back AUC {ended['powers'][0]:.3f} → {ended['powers'][-1]:.3f}; "
            f"{ended['ended']} ({spent.input_tokens:,} + {spent.output_tokens:,} tokens{cost})"
        )


def proposer_of(
    choice: Choice,
    *,
    task: str,
    rounds: int,
    seed: int,
    store: RunStore | None = None,
    meanings: Mapping[str, str] | None = None,
    notify: Callable[[str], None] = unheard,
    on_text: OnText = unheard,
    emit: Callable[[Event], None] = lambda event: None,
) -> Proposer | None:
    """The proposer of a choice, None for `none`, which leaves the pipeline its offline grammar; a model adds to it.

    `emit` is told every reply and what it cost. A mock file that holds a list is the scripted rounds of
    `MockProposer`; one that holds an object is a scripted model.
    """
    if choice.spec.startswith("mock:"):
        path = Path(choice.spec.removeprefix("mock:"))
        if _holds_rounds(path):
            return MockProposer(path)
    model = make_model(choice)
    if model is None:
        return None
    asker = Asker(
        model=model,
        price=choice.price,
        most_requests=3 * rounds,
        most_tokens=choice.most_tokens,
        emit=emit,
    )
    return LlmProposer(
        asker,
        task=task,
        rounds=rounds,
        seed=seed,
        store=store,
        beside=OfflineProposer(),
        meanings=meanings,
        notify=notify,
        on_text=on_text,
    )


def _wider(context: ProposalContext, texts: Sequence[str]) -> ProposalContext:
    """The context in which these texts have been proposed already."""
    if not texts:
        return context
    everything = np.ones(len(context.labels), dtype=bool)
    table, refused = build_table(
        (*context.known, *texts),
        context.columns,
        context.labels,
        everything,
        prompt_columns=context.prompt_columns,
    )
    known = {predicate.text: score for predicate, score in zip(table.predicates, table.scores, strict=True)}
    return replace(context, known=known, refusals=(*context.refusals, *refused))


def _holds_rounds(path: Path) -> bool:
    """Whether a script is a list; one that does not read is left for its reader to complain about."""
    try:
        return isinstance(parse_json(path.read_text(encoding="utf-8")), list)
    except (OSError, ValueError, RecursionError):
        return False
