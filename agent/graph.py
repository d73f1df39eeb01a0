"""The four graphs of the agent, wiring only: proposals, refinement, conversation, investigation.

proposals:    begin → ask → judge ─┬→ ask …
                        └──────────┴→ end
refinement:   ask → examine ─┬→ judge ─┬→ ask …
                             └─────────┴→ decide ─┬→ ask (next unit)
                                                  └→ end
conversation: ask ─┬→ consult → ask …
                   ├→ verify ─┬→ end
                   │          └→ ask (sent back: no fact was named)
                   ├→ ask (sent back: the reply was no call and no answer)
                   └→ end (a fault)
investigation: propose → register → choose ─┬→ run → decide → propose …
                                            └→ end
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from agent.answering import conversation_nodes as nodes_conversing
from agent.investigating import nodes as nodes_investigating
from agent.investigating.investigation import InvestigationInput, InvestigationRuntime, InvestigationState
from agent.proposing import proposal_nodes as nodes_proposing
from agent.refining import refinement_nodes as nodes_refining
from agent.refining.refinement_state import RefinementInput, RefinementRuntime, RefinementState
from agent.state import (
    ConversationInput,
    ConversationRuntime,
    ConversationState,
    ProposalInput,
    ProposalRuntime,
    ProposalState,
)
from mecharule_ops.errors import StoreError

Saver = BaseCheckpointSaver | None
CHECKPOINTS = ".agent.sqlite"
"""Suffix of the checkpoint file beside a run file."""


def proposal_graph(saver: Saver = None) -> CompiledStateGraph[Any, Any, Any, Any]:
    """The predicate proposal loop."""
    graph = StateGraph(ProposalState, context_schema=ProposalRuntime, input_schema=ProposalInput)
    graph.add_node("begin", nodes_proposing.begin)
    graph.add_node("ask", nodes_proposing.ask)
    graph.add_node("judge", nodes_proposing.judge)
    graph.add_edge(START, "begin")
    graph.add_edge("begin", "ask")
    graph.add_conditional_edges("ask", _after_proposing, ["ask", "judge", END])
    graph.add_conditional_edges("judge", lambda state: END if state["ended"] else "ask", ["ask", END])
    return graph.compile(checkpointer=saver)


def refinement_graph(saver: Saver = None) -> CompiledStateGraph[Any, Any, Any, Any]:
    """The refinement of units without a good rule."""
    graph = StateGraph(RefinementState, context_schema=RefinementRuntime, input_schema=RefinementInput)
    graph.add_node("ask", nodes_refining.ask)
    graph.add_node("examine", nodes_refining.examine)
    graph.add_node("judge", nodes_refining.judge)
    graph.add_node("decide", nodes_refining.decide)
    graph.add_conditional_edges(START, _next_unit, ["ask", END])
    graph.add_edge("ask", "examine")
    graph.add_conditional_edges(
        "examine", lambda state: "decide" if state["ended"] else "judge", ["judge", "decide"]
    )
    graph.add_conditional_edges(
        "judge", lambda state: "decide" if state["ended"] else "ask", ["ask", "decide"]
    )
    graph.add_conditional_edges("decide", _next_unit, ["ask", END])
    return graph.compile(checkpointer=saver)


def conversation_graph(saver: Saver = None) -> CompiledStateGraph[Any, Any, Any, Any]:
    """One question, from its first tool call to its checked answer."""
    graph = StateGraph(ConversationState, context_schema=ConversationRuntime, input_schema=ConversationInput)
    graph.add_node("ask", nodes_conversing.ask)
    graph.add_node("consult", nodes_conversing.consult)
    graph.add_node("verify", nodes_conversing.verify)
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", _after_asking, ["ask", "consult", "verify", END])
    graph.add_edge("consult", "ask")
    graph.add_conditional_edges("verify", _after_verifying, ["ask", END])
    return graph.compile(checkpointer=saver)


def investigation_graph(saver: Saver = None) -> CompiledStateGraph[Any, Any, Any, Any]:
    """One question, from its rivals to their verdicts."""
    graph = StateGraph(
        InvestigationState, context_schema=InvestigationRuntime, input_schema=InvestigationInput
    )
    for node in ("propose", "register", "choose", "run", "decide"):
        graph.add_node(node, getattr(nodes_investigating, node))
    graph.add_edge(START, "propose")
    graph.add_edge("propose", "register")
    graph.add_edge("register", "choose")
    graph.add_conditional_edges("choose", lambda state: "run" if state["chosen"] else END, ["run", END])
    graph.add_edge("run", "decide")
    graph.add_edge("decide", "propose")
    return graph.compile(checkpointer=saver)


def run_to_end(
    graph: CompiledStateGraph[Any, Any, Any, Any],
    begin: Any,
    context: Any,
    thread: str,
    watch: Callable[[Any], object] = lambda state: None,
) -> Any:
    """The last state of a thread: begun, or continued at the node where it was killed, or as it ended.

    `watch` is told each state before the next node runs; a checkpoint holds it by then. `tasks` tells whether it
    ended: `next` leaves out a node whose result is stored while its step is not.
    """
    config: Any = {"configurable": {"thread_id": thread}, "recursion_limit": 1000}
    earlier = graph.get_state(config) if graph.checkpointer else None
    if earlier is not None and earlier.values and not earlier.tasks:
        watch(earlier.values)
        return earlier.values
    resumed = earlier is not None and bool(earlier.tasks)
    states: Any = graph.stream(
        None if resumed else begin,
        config,
        context=context,
        stream_mode="values",
        durability="sync" if graph.checkpointer else None,
    )
    state = None
    with closing(states):
        for state in states:
            watch(state)
    return state


@contextmanager
def checkpoints(run_file: Path) -> Iterator[SqliteSaver]:
    """The checkpointer of a run, in a file beside the run file. Raises `StoreError` when it cannot be written."""
    path = run_file.with_name(run_file.name + CHECKPOINTS)
    try:
        connection = sqlite3.connect(path, check_same_thread=False)
        saver = SqliteSaver(connection)
        saver.setup()
    except sqlite3.Error as error:
        raise StoreError(f"expected to write checkpoints to {path}, SQLite says: {error}") from error
    with closing(connection):
        yield saver


def _after_proposing(state: ProposalState) -> str:
    return END if state["ended"] else "judge" if state["waiting"] else "ask"


def _next_unit(state: RefinementState) -> str:
    return "ask" if state["units"] else END


def _after_asking(state: ConversationState) -> str:
    if state["ended"]:
        return END
    if state["draft"] or state.get("reply"):
        return "verify"
    last = state["turns"][-1]
    return "consult" if last["role"] == "assistant" and last.get("calls") else "ask"


def _after_verifying(state: ConversationState) -> str:
    return END if state["ended"] or state["answer"] else "ask"
