"""Nodes of an investigation: propose, register, choose, run, decide. Each may run twice and come to the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langgraph.runtime import Runtime

from agent.investigating import proposed_rivals as made
from agent.investigating.board import of_looking, of_verdicts, too_rare
from agent.investigating.comparing import comparison_of
from agent.investigating.deciding import decided, registered
from agent.investigating.investigation import (
    AskedUnits,
    InvestigationChange,
    InvestigationRuntime,
    InvestigationState,
    Rival,
    RivalProposer,
    Step,
    affordable,
    is_open,
    is_tested,
    kept,
)
from agent.investigating.priced_tests import LEAST_LOOK, by_fit, groups_of, has_leads, looked, of_unit, offers
from mecharule_ops.errors import MechaRuleError
from mecharule_ops.mechanism.pairs import Interaction
from mecharule_ops.numbers import plural
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.tabulating import Part, drawn, fires, measure_leads
from mecharule_ops.store.ledger import LEAST_CLASS
from mecharule_ops.types import Neuron, Regime

PAIR_THRESHOLD = 0.1
"""Share of the records that could show it below which two units do not interact to speak of."""
Context = Runtime[InvestigationRuntime]


def propose(state: InvestigationState, runtime: Context) -> InvestigationChange:
    """Rivals of every unit whose train flips are known and that has none; the lead's once the leads are known."""
    context = runtime.context
    board, rivals = [*state.get("board", state["told"])], [*state.get("rivals", [])]
    said, refused = state.get("said"), [*state.get("refused", [])]
    for asked in state["asked"]:
        earlier = of_unit(state, asked)
        if len(asked["units"]) == 2:
            rivals += [] if earlier else _of_pair(asked)
            continue
        n = looked(state, asked)
        if n < LEAST_LOOK or (earlier and not _lead_is_new(state, asked, earlier)):
            continue
        regime = Regime(asked["regime"])
        train = drawn(context.run, regime, Part.TRAIN, n)
        flips = context.run.flips([(Neuron.parse(asked["units"][0]),)], train, regime)[0]
        if not earlier:
            board = of_looking(board, context.run.id, asked, int(flips.sum()), n)
        if min(flips.sum(), n - flips.sum()) < LEAST_CLASS:
            if not earlier:
                board = too_rare(board, context.run.id, asked, int(flips.sum()), n)
            continue
        fresh = made.proposed(context.run, asked, n, leads=has_leads(state))
        if context.proposer is not None and not earlier:
            if said is None:
                said = _asked_for(context.proposer, refused, context.run, asked, fresh, train, flips)
            extra = _that_read(context.run, said, refused)
            by = context.proposer.name
            fresh = made.proposed(context.run, asked, n, leads=has_leads(state), extra=extra, by=by)
        known = {rival["condition"] for rival in earlier}
        rivals += [rival for rival in fresh if rival["condition"] not in known]
    changed = InvestigationChange(board=board, rivals=_numbered(rivals), refused=refused)
    return changed if said is None else {**changed, "said": said}


def _lead_is_new(state: InvestigationState, asked: AskedUnits, earlier: list[Rival]) -> bool:
    tested = is_tested(state, asked["units"])
    return not tested and has_leads(state) and all(rival["family"] != made.LEAD for rival in earlier)


def _numbered(rivals: list[Rival]) -> list[Rival]:
    """Unit by unit, the best on train first; what is not tested comes last and has no number."""
    units = list(dict.fromkeys(rival["unit"] for rival in rivals))
    tested = [
        rival
        for unit in units
        for rival in by_fit([one for one in rivals if one["unit"] == unit and kept(one)])
    ]
    left = [rival for rival in rivals if not kept(rival)]
    numbered: list[Rival] = [{**rival, "id": f"r{place}"} for place, rival in enumerate(tested, 1)]
    return [*numbered, *left]


def _of_pair(asked: AskedUnits) -> list[Rival]:
    unit = "+".join(asked["units"])
    return [
        made.of_pair(unit, asked["regime"], shown.value, PAIR_THRESHOLD)
        for shown in (Interaction.BACKUP, Interaction.CANCEL)
    ]


def _asked_for(proposer: RivalProposer, refused: list[str], *given: Any) -> list[str]:
    """What a language model proposes, once a question; a fault is said and it proposed nothing."""
    try:
        return proposer.propose(*given)
    except MechaRuleError as fault:
        refused.append(f"{proposer.name} proposed nothing: {fault}")
        return []


