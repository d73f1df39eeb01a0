"""Would it flip if …? One unit ablated on a typed prompt, beside what its rule and similar records say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from mecharule_ops.certificates.certificate import Certificate, Completion, ExampleRow, shown_rows
from mecharule_ops.codec import encode
from mecharule_ops.engine.behaviour import behaviour_on
from mecharule_ops.numbers import percent
from mecharule_ops.plain_text import beginning, last_line
from mecharule_ops.questions.firing import rule_fires
from mecharule_ops.questions.typed_prompt import (
    FirstOrderOfPrompt,
    NeighbourFlips,
    ablated_rows,
    first_order_of_prompt,
    flips_with_interval,
    nearest,
    typed_example,
    unobserved,
)
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.rules.in_words import rule_in_words
from mecharule_ops.rules.interval import MccInterval
from mecharule_ops.run.certify import certified
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import check_unit, findings_of, keep, opened, outcome_for
from mecharule_ops.saying.chain_lines import quoted
from mecharule_ops.saying.fact import Fact, fact
from mecharule_ops.saying.rules import short
from mecharule_ops.saying.unit_rules import UnitRule, told_rule
from mecharule_ops.types import BehaviourRecord, Example, Neuron, Regime
from tools._ablations import accepted, price_words
from tools._accounts import about, change_words, example_data
from tools.arguments import FlipArguments
from tools.registry import Tell, ToolResult, stated

TYPED, EDITED = "typed", "edited"


@dataclass(frozen=True, slots=True, kw_only=True)
class RulePrediction:
    """What a unit's rule says of the prompt before anything is ablated."""

    rule: str
    prompt_only: bool
    held_out: MccInterval
    fires: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptFinding:
    """Everything found of one unit on one typed prompt."""

    run: Run
    neuron: Neuron
    regime: Regime
    certificate: Certificate
    rows: tuple[ExampleRow, ...]
    """What may be shown of the certificate: the typed prompt, then its edits."""
    prediction: RulePrediction | None
    first_order: FirstOrderOfPrompt | None
    similar: NeighbourFlips
    similar_ids: tuple[int, ...]
    asked: tuple[Regime, ...]
    """The directions in which the unit was found to flip answers; those of the run where in none."""

    @property
    def arises(self) -> bool:
        """Whether the unablated answer is such that the unit could flip it."""
        return self.regime in self.asked

    @property
    def flipped(self) -> bool:
        """Whether the typed prompt flips."""
        return self.certificate.rows[0].flipped

    @property
    def changed(self) -> bool:
        """What first order speaks of: whether a success is lost, and of a failure whether its text changes at all."""
        row = self.certificate.rows[0]
        return row.flipped if row.before.label else row.before.text != row.after.text


def flip(given: FlipArguments, tell: Tell) -> ToolResult:
    """Completions before and after, what first order and the rule say, edits that switch the rule, and similar
    records' flips.

    Cost: two completions a prompt, a backward a generated token and competitor, and one ablated completion a
    neighbour that the run has not stored; or only the price of these ablations, at most,
    without loading the model.
    """
    neuron = Neuron.parse(given.neuron)
    with opened(given.run, write=not given.estimate, tell=tell) as run:
        findings = findings_of(run)
        check_unit(run, neuron)
        example = typed_example(run.task, given.prompt)
        price = price_words(run, 1 + given.edits + given.neighbours)
        if given.estimate:
            return price.stated(run.id, at_most=True)
        accepted(price, given.yes, tell)
        tell(f"loading {run.config.model}")
        (record,) = behaviour_on(run.task, run.subject, [example]).records
        regime = Regime(int(record.label))
        outcome = outcome_for(findings, neuron, regime if regime.value in run.config.regimes else None)
        directed = tuple(one for one in run.regimes if findings.unit(neuron, one)) or tuple(run.regimes)
        account = run.account(neuron, outcome.regime)
        unit = findings.unit(neuron, outcome.regime)
        prediction = _prediction(run, told_rule(account, None if unit is None else unit.rule), record)
        switching = _edits(run, prediction, example, given.edits)
        others = behaviour_on(run.task, run.subject, switching).records
        certificate = _certified(run, neuron, record, others)
        similar, ids = _similar(run, neuron, example, regime, given.neighbours)
        answered = PromptFinding(
            run=run,
            neuron=neuron,
            regime=regime,
            certificate=certificate,
            rows=shown_rows(certificate, given.show_text),
            prediction=prediction,
            first_order=first_order_of_prompt(run, neuron, record),
            similar=similar,
            similar_ids=tuple(ids),
            asked=directed,
        )
        return stated(_data(answered), tuple(_facts(answered)))


def _prediction(run: Run, told: UnitRule | None, record: BehaviourRecord) -> RulePrediction | None:
    """By the one rule that is told of the unit, where it predicts."""
    if told is None or told.learned is None or told.held_out is None or not told.shown:
        return None
    fires = bool(rule_fires(Rule.parse(told.learned), run.task, [record])[0])
    return RulePrediction(
        rule=told.learned, prompt_only=told.prompt_only, held_out=told.held_out, fires=fires
    )


def _edits(run: Run, prediction: RulePrediction | None, example: Example, count: int) -> list[Example]:
    """The smallest edits that switch a prompt-only rule and are still questions of the task."""
    if prediction is None or not prediction.prompt_only or not count:
        return []
    candidates = run.task.edits(example)
    if not candidates:
        return []
    fires = rule_fires(
        Rule.parse(prediction.rule),
        run.task,
        [unobserved(candidate, run.task) for candidate in candidates],
    )
    switched = np.flatnonzero(fires != prediction.fires)[:count]
    return [candidates[int(place)] for place in switched]


