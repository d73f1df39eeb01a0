"""Nodes of the refinement loop: for one unit after another, ask, judge, and put what came of it to its test.

Everything that chooses sees the train part of D_b only. The held-out part decides two predictions a unit, each once
and each registered before: the hypothesis about the unit, and that the refined rule predicts its flips.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from langgraph.runtime import Runtime

from agent.refining.ledger import Hypothesis, Prediction, TestOutcome
from agent.refining.state import RefinementRuntime, RefinementState, Tried, UnitCase, UnitReport
from agent.refining.suggesting import learned_on, table_of, validated_mcc
from agent.state import RefusalEntry
from mecharule_ops.errors import DegenerateBehaviour, MechaRuleError
from mecharule_ops.predicates.language import evaluate, parse_predicate, schema_of
from mecharule_ops.predicates.type_check import PredicateRefused
from mecharule_ops.rules.algebra import Rule, score
from mecharule_ops.rules.quality import is_hq_test
from mecharule_ops.types import AnchoredRule, RuleScore

TEST = "MCC of the condition against the unit's flips on the held-out records of D_b"
RULE_TEST = "HQ-T, the MCC of the refined rule against the unit's flips on the held-out records of D_b"


def ask(state: RefinementState, runtime: Runtime[RefinementRuntime]) -> RefinementState:
    """Predicates and perhaps a hypothesis for the first unit; a fault ends the unit and loses nothing."""
    context, case = runtime.context, _case(state, runtime.context)
    accepted, refused = state.get("accepted", []), state.get("refused", [])
    try:
        said = context.suggester.suggest(
            case, Tried(rounds=state.get("done", 0), accepted=accepted, refused=refused)
        )
    except MechaRuleError as fault:
        ended = f"{context.suggester.name} could not be asked: {fault}"
        return {**_kept(state), "waiting": [], "ended": ended, "failed": True}
    tried = {*case.vocabulary, *accepted, *(entry["text"] for entry in refused)}
    new = [text for text in dict.fromkeys(said.predicates) if text not in tried]
    asked: RefinementState = {**_kept(state), "done": state.get("done", 0) + 1, "waiting": new}
    if said.hypothesis is not None and not state.get("condition"):
        asked |= {"statement": said.hypothesis.statement, "condition": said.hypothesis.condition}
    return {**asked, "ended": "" if new else f"{context.suggester.name} had nothing new to propose"}


def judge(state: RefinementState, runtime: Runtime[RefinementRuntime]) -> RefinementState:
    """What became of the predicates that wait, and whether the rule is good enough to stop, judged on train alone."""
    case, waiting = _case(state, runtime.context), state["waiting"]
    tried = (*state.get("accepted", []), *waiting)
    try:
        _, refusals = table_of(case, tried)
    except DegenerateBehaviour as nothing:
        return {**_kept(state), "waiting": [], "ended": str(nothing)}
    reasons = {refusal.text: refusal.reason for refusal in refusals}
    entries: list[RefusalEntry] = [
        {"text": text, "reason": reasons[text]} for text in tried if text in reasons
    ]
    accepted = [text for text in tried if text not in reasons]
    good = validated_mcc(case, accepted, runtime.context.seed) >= runtime.context.threshold
    spent = "the rounds are spent" if state["done"] >= state["rounds"] else ""
    return {
        **_kept(state),
        "waiting": [],
        "accepted": accepted,
        "refused": [*state.get("refused", []), *entries],
        "ended": "its rule is good on train records it did not see" if good else spent,
    }


def decide(state: RefinementState, runtime: Runtime[RefinementRuntime]) -> RefinementState:
    """The unit's report: its hypothesis and its refined rule, each registered and then tested once."""
    context, case = runtime.context, _case(state, runtime.context)
    idea, note = _tested(state, case, context)
    after, claim = _refined(case, tuple(state.get("accepted", [])), context)
    notes = (state["ended"], note, "" if claim is None else f"its refined rule is {claim.state}")
    report: UnitReport = {
        "unit": case.unit,
        "arrow": case.arrow,
        "before": _held_out(case.anchored),
        "after": _held_out(after),
        "good_before": is_hq_test(case.anchored, context.threshold, context.coverage),
        "good_after": is_hq_test(after, context.threshold, context.coverage),
        "rule": after.rule,
        "hypothesis": None if idea is None else idea.id,
        "prediction": None if claim is None else claim.id,
        "ended": "; ".join(part for part in notes if part),
        "failed": state.get("failed", False),
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
        "failed": False,
        "reports": [*state.get("reports", []), report],
    }


def _tested(
    state: RefinementState, case: UnitCase, context: RefinementRuntime
) -> tuple[Hypothesis | None, str]:
    """(the decided hypothesis, what is to be said); a condition that is no predicate is not registered."""
    condition = state.get("condition", "")
    if not condition:
        return None, ""
    try:
        predicate = parse_predicate(condition, schema_of(case.columns))
    except PredicateRefused as refused:
        return None, f"its hypothesis was not registered: {refused}"
    prediction = Prediction(
        subject=case.unit,
        statement=state.get("statement", "").strip() or f"{case.unit} flips where {predicate.text}",
        condition=predicate.text,
        test=TEST,
        threshold=context.threshold,
    )
    entry = _decided(case, prediction, context)
    return entry, f"its hypothesis is {entry.state}"


def _refined(
    case: UnitCase, accepted: tuple[str, ...], context: RefinementRuntime
) -> tuple[AnchoredRule, Hypothesis | None]:
    """(the unit's rule over the new predicates too, the decision on it); the old rule where there is no new one."""
    learned = learned_on(case, accepted, context.seed) if accepted else None
    rule = None if learned is None or learned.rule is None else str(learned.rule)
    if learned is None or rule is None or rule == case.anchored.rule or case.train.all():
        return case.anchored, None
    prediction = Prediction(
        subject=case.unit,
        statement=f"{case.unit} flips ({case.arrow}) exactly where its refined rule holds.",
        condition=rule,
        test=RULE_TEST,
        threshold=context.threshold,
    )
    claim = _decided(case, prediction, context)
    held_out = held_out_score(case, rule)
    return replace(case.anchored, rule=rule, train=learned.train, held_out=held_out), claim


def _decided(case: UnitCase, prediction: Prediction, context: RefinementRuntime) -> Hypothesis:
    """The entry of a prediction after its one test."""
    entry = context.ledger.register(prediction)
    if entry.outcome is not None:
        return entry
    return context.ledger.decide(entry.id, lambda registered: held_out_test(case, registered))


def held_out_test(case: UnitCase, prediction: Prediction) -> TestOutcome:
    """The MCC of a prediction's condition on the held-out records."""
    measured = held_out_score(case, prediction.condition)
    return TestOutcome(value=measured.mcc, n=measured.n, positives=measured.positives)


def held_out_score(case: UnitCase, condition: str) -> RuleScore:
    """How a predicate or a printed rule predicts the unit's flips on the held-out records."""
    schema = schema_of(case.columns)
    fires = Rule.parse(condition).fires(lambda text: evaluate(parse_predicate(text, schema), case.columns))
    return score(fires[~case.train], case.flips[~case.train])


def _held_out(anchored: AnchoredRule) -> float | None:
    return None if anchored.held_out is None else anchored.held_out.mcc


def _case(state: RefinementState, context: RefinementRuntime) -> UnitCase:
    return context.cases[state["units"][0]]


def _kept(state: RefinementState) -> RefinementState:
    return cast(RefinementState, dict(state))
