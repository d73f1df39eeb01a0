"""Nodes of the predicate proposal loop: ask the model, then judge what it proposed (paper, §4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from jaxtyping import Bool
from langgraph.runtime import Runtime
from pydantic import BaseModel, ConfigDict, Field

from agent.llm.protocol import Request
from agent.proposing import showing
from agent.proposing.power import discriminative_power, expected, held_back
from agent.proposing.typed_grammar import predicate_pattern
from agent.state import ProposalRuntime, ProposalState, RefusalEntry, sifted
from mecharule_ops.errors import MechaRuleError
from mecharule_ops.predicates.language import parse_predicate, vocabulary
from mecharule_ops.predicates.table import PredicateTable, Refusal, build_table
from mecharule_ops.predicates.type_check import PredicateRefused
from mecharule_ops.types import Columns

PROMPT = "propose_predicates"
RISE = 0.002
"""Least rise of the power that counts."""
WARMTH = 0.7
"""Temperature from the second round on."""
KNOWN = "it is in the vocabulary already; propose another"
_LONGEST_TEXT = 600


class Proposals(BaseModel):
    """What the model replies with."""

    model_config = ConfigDict(extra="forbid")
    predicates: list[str] = Field(max_length=40)


def begin(state: ProposalState, runtime: Runtime[ProposalRuntime]) -> ProposalState:
    """The empty loop, with the power of the vocabulary that is given."""
    _, power, _ = _judged((), runtime.context)
    return {
        "rounds": state["rounds"],
        "done": 0,
        "accepted": [],
        "refused": [],
        "powers": [power],
        "ended": "",
    }


def ask(state: ProposalState, runtime: Runtime[ProposalRuntime]) -> ProposalState:
    """Texts that the model proposes; a fault ends the loop with its sentence and loses nothing.

    One that is known is refused with that for a reason: the model is shown the best of the vocabulary, not all of it.
    """
    context = runtime.context
    try:
        reply = context.asker.ask(_request(state, context), context.on_text)
    except MechaRuleError as fault:
        return {"waiting": [], "ended": f"the model gave no usable reply: {fault}"}
    said = [text[:_LONGEST_TEXT] for text in cast(Proposals, reply.parsed).predicates]
    texts = [_spelt(text, context) for text in said]
    tried = [*state["accepted"], *(entry["text"] for entry in state["refused"])]
    earlier = (refusal.text for refusal in context.data.refusals)
    known = {*context.data.known, *(_spelt(text, context) for text in (*tried, *earlier))}
    new = [text for text in dict.fromkeys(texts) if text not in known]
    again: list[RefusalEntry] = [
        {"text": text, "reason": KNOWN}
        for text in dict.fromkeys(texts)
        if text in known and text not in tried
    ]
    done = state["done"] + 1
    goes_on = new or (again and done < state["rounds"])
    return {
        "done": done,
        "waiting": new,
        "refused": [*state["refused"], *again],
        "ended": "" if goes_on else "the model had nothing new to propose",
    }


def _spelt(text: str, context: ProposalRuntime) -> str:
    """The canonical text, so that another spelling is no new one; the text itself when it is no predicate."""
    try:
        return parse_predicate(text, context.data.schema).text
    except PredicateRefused:
        return text


def judge(state: ProposalState, runtime: Runtime[ProposalRuntime]) -> ProposalState:
    """What became of the texts that wait, and whether the power still rises."""
    context, waiting = runtime.context, state["waiting"]
    tried = (*state["accepted"], *waiting)
    _, power, refusals = _judged(tried, context)
    accepted, entries = sifted(tried, refusals)
    powers = [*state["powers"], power]
    return {
        "waiting": [],
        "accepted": accepted,
        "refused": [*state["refused"], *entries],
        "powers": powers,
        "ended": _why_ended(powers, context.patience, spent=state["done"] >= state["rounds"]),
    }


def _why_ended(powers: Sequence[float], patience: int, *, spent: bool) -> str:
    before, recent = powers[:-patience], powers[-patience:]
    if before and max(recent) < max(before) + RISE:
        return f"held-back AUC stopped rising at {max(powers):.3f}"
    return "the rounds are spent" if spent else ""


def _judged(
    texts: tuple[str, ...], context: ProposalRuntime
) -> tuple[PredicateTable, float, tuple[Refusal, ...]]:
    """The table of known and new texts, its power, and who was refused; all on train records."""
    data = context.data
    back = held_back(data.labels, context.seed)
    table, refusals = build_table(
        (*data.known, *texts), data.columns, data.labels, ~back, prompt_columns=data.prompt_columns
    )
    return table, discriminative_power(table.matrix, data.labels, back), refusals


def _request(state: ProposalState, context: ProposalRuntime) -> Request:
    """What a round is asked with; from the second on a little chance is let in, so that it is not the first again."""
    data, turn = context.data, state["done"]
    table, _, _ = _judged(tuple(state["accepted"]), context)
    everything: Bool[np.ndarray, " record"] = np.ones(len(data.labels), dtype=bool)
    _, wrong = showing.contrast(data.labels, everything, context.examples, (context.seed, turn))
    names = [name for name in data.columns if name in data.prompt_columns]
    residual = _residual(table, context)
    earlier: list[RefusalEntry] = [
        {"text": refusal.text, "reason": refusal.reason} for refusal in data.refusals
    ]
    filled = {
        "task": context.task,
        "columns": showing.columns(data.schema, data.prompt_columns, context.meanings, data.columns),
        "language": vocabulary(),
        "vocabulary": showing.vocabulary(table),
        "refusals": showing.refusals([*earlier, *state["refused"]]),
        "pairs": _paired(data.columns, showing.nearest(data.columns, wrong, data.labels, names)),
        "residuals": _paired(data.columns, showing.nearest(data.columns, residual, data.labels, names)),
        "power": f"{state['powers'][-1]:.3f}",
    }
    return Request.of(
        PROMPT,
        filled,
        schema=Proposals,
        purpose="predicates",
        temperature=WARMTH if turn else None,
        patterns={"predicates": predicate_pattern(data.columns, data.schema, data.prompt_columns)},
    )


def _paired(columns: Columns, pairs: Sequence[tuple[int, int]]) -> str:
    return showing.pairs(columns, pairs, "wrong", "right")


def _residual(table: PredicateTable, context: ProposalRuntime) -> list[int]:
    """The failures that the vocabulary takes most surely for successes."""
    labels = context.data.labels
    sure = expected(table.matrix, labels, held_back(labels, context.seed))
    failures = np.flatnonzero(~labels)
    order = np.argsort(-sure[failures], kind="stable")[: context.examples // 2]
    return [int(position) for position in failures[order]]
