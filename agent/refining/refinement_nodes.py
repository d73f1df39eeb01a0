"""Nodes of the refinement loop: for one unit after another, ask, examine, judge, and put what stands to its test.

Everything that chooses sees the train part of D_b only. A hypothesis is put to the cheapest test that could refute it
as soon as it is stated, and is kept or dropped. The held-out part decides two predictions a unit, each once and each
registered before: the hypothesis that was kept, and that the refined rule predicts the unit's flips.
"""

from __future__ import annotations

import re
from dataclasses import replace

from langgraph.runtime import Runtime

from agent.refining import screening
from agent.refining.refinement_state import RefinementRuntime, RefinementState, Tried, UnitCase, UnitReport
from agent.refining.suggesting import learned_on, table_of, validated_mcc
from agent.state import RefusalEntry, sifted
from mecharule_ops.errors import BudgetSpent, DegenerateBehaviour, MechaRuleError
from mecharule_ops.predicates.atoms import canonical
from mecharule_ops.predicates.language import evaluate, parse_predicate, schema_of
from mecharule_ops.predicates.type_check import PredicateRefused
from mecharule_ops.rules.algebra import Rule, score
from mecharule_ops.rules.quality import is_hq_test
from mecharule_ops.store.ledger import Hypothesis, HypothesisState, Prediction, TestOutcome
from mecharule_ops.types import AnchoredRule, RuleScore

TEST = "MCC of the condition against the unit's flips on the held-out records of D_b"
RULE_TEST = "HQ-T, the MCC of the refined rule against the unit's flips on the held-out records of D_b"
_WORD = re.compile(r"[^\W\d_]{2}")
_SHOWN = 160
"""Characters of a statement or a condition in a transcript; the ledger has them whole."""


def ask(state: RefinementState, runtime: Runtime[RefinementRuntime]) -> RefinementState:
    """Predicates and perhaps a hypothesis for the first unit; a fault ends the unit and loses nothing.

    A hypothesis whose condition was tested before is no new one.
    """
    context, case = runtime.context, _case(state, runtime.context)
    accepted, refused = state.get("accepted", []), state.get("refused", [])
    dropped = state.get("dropped", [])
    try:
        tried = Tried(rounds=state.get("done", 0), accepted=accepted, refused=refused, dropped=dropped)
        said = context.suggester.suggest(case, tried)
    except MechaRuleError as fault:
        ended = f"{context.suggester.name} gave no usable reply: {fault}"
        return {
            "waiting": [],
            "idea": {},
            "transcript": [*state.get("transcript", []), ended],
            "ended": ended,
            "failed": True,
            "spent": isinstance(fault, BudgetSpent),
        }
    known = {*case.vocabulary, *accepted, *(entry["text"] for entry in refused)}
    new = [text for text in dict.fromkeys(said.predicates) if text not in known]
    tested = {state.get("condition", ""), *(entry["text"] for entry in dropped)}
    idea = said.hypothesis
    is_new = idea is not None and idea.condition.strip() not in tested
    asked: RefinementState = {
        "done": state.get("done", 0) + 1,
        "waiting": new,
        "idea": idea.model_dump() if idea is not None and is_new else {},
        "said": [*state.get("said", []), said.model_dump()],
    }
    return {**asked, "ended": "" if new else f"{context.suggester.name} had nothing new to propose"}


def _readable(said: str) -> str:
    """What a model said for a person, shortened; nothing where it has no word of two letters."""
    return _shortened(said.strip()) if _WORD.search(said) else ""


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def examine(state: RefinementState, runtime: Runtime[RefinementRuntime]) -> RefinementState:
    """The hypothesis that waits, registered, tested on train records, and kept or dropped."""
    context, case, idea = runtime.context, _case(state, runtime.context), state.get("idea")
    if not idea:
        return {}
    statement = _readable(idea["statement"]) or "A statement without words."
    lines = [f"round {state['done']}: {statement} Expected exactly where {_shortened(idea['condition'])}."]
    if refuted_by := _readable(idea["refuted_by"]):
        lines.append(f"  what would refute it, in its words: {refuted_by}")
    lines.append(
        f"  what would refute it, in numbers: an MCC interval that ends below {context.threshold:.2f}"
    )
    examined: RefinementState = {"idea": {}}
    try:
        entry = screening.screened(case, idea["statement"], idea["condition"], context)
    except PredicateRefused as refused:
        reason, condition = f"not registered: {refused}", idea["condition"]
        lines.append(f"  {reason}; dropped")
    else:
        examined["last"], condition = entry.id, entry.prediction.condition
        reason = screening.told(case, entry)
        lines.append(f"  {reason}")
        interval = screening.train_interval(case, condition)
        fit = -1.0 if interval is None else interval.mcc
        if entry.state == HypothesisState.SUPPORTED:
            if fit > state.get("fit", -1.0):
                examined |= {"statement": entry.prediction.statement, "condition": condition, "fit": fit}
            return {**examined, "transcript": [*state.get("transcript", []), *lines]}
    dropped: list[RefusalEntry] = [*state.get("dropped", []), {"text": condition, "reason": reason}]
    return {**examined, "dropped": dropped, "transcript": [*state.get("transcript", []), *lines]}


