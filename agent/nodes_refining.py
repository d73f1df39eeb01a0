"""Nodes of the refinement loop: for one unit after another, ask, judge, and put the hypothesis to its test.

Everything that chooses sees the train part of D_b only. The held-out part scores the unit's rule once before
and once after, and decides the hypothesis, which was registered before.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from jaxtyping import Bool
from langgraph.runtime import Runtime
from pydantic import BaseModel, ConfigDict, Field

import prompts
from agent import showing
from agent.ledger import Prediction, TestOutcome
from agent.llm.protocol import Request, Turn
from agent.state import RefinementRuntime, RefinementState, RefusalEntry, UnitCase, UnitReport
from mecharule_ops.errors import DegenerateBehaviour, MechaRuleError
from mecharule_ops.pipeline.preparation import RULE_SETTINGS
from mecharule_ops.predicates.language import evaluate, parse_predicate, schema_of, vocabulary
from mecharule_ops.predicates.table import PredicateTable, Refusal, build_table
from mecharule_ops.predicates.type_check import PredicateRefused
from mecharule_ops.rules.algebra import lookup_in, score
from mecharule_ops.rules.ruleshap import LearnedRule, learn_rule

PROMPT = "refine_unit"
TEST = "MCC of the condition against the unit's flips on the held-out records of D_b"


class Idea(BaseModel):
    """One hypothesis about a unit."""

    model_config = ConfigDict(extra="forbid")
    statement: str = Field(max_length=400)
    condition: str = Field(max_length=500)


class Refinement(BaseModel):
    """What the model replies with."""

    model_config = ConfigDict(extra="forbid")
    predicates: list[str] = Field(max_length=40)
    hypothesis: Idea | None


def ask(state: RefinementState, runtime: Runtime[RefinementRuntime]) -> RefinementState:
    """Predicates and perhaps a hypothesis for the first unit; a fault ends the unit and loses nothing."""
    context = runtime.context
    try:
        reply = context.asker.ask(_request(state, context), context.on_text)
    except MechaRuleError as fault:
        return {**_kept(state), "waiting": [], "ended": f"the model could not be asked: {fault}"}
    said = cast(Refinement, reply.parsed)
    tried = {*_case(state, context).vocabulary, *state.get("accepted", [])}
    tried |= {entry["text"] for entry in state.get("refused", [])}
    new = [text for text in dict.fromkeys(said.predicates) if text not in tried]
    idea = said.hypothesis
    asked: RefinementState = {**_kept(state), "done": state.get("done", 0) + 1, "waiting": new}
    if idea is not None and not state.get("condition"):
        asked |= {"statement": idea.statement, "condition": idea.condition}
    return {**asked, "ended": "" if new else "the model had nothing new to propose"}


def judge(state: RefinementState, runtime: Runtime[RefinementRuntime]) -> RefinementState:
    """What became of the predicates that wait, and whether the train rule is good enough to stop."""
    case, waiting = _case(state, runtime.context), state["waiting"]
    tried = (*state.get("accepted", []), *waiting)
    try:
        table, refusals = _table(case, tried)
    except DegenerateBehaviour as nothing:
        return {**_kept(state), "waiting": [], "ended": str(nothing)}
    reasons = {refusal.text: refusal.reason for refusal in refusals}
    entries: list[RefusalEntry] = [
        {"text": text, "reason": reasons[text]} for text in tried if text in reasons
    ]
    learned = _learned(case, table, runtime.context)
    good = learned.train is not None and learned.train.mcc >= runtime.context.threshold
    ended = (
        "the train rule is good"
        if good
        else "the rounds are spent"
        if state["done"] >= state["rounds"]
        else ""
    )
    return {
        **_kept(state),
        "waiting": [],
        "accepted": [text for text in tried if text not in reasons],
        "refused": [*state.get("refused", []), *entries],
        "ended": ended,
    }


def decide(state: RefinementState, runtime: Runtime[RefinementRuntime]) -> RefinementState:
    """The unit's report: its hypothesis registered and tested, its rule scored once on held-out records."""
    context, case = runtime.context, _case(state, runtime.context)
    hypothesis, note = _tested(state, case, context)
    rule, after = _rescored(case, tuple(state.get("accepted", [])), context)
    report: UnitReport = {
        "unit": case.unit,
        "before": case.before,
        "after": after,
        "rule": rule,
        "hypothesis": hypothesis,
        "ended": "; ".join(part for part in (state["ended"], note) if part),
    }
    return {
        "units": state["units"][1:],
        "rounds": state["rounds"],
        "done": 0,
        "waiting": [],
        "accepted": [],
        "refused": [],
        "statement": "",
        "condition": "",
        "ended": "",
        "reports": [*state.get("reports", []), report],
    }