def _that_read(run: Run, texts: Sequence[str], refused: list[str]) -> list[str]:
    """The predicates among the texts; others are refused with their reason."""
    read = []
    for text in texts:
        try:
            fires(run, text)
        except MechaRuleError as fault:
            refused += [] if (reason := f"{text}: {fault}") in refused else [reason]
        else:
            read.append(text)
    return read


def register(state: InvestigationState, runtime: Context) -> InvestigationChange:
    """Every new rival of a unit and all its comparisons in the ledger, before any held-out flip of the unit is read."""
    entered, new = list(state["rivals"]), 0
    if any(is_open(rival) and not rival["hypothesis"] for rival in entered):
        _check_model(runtime.context, state)
    for place, rival in enumerate(entered):
        if is_open(rival) and not rival["hypothesis"]:
            others = [known for known in entered if known["unit"] == rival["unit"] and known["hypothesis"]]
            entered[place] = registered(runtime.context, rival, others)
            new += 1 + ("+" not in rival["unit"]) * len(others)
    if new:
        runtime.context.tell(f"{plural(new, 'prediction')} registered: rivals, and comparisons of any two")
    return {"rivals": entered}


def _check_model(context: InvestigationRuntime, state: InvestigationState) -> None:
    """Loads the model where a test has to run it: what cannot be loaded is said before anything is registered."""
    if any(step["forwards"] and affordable(step, state) for step in offers(context.run, state)):
        context.run.subject  # noqa: B018


def choose(state: InvestigationState, runtime: Context) -> InvestigationChange:
    """The affordable test that the policy picks; none ends the investigation."""
    context = runtime.context
    every = offers(context.run, state)
    payable = [step for step in every if affordable(step, state)]
    measured = state.get("board", [])[len(state["told"]) :]
    pick = context.policy.pick(payable, state["rivals"], measured) if payable else None
    if pick is not None:
        return {"offered": every, "chosen": pick}
    if every and not payable:
        ended = "no test that is left can be afforded"
    elif payable:
        ended = "the policy stopped"
    elif state["asked"]:
        ended = "no test is left that would tell the rivals apart"
    else:
        ended = "the run holds it; nothing was tested"
    return {"offered": every, "chosen": None, "ended": ended}


def run(state: InvestigationState, runtime: Context) -> InvestigationChange:
    """The chosen test's ablations, stored; the price that was said is charged."""
    context, step = runtime.context, state["chosen"]
    assert step is not None
    context.tell(said_of(step))
    if step["kind"] == "leads":
        measure_leads(context.run)
    else:
        regime = Regime(step["regime"])
        places = drawn(context.run, regime, Part.TRAIN if step["kind"] == "look" else Part.HELD_OUT)
        if step["kind"] == "duel":
            places = places[comparison_of(context.run, *_rivals_of(state, step)).apart[places]]
        for group in groups_of(step["kind"], step["units"]):
            context.run.flips([group], places[: step["n"]], regime)
    return {
        "steps": [*state.get("steps", []), step],
        "forwards": state.get("forwards", 0) + step["forwards"],
        "seconds": state.get("seconds", 0.0) + (step["seconds"] or 0.0),
    }


def said_of(step: Step) -> str:
    """`table of m1.37: 245 records, 0 ablated completions`."""
    return f"{step['kind']} of {'+'.join(step['units'])}: {step['n']} records, {step['forwards']} not stored"


def decide(state: InvestigationState, runtime: Context) -> InvestigationChange:
    """The verdicts of the test that was run, and what is known since."""
    step = state["chosen"]
    assert step is not None
    if step["kind"] in ("look", "leads"):
        return {"chosen": None}
    unit = "+".join(step["units"])
    family = sum(rival["unit"] == unit and kept(rival) for rival in state["rivals"])
    changed = decided(runtime.context, step, _rivals_of(state, step), family, len(state["asked"]))
    by_id = {rival["id"]: rival for rival in changed}
    return {
        "chosen": None,
        "rivals": [by_id.get(rival["id"], rival) for rival in state["rivals"]],
        "board": of_verdicts(state["board"], changed, runtime.context.run.id),
    }


def _rivals_of(state: InvestigationState, step: Step) -> list[Rival]:
    """Best on train first."""
    return by_fit([rival for rival in state["rivals"] if rival["id"] in step["rivals"]])
