"""Would it flip if …? One unit ablated on a typed prompt, beside what its rule and first order say beforehand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from mecharule_ops.certificates.certificate import Certificate, Completion, ExampleRow, shown_rows
from mecharule_ops.engine.behaviour import behaviour_on
from mecharule_ops.engine.group_questions import Group
from mecharule_ops.engine.settling import until_settled
from mecharule_ops.errors import UsageError
from mecharule_ops.facts.chain_facts import quoted
from mecharule_ops.facts.fact import Fact, FactValue, fact
from mecharule_ops.facts.rules import short
from mecharule_ops.facts.unit_rules import UnitRule, told_rule
from mecharule_ops.mechanism.first_order import effects
from mecharule_ops.plain_text import beginning, last_line
from mecharule_ops.rules.in_words import rule_in_words
from mecharule_ops.run.certify import certified, rows_from
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import check_unit, findings_of, keep, outcome_for
from mecharule_ops.run.tabulating import rule_fires
from mecharule_ops.tasks.base import Task
from mecharule_ops.tasks.text import OWN, TextTask
from mecharule_ops.types import BehaviourRecord, Example, Intervention, Neuron, Regime
from tools._accounts import change_words, example_data
from tools.arguments import FlipArguments
from tools.result import Priced, Tell, of_facts

TYPED, EDITED = "typed", "edited"


def flip(run: Run, given: FlipArguments, tell: Tell) -> Priced:
    """Completions before and after, certified, what rule and first order say, and edits that switch the rule.

    A prompt that no table has gets its two completions alone, since nothing says which is right. Cost: two completions
    for the prompt and each of at most as many edits as are asked for, and a backward a generated token and competitor.
    """
    unit, findings = Neuron.parse(given.neuron), findings_of(run)
    check_unit(run, unit)
    example = typed_example(run.task, given.prompt)
    yield 1 + given.edits * (example.id != OWN)
    (record,) = behaviour_on(run.task, run.subject, [example]).records
    if example.id == OWN:
        return of_facts([_unlabelled(run, unit, record)])
    regime = Regime(int(record.label))
    outcome = outcome_for(findings, unit, regime if regime in run.regimes else None)
    known = findings.unit(unit, outcome.regime)
    rule = told_rule(run.account(unit, outcome.regime), known.rule if known else None)
    if rule and not (rule.shown and rule.learned and rule.held_out):
        rule = None
    fires = bool(rule_fires(rule.learned, run.task, [record])[0]) if rule and rule.learned else None
    asked = [one for one in run.regimes if findings.unit(unit, one)] or run.regimes
    told = given.edits and regime in asked and rule and rule.prompt_only
    edits = list(run.task.edits(example)) if told else []
    if edits and rule and rule.learned:
        switched = rule_fires(rule.learned, run.task, [unobserved(one, run.task) for one in edits]) != fires
        edits = [edits[int(place)] for place in np.flatnonzero(switched)[: given.edits]]
    certificate = _certified(run, unit, record, behaviour_on(run.task, run.subject, edits).records)
    rows = shown_rows(certificate, given.show_text)
    if regime not in asked:
        return of_facts([_unasked(run, unit, certificate, rows[0], asked[0])])
    first_order = first_order_of_prompt(run, unit, record)
    return of_facts(list(_facts(run, unit, certificate, rows, rule, fires, first_order)))


def _unlabelled(run: Run, unit: Neuron, record: BehaviourRecord) -> Fact:
    """The completions of a prompt of one's own, which no certificate holds."""
    (row,) = ablated_rows(run, run.intervention(unit.basis), (unit,), [record], [TYPED])
    changed = row.before.text != row.after.text
    said = (
        f"{last_line(row.prompt)!r} is none of the prompts of {run.task.name}, so nothing says what is right: "
        f"{run.config.model} writes {row.before.text!r}, with {unit} switched off "
        f"{repr(row.after.text) if changed else 'the same'}"
    )
    value = {**example_data(row), "example": None, "flipped": None, "changed": changed}
    return fact(said, f"run:{run.id}", unit=unit, key=f"unit.{unit}.flip.unlabelled", value=value)


def _certified(
    run: Run, unit: Neuron, record: BehaviourRecord, others: Sequence[BehaviourRecord]
) -> Certificate:
    """A certificate of the typed prompt and of the edits that start from the same outcome."""
    records = [record, *(other for other in others if other.label == record.label)]
    intervention, regime = run.intervention(unit.basis), Regime(int(record.label))
    rows = ablated_rows(run, intervention, (unit,), records, [TYPED, *[EDITED] * (len(records) - 1)])
    verb = "flips" if rows[0].flipped else "does not flip"
    asked = "a typed prompt" if run.task.concealed else repr(last_line(record.example.prompt))
    claim = f"ablating {unit} {verb} {asked} ({regime.arrow})"
    return keep(run, certified(run, intervention, (unit,), rows, regime=regime, kind="flip", claim=claim))