def _certified(
    run: Run, neuron: Neuron, record: BehaviourRecord, others: Sequence[BehaviourRecord]
) -> Certificate:
    """A certificate of the typed prompt and of the edits that start from the same outcome."""
    same = [other for other in others if other.label == record.label]
    records = [record, *same]
    intervention = run.intervention(neuron.basis)
    rows = ablated_rows(run, intervention, (neuron,), records, [TYPED, *[EDITED] * len(same)])
    verb = "flips" if rows[0].flipped else "does not flip"
    regime = Regime(int(record.label))
    asked = "a typed prompt" if run.task.concealed else repr(last_line(record.example.prompt))
    made = certified(
        run,
        intervention,
        (neuron,),
        rows,
        regime=regime,
        kind="flip",
        claim=f"ablating {neuron} {verb} {asked} ({regime.arrow})",
    )
    return keep(run, made)


def _similar(
    run: Run, neuron: Neuron, example: Example, regime: Regime, count: int
) -> tuple[NeighbourFlips, list[int]]:
    """Flips of the records most like the prompt that start from the same outcome."""
    eligible = [
        int(place) for place in run.eligible(regime) if run.records[int(place)].example.id != example.id
    ]
    near = nearest(example.fields, [run.records[place].example.fields for place in eligible], count)
    positions = [eligible[int(place)] for place in near]
    if not positions:
        return flips_with_interval(0, 0, run.config.alpha), []
    flips = int(run.flips([(neuron,)], positions, regime).sum())
    ids = [run.records[place].example.id for place in positions]
    return flips_with_interval(flips, len(positions), run.config.alpha), ids


def _data(found: PromptFinding) -> dict[str, object]:
    typed, *others = found.rows
    prediction, first_order = found.prediction, found.first_order
    return {
        **about(found.run.id, found.neuron, found.regime),
        **example_data(typed),
        "changed": found.changed,
        "arises": found.arises,
        "first_order": first_order
        and {
            **asdict(first_order),
            "changes": first_order.changes,
            "agrees": first_order.changes == found.changed,
        },
        "rule": prediction
        and {
            "text": prediction.rule,
            "fires": prediction.fires,
            "agrees": prediction.fires == found.flipped,
            "held_out_mcc": prediction.held_out.mcc,
        },
        "edits": [example_data(row) for row in others],
        "neighbours": {
            **encode(found.similar.count),
            "lower": found.similar.lower,
            "upper": found.similar.upper,
            "examples": list(found.similar_ids[:5]),
        },
        "certificate": found.certificate.id,
    }


def _facts(found: PromptFinding) -> Iterator[Fact]:
    """What happened, what was predicted beforehand, and what edits and similar records do."""
    run, (typed, *others), unit = found.run, found.rows, found.neuron
    proof, source = f"c:{found.certificate.id}", f"run:{run.id}"
    if not found.arises:
        yield fact(_unasked_words(found), proof, f"run:{run.id}", unit=unit)
        return
    change = f"{last_line(typed.prompt)} {_side(run, typed.before)} → {_side(run, typed.after)}"
    yield fact(
        f"{'It flips' if typed.flipped else 'It does not flip'}: with {unit} switched off, {change}",
        proof,
        unit=unit,
    )
    for sentence in (_rule_words(found), f"First order: {_first_order_words(found)}"):
        yield fact(sentence, source, unit=unit)
    for row in others:
        does = "flips" if row.flipped else "does not flip"
        edit = f"The edit {last_line(row.prompt)!r}, on which the rule answers differently, {does}"
        yield fact(f"{edit} ({change_words(row)})", proof, unit=unit)
    yield fact(_similar_words(found.similar), source, unit=unit)


def _unasked_words(found: PromptFinding) -> str:
    """That an answer which is wrong already cannot turn wrong, and what the ablation does to it."""
    run, typed = found.run, found.rows[0]
    words, label = run.task.words, bool(found.asked[0].value)
    return (
        f"The question does not arise: unablated {run.config.model} already answers "
        f"{last_line(typed.prompt)} {_side(run, typed.before)}, and {found.neuron} turns {words.of(label)} answers "
        f"{words.of(not label)}; with it switched off the answer is {_side(run, typed.after)}"
    )


def _verdict(agrees: bool) -> str:
    return "it agrees" if agrees else "it is wrong here"


def _first_order_words(found: PromptFinding) -> str:
    said = found.first_order
    if said is None:
        return "no generated token is in reach of the ablation"
    what = "answer" if found.rows[0].before.label else "text"
    says = f"the {what} {'changes' if said.changes else 'stays'}"
    return (
        f"at token {said.position} {quoted(said.generated)} leads {quoted(said.competitor)}, which "
        f"the drop helps most, by {said.lead:.2f} logits, and the first-order drop of that is {said.drop:.2f}: {says}; "
        f"{_verdict(said.changes == found.changed)}"
    )


def _rule_words(found: PromptFinding) -> str:
    said = found.prediction
    if said is None:
        return "The run shows no rule of this unit's flips"
    fires = "holds" if said.fires else "does not hold"
    return (
        f"Its rule {fires} on this prompt; {_verdict(said.fires == found.flipped)}: "
        f"{rule_in_words(str(said.rule), found.run.task)} (MCC {short(said.held_out.mcc)})"
    )


def _similar_words(similar: NeighbourFlips) -> str:
    if not similar.count.n:
        return "No record of this run starts from the same outcome with the same categories"
    flips, n = similar.count.flips, similar.count.n
    return (
        f"Of the {n} most similar records {flips} flip: between {percent(similar.lower)} and "
        f"{percent(similar.upper)} of such records"
    )


def _side(run: Run, completion: Completion) -> str:
    return f"{beginning(completion.text)} ({run.task.words.of(completion.label)})"
