"""An investigation from question to verdicts, stored with its words; resumed at its node, or played again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agent.graph import checkpoints, investigation_graph, run_to_end
from agent.investigating.asking import NotRead, QuestionRead, reading_of
from agent.investigating.investigation import (
    ChoosingPolicy,
    InvestigationInput,
    InvestigationRuntime,
    InvestigationState,
    Purse,
    RivalProposer,
)
from agent.investigating.policies import AsBefore, GreedyPolicy
from agent.investigating.told_by_run import NOTHING, Told
from agent.investigating.with_model import StoredProposer
from agent.llm.faults import ReplyRefused, ReplyUnusable
from mecharule_ops.codec import canonical_json
from mecharule_ops.errors import ModelUnavailable, UsageError
from mecharule_ops.events import Event
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.tabulating import has_leads
from mecharule_ops.store.keys import INVESTIGATIONS
from mecharule_ops.store.ledger import Ledger

FORM = 4
"""Of what is stored; an investigation of another form is made again."""
Quiet = Callable[[str], None]
Reader = Callable[[Run], QuestionRead]
"""Reads a question that is not understood otherwise; nothing where it does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Investigated:
    """An investigation that came to its end, or as far as it got."""

    state: InvestigationState
    by: str
    """`offline`, or the language model that proposed and picked."""
    reused: bool = False
    """It was made before and is read back."""


Watch = Callable[[Investigated], object]
"""Is told how an investigation stands: as it begins, after every node, and where it is read back."""


def nothing_read(run: Run) -> QuestionRead:
    """Without a language model there is nobody to ask."""
    return QuestionRead()


def investigate(
    run: Run,
    question: str,
    purse: Purse,
    *,
    policy: ChoosingPolicy | None = None,
    proposer: RivalProposer | None = None,
    read: Reader = nothing_read,
    told: Told = NOTHING,
    again: bool = False,
    emit: Callable[[Event], None] = lambda event: None,
    tell: Quiet = lambda line: None,
    watch: Watch = lambda found: None,
) -> Investigated:
    """What the question comes to within the purse; kept in the run file when it ended.

    One that was killed goes on at its node; one that ended is read back unless `again`, with which a prediction that
    was decided stays decided. `read` is asked what a question means that is not understood otherwise. Raises `NotRead`
    where it does not know either, `UsageError` on a unit that there is not.
    """
    by = proposer.name if proposer else "offline"
    key = _key(run, question, purse, by)
    history = stored(run)
    earlier = [entry for entry in history if entry["key"] == key]
    if earlier and not again and earlier[-1]["state"]["asked"]:
        found = _read_back(earlier[-1])
        watch(found)
        return found
    runtime = InvestigationRuntime(
        run=run, ledger=Ledger(run.store, emit), policy=policy or GreedyPolicy(), proposer=proposer, tell=tell
    )
    thread = thread_of(key, len(earlier))
    with checkpoints(run.store.path) as saver:
        graph = investigation_graph(saver)
        begin = graph.get_state({"configurable": {"thread_id": thread}}).values
        if not begin:
            settled = QuestionRead() if told.settles else None
            reading = settled or _reading(question, run, read, is_told=bool(told.read_as))
            begin = InvestigationInput(
                question=question,
                read_as=" and ".join(filter(None, (told.read_as, reading.words))),
                unread=list(reading.unread),
                read_by=reading.by,
                asked=list(reading.asked),
                told=list(told.facts),
                answers=told.answers,
                purse=purse,
                leads=has_leads(run),
                records=len(run.observed.records),
            )
        state = run_to_end(
            graph, begin, runtime, thread, lambda state: watch(Investigated(state=state, by=by))
        )
    run.store.put(INVESTIGATIONS, [*history, {"form": FORM, "key": key, "by": by, "state": state}])
    return Investigated(state=state, by=by)


def _reading(question: str, run: Run, read: Reader, *, is_told: bool) -> QuestionRead:
    try:
        return reading_of(question, run, is_told=is_told)
    except NotRead as refused:
        try:
            reading = read(run)
        except (ModelUnavailable, ReplyUnusable, ReplyRefused) as fault:
            raise UsageError(f"{refused}; {fault}") from None
        if not reading.asked:
            raise
        return reading


def as_far_as_it_got(run: Run, question: str, purse: Purse, by: str) -> Investigated | None:
    """The state of an investigation that was stopped, from its checkpoint; None before its first node."""
    key = _key(run, question, purse, by)
    times = sum(entry["key"] == key for entry in stored(run))
    with checkpoints(run.store.path) as saver:
        kept = investigation_graph(saver).get_state({"configurable": {"thread_id": thread_of(key, times)}})
    if not kept.values:
        return None
    state = {**kept.values, "ended": "it was stopped; the same command goes on where it was"}
    return Investigated(state=state, by=by)  # type: ignore[arg-type]


def played_again(run: Run) -> tuple[Investigated, bool]:
    """(the latest investigation once more from its stored words and flips, whether it came to the same).

    No model is asked and nothing is stored. Raises `UsageError` when there is none.
    """
    history = stored(run)
    if not history:
        raise UsageError(
            f'expected an investigation to play again; run `mecharule investigate {run.id} "QUESTION"` first'
        )
    last = history[-1]
    before: InvestigationState = last["state"]
    if before["records"] != len(run.observed.records):
        raise UsageError(
            f"expected the {before['records']:,} records of the last investigation, run {run.id} has observed "
            f"{len(run.observed.records):,} since, so that its draws are others; ask it again"
        )
    proposer = (
        StoredProposer(name=last["by"], said=before.get("said", [])) if last["by"] != "offline" else None
    )
    runtime = InvestigationRuntime(
        run=run, ledger=Ledger(run.store), policy=AsBefore(before.get("steps", [])), proposer=proposer
    )
    begin = InvestigationInput(
        question=before["question"],
        read_as=before["read_as"],
        unread=before["unread"],
        read_by=before["read_by"],
        asked=before["asked"],
        told=before["told"],
        answers=before["answers"],
        purse=before["purse"],
        leads=before["leads"],
        records=before["records"],
    )
    state = run_to_end(investigation_graph(), begin, runtime, "again")
    same = all(state.get(name) == before.get(name) for name in ("rivals", "board", "steps"))
    return Investigated(state=state, by=last["by"]), same


def stored(run: Run) -> list[Mapping[str, Any]]:
    """Every investigation of the run that came to its end, in the form of today."""
    return [entry for entry in run.store.find(INVESTIGATIONS) or () if entry.get("form") == FORM]


def past(run: Run) -> tuple[Investigated, ...]:
    """The investigations of the run that came to their end, in order."""
    return tuple(map(_read_back, stored(run)))


def _read_back(entry: Mapping[str, Any]) -> Investigated:
    return Investigated(state=entry["state"], by=entry["by"], reused=True)


def thread_of(key: str, times: int) -> str:
    """Its thread among the run's checkpoints."""
    return f"investigation-{key}-{times}"


def _key(run: Run, question: str, purse: Purse, by: str) -> str:
    """Eight hex digits that name an investigation; of other observed records it is another."""
    content = canonical_json(
        {"question": question, "purse": dict(purse), "by": by, "form": FORM, "of": len(run.observed.records)}
    )
    return hashlib.sha256(content.encode("ascii")).hexdigest()[:8]