def _tested(state: RefinementState, case: UnitCase, context: RefinementRuntime) -> tuple[str | None, str]:
    """(id in the ledger, what is to be said); a condition that is no predicate is not registered."""
    condition = state.get("condition", "")
    if not condition:
        return None, ""
    try:
        predicate = parse_predicate(condition, schema_of(case.columns))
    except PredicateRefused as refused:
        return None, f"its hypothesis was not registered: {refused}"
    prediction = Prediction(
        subject=case.unit,
        statement=state.get("statement", "") or f"{case.unit} flips where {predicate.text}",
        condition=predicate.text,
        test=TEST,
        threshold=context.threshold,
    )
    entry = context.ledger.register(prediction)
    if entry.outcome is None:
        entry = context.ledger.decide(entry.id, lambda registered: held_out_test(case, registered))
    return entry.id, f"its hypothesis is {entry.state}"


def held_out_test(case: UnitCase, prediction: Prediction) -> TestOutcome:
    """The MCC of a prediction's condition on the held-out records."""
    predicate = parse_predicate(prediction.condition, schema_of(case.columns))
    fires = evaluate(predicate, case.columns)[~case.train]
    measured = score(fires, case.flips[~case.train])
    return TestOutcome(value=measured.mcc, n=measured.n, positives=measured.positives)


def _rescored(
    case: UnitCase, accepted: tuple[str, ...], context: RefinementRuntime
) -> tuple[str | None, float | None]:
    """The rule learned on train with the new predicates, and its held-out MCC; the old one without new ones."""
    if not accepted:
        return case.rule, case.before
    table, _ = _table(case, accepted)
    learned = _learned(case, table, context)
    if learned.rule is None or case.train.all():
        return case.rule, case.before
    texts = [predicate.text for predicate in table.predicates]
    fires = learned.rule.fires(lookup_in(table.matrix[~case.train], texts))
    return str(learned.rule), score(fires, case.flips[~case.train]).mcc


def _learned(case: UnitCase, table: PredicateTable, context: RefinementRuntime) -> LearnedRule:
    texts = [predicate.text for predicate in table.predicates]
    return learn_rule(
        table.matrix[case.train],
        texts,
        case.flips[case.train],
        settings=RULE_SETTINGS,
        seed=context.seed,
    )


def _table(case: UnitCase, texts: tuple[str, ...]) -> tuple[PredicateTable, tuple[Refusal, ...]]:
    return build_table(
        (*case.vocabulary, *texts), case.columns, case.flips, case.train, prompt_columns=case.prompt_columns
    )


def _case(state: RefinementState, context: RefinementRuntime) -> UnitCase:
    return context.cases[state["units"][0]]


def _kept(state: RefinementState) -> RefinementState:
    return cast(RefinementState, dict(state))


def _request(state: RefinementState, context: RefinementRuntime) -> Request:
    case = _case(state, context)
    train: Bool[np.ndarray, " record"] = case.train
    table, _ = _table(case, tuple(state.get("accepted", [])))
    flipped, unflipped = showing.contrast(
        case.flips, train, context.examples, (context.seed, state.get("done", 0))
    )
    learned = _learned(case, table, context)
    system, user = prompts.load(PROMPT).fill(
        unit=case.unit,
        direction=case.arrow,
        columns=showing.columns(schema_of(case.columns), case.prompt_columns),
        language=vocabulary(),
        rule="(none)" if learned.train is None else f"{learned.rule}  (train MCC {learned.train.mcc:.3f})",
        vocabulary=showing.vocabulary(table),
        refusals=showing.refusals(state.get("refused", [])),
        flipped=showing.records(case.columns, flipped),
        unflipped=showing.records(case.columns, unflipped),
    )
    return Request(system=system, turns=(Turn(role="user", text=user),), schema=Refinement)