def judge(state: RefinementState, runtime: Runtime[RefinementRuntime]) -> RefinementState:
    """What became of the predicates that wait, and whether the rule is good enough to stop, judged on train alone."""
    case, waiting = _case(state, runtime.context), state["waiting"]
    tried = (*state.get("accepted", []), *waiting)
    try:
        _, refusals = table_of(case, tried)
    except DegenerateBehaviour as nothing:
        return {"waiting": [], "ended": str(nothing)}
    accepted, entries = sifted(tried, refusals)
    good = validated_mcc(case, accepted, runtime.context.seed) >= runtime.context.threshold
    spent = "the rounds are spent" if state["done"] >= state["rounds"] else ""
    return {
        "waiting": [],
        "accepted": accepted,
        "refused": [*state.get("refused", []), *entries],
        "ended": "its rule is good on train records it did not see" if good else spent,
    }


def decide(state: RefinementState, runtime: Runtime[RefinementRuntime]) -> RefinementState:
    """The unit's report: its hypothesis and its refined rule, each registered and then tested once."""
    context, case = runtime.context, _case(state, runtime.context)
    accepted = tuple(state.get("accepted", []))
    idea, note = _tested(state, case, context)
    after, claim = _refined(case, accepted, context)
    notes = (state["ended"], note, "" if claim is None else f"its refined rule is {claim.state}")
    lines = [
        *state.get("transcript", []),
        *([] if idea is None else [_told("the hypothesis that was kept", idea)]),
        *([] if claim is None else [_told(f"the refined rule {after.rule}", claim)]),
    ]
    named = set() if after.rule is None else Rule.parse(after.rule).predicates
    report: UnitReport = {
        "unit": case.unit,
        "arrow": case.arrow,
        "before": _held_out(case.anchored),
        "after": _held_out(after),
        "good_before": is_hq_test(case.anchored, context.threshold, context.coverage),
        "good_after": is_hq_test(after, context.threshold, context.coverage),
        "rule": after.rule,
        "hypothesis": state.get("last") or None if idea is None else idea.id,
        "prediction": None if claim is None else claim.id,
        "proposed": len(accepted) + len(state.get("refused", [])),
        "accepted": len(accepted),
        "in_rule": sum(canonical(text) in named for text in accepted),
        "stands": idea is not None and idea.state == HypothesisState.SUPPORTED,
        "transcript": lines,
        "said": state.get("said", []),
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
        "idea": {},
        "statement": "",
        "condition": "",
        "fit": -1.0,
        "dropped": [],
        "last": "",
        "transcript": [],
        "said": [],
        "ended": "",
        "failed": False,
        "reports": [*state.get("reports", []), report],
    }


def _told(what: str, entry: Hypothesis) -> str:
    outcome = entry.outcome
    measured = (
        "" if outcome is None or outcome.value is None else f" MCC {outcome.value:.2f} on {outcome.n:,},"
    )
    return f"{what}, on the held-out records, once:{measured} {entry.state} [h:{entry.id}]"


def _tested(
    state: RefinementState, case: UnitCase, context: RefinementRuntime
) -> tuple[Hypothesis | None, str]:
    """(the decided hypothesis, what is to be said); one that was dropped has no look at the held-out records."""
    condition, dropped = state.get("condition", ""), state.get("dropped", [])
    if not condition:
        return None, f"{_hypotheses(len(dropped))} dropped" if dropped else ""
    prediction = Prediction(
        subject=case.unit,
        statement=state.get("statement", ""),
        condition=condition,
        test=TEST,
        threshold=context.threshold,
    )
    entry = _decided(case, prediction, context)
    return entry, f"its hypothesis is {entry.state}"


def _hypotheses(count: int) -> str:
    return f"{count} hypothes{'is' if count == 1 else 'es'}"


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
    return replace(case.anchored, rule=rule, train=learned.train, held_out=held_out, chance=None), claim


def _decided(case: UnitCase, prediction: Prediction, context: RefinementRuntime) -> Hypothesis:
    """The entry of a prediction after its one test."""
    entry = context.ledger.register(prediction)
    if entry.outcome is not None:
        return entry
    return context.ledger.decide(entry.id, lambda registered: held_out_test(case, prediction))


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