def _facts(
    run: Run,
    unit: Neuron,
    certificate: Certificate,
    rows: Sequence[ExampleRow],
    rule: UnitRule | None,
    fires: bool | None,
    first_order: FirstOrderOfPrompt | None,
) -> Iterator[Fact]:
    """What happened, what was predicted beforehand, and what edits do."""
    key, proof, source = f"unit.{unit}.flip", f"c:{certificate.id}", f"run:{run.id}"
    typed, *others = rows
    change = f"{last_line(typed.prompt)} {_side(run, typed.before)} → {_side(run, typed.after)}"
    said = f"{'It flips' if typed.flipped else 'It does not flip'}: with {unit} switched off, {change}"
    yield fact(said, proof, unit=unit, key=f"{key}.typed", value=example_data(typed))
    if rule is None or rule.held_out is None:
        yield fact("The run shows no rule of this unit's flips", source, unit=unit, key=f"{key}.rule")
    else:
        agrees = fires == typed.flipped
        said = (
            f"Its rule {'holds' if fires else 'does not hold'} on this prompt; {_verdict(agrees)}: "
            f"{rule_in_words(str(rule.learned), run.task)} (MCC {short(rule.held_out.mcc)})"
        )
        value: dict[str, FactValue] = {"text": str(rule.learned), "held_out_mcc": rule.held_out.mcc}
        value |= {"fires": fires, "agrees": agrees}
        yield fact(said, source, unit=unit, key=f"{key}.rule", value=value)
    yield _first_order(first_order, typed, source, f"{key}.first_order")
    for number, row in enumerate(others, 1):
        does = "flips" if row.flipped else "does not flip"
        edit = f"The edit {last_line(row.prompt)!r}, on which the rule answers differently, {does}"
        said = f"{edit} ({change_words(row)})"
        yield fact(said, proof, unit=unit, key=f"{key}.edits.{number}", value=example_data(row))


def _unasked(run: Run, unit: Neuron, certificate: Certificate, typed: ExampleRow, asked: Regime) -> Fact:
    """That an answer which is wrong already cannot turn wrong, and what the ablation does to it."""
    words, label = run.task.words, bool(asked.value)
    said = (
        f"The question does not arise: unablated {run.config.model} already answers "
        f"{last_line(typed.prompt)} {_side(run, typed.before)}, and {unit} turns {words.of(label)} answers "
        f"{words.of(not label)}; with it switched off the answer is {_side(run, typed.after)}"
    )
    key = f"unit.{unit}.flip.does_not_arise"
    return fact(said, f"c:{certificate.id}", f"run:{run.id}", unit=unit, key=key, value=example_data(typed))


def _first_order(found: FirstOrderOfPrompt | None, typed: ExampleRow, source: str, key: str) -> Fact:
    """Whether a success is lost, and of a failure whether its text changes at all, as first order says beforehand."""
    if found is None:
        return fact("First order: no generated token is in reach of the ablation", source, key=key)
    changed = typed.flipped if typed.before.label else typed.before.text != typed.after.text
    agrees = found.changes == changed
    what = "answer" if typed.before.label else "text"
    said = (
        f"First order: at token {found.position} {quoted(found.generated)} leads {quoted(found.competitor)}, which "
        f"the drop helps most, by {found.lead:.2f} logits, and the first-order drop of that is {found.drop:.2f}: the "
        f"{what} {'changes' if found.changes else 'stays'}; {_verdict(agrees)}"
    )
    return fact(said, source, key=key, value={**asdict(found), "changes": found.changes, "agrees": agrees})


def _verdict(agrees: bool) -> str:
    return "it agrees" if agrees else "it is wrong here"


def _side(run: Run, completion: Completion) -> str:
    return f"{beginning(completion.text)} ({run.task.words.of(completion.label)})"


def ablated_rows(
    run: Run,
    intervention: Intervention,
    units: Group,
    records: Sequence[BehaviourRecord],
    slices: Sequence[str],
) -> tuple[ExampleRow, ...]:
    """Each record before and after the ablation, in the slice named for it."""
    engine = run.completer(intervention, records=records)
    placed = [(name, place) for place, name in enumerate(slices)]
    after = engine.completions([units], range(len(records)))
    return rows_from(after, 0, run.subject.decode, records, placed)


def unobserved(example: Example, task: Task) -> BehaviourRecord:
    """A record without a completion: enough for a rule over prompt columns."""
    return BehaviourRecord(
        example=example, tokens=(), completion="", parsed=task.parse(example, ""), label=False
    )


def typed_example(task: Task, text: str) -> Example:
    """The example of a typed prompt; of a table also of words that one prompt alone has, or of a prompt of one's own.

    Raises `UsageError`.
    """
    try:
        return task.read(text)
    except UsageError:
        if not isinstance(task, TextTask) or task.concealed:
            raise
        return task.holding(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstOrderOfPrompt:
    """Lead and first-order drop where most is left of drop − lead."""

    position: int
    """Generated token, counted from 1."""
    generated: str
    competitor: str
    """The token that would take its place."""
    lead: float
    """In logits."""
    drop: float

    @property
    def changes(self) -> bool:
        """L_j(x): whether first order says that the answer changes."""
        return self.drop > self.lead


def first_order_of_prompt(run: Run, unit: Neuron, record: BehaviourRecord) -> FirstOrderOfPrompt | None:
    """None without a token in reach. Cost: a clean pass, and a backward a generated token and competitor."""
    answer = until_settled(run.subject, run.task, [record])
    found = effects(run.subject, answer, run.replacement(run.intervention(unit.basis)), [unit])
    leads, lead, drop = found.leads, found.leads.lead[0], found.effect[0, :, :, 0]
    beyond = np.nan_to_num(drop - lead, nan=-np.inf)
    if not np.isfinite(beyond).any():
        return None
    at, competitor = np.unravel_index(int(beyond.argmax()), beyond.shape)
    tokens = leads.generated[0, at], leads.token[0, at, competitor]
    written, other = (run.subject.decode((int(token),)) for token in tokens)
    of = {"lead": float(lead[at, competitor]), "drop": float(drop[at, competitor])}
    return FirstOrderOfPrompt(position=int(at) + 1, generated=written, competitor=other, **of)
