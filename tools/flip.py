"""Would it flip if …? One unit ablated on a typed prompt, beside what its rule and first order say beforehand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mecharule_ops.certificates.certificate import Completion, ExampleRow, shown_rows
from mecharule_ops.engine.behaviour import behaviour_on
from mecharule_ops.engine.group_questions import Group
from mecharule_ops.engine.settling import until_settled
from mecharule_ops.errors import UsageError
from mecharule_ops.facts.chain_facts import quoted
from mecharule_ops.facts.fact import Fact, FactValue
from mecharule_ops.facts.rules import short
from mecharule_ops.facts.unit_rules import told_rule
from mecharule_ops.mechanism.first_order import effects
from mecharule_ops.mechanism.token_sources import token_name
from mecharule_ops.plain_text import beginning, last_line
from mecharule_ops.run.certify import certified, rows_from
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import findings_of, keep, outcome_for
from mecharule_ops.run.tabulating import rule_fires
from mecharule_ops.tasks.base import Task
from mecharule_ops.tasks.text import OWN, TextTask
from mecharule_ops.types import BehaviourRecord, Example, Intervention, Neuron, Regime
from tools._asked import unit_of
from tools._counts import change_words, example_data
from tools.arguments import FlipArguments
from tools.result import About, Priced, Tell, of_facts

TYPED, EDITED = "typed", "edited"


def flip(run: Run, given: FlipArguments, tell: Tell) -> Priced:
    """Completions before and after, certified, what rule and first order say, and edits that switch the rule.

    A prompt that no table has gets its two completions alone, since nothing says which is right. Cost: two completions
    for the prompt and each of at most as many edits as are asked for, and a backward a generated token and competitor.
    """
    unit, findings = unit_of(run, given.neuron), findings_of(run)
    example = typed_example(run.task, given.prompt)
    yield 1 + given.edits * (example.id != OWN)
    of, task, how = About(f"unit.{unit}.flip", f"run:{run.id}", unit), run.task, run.intervention(unit.basis)
    (record,) = behaviour_on(task, run.subject, [example]).records
    if example.id == OWN:
        (row,) = ablated_rows(run, how, (unit,), [record], [TYPED])
        return of_facts([_unlabelled(run, of, row)])
    regime = Regime(int(record.label))
    outcome = outcome_for(findings, unit, regime if regime in run.regimes else None)
    known = findings.unit(unit, outcome.regime)
    rule = told_rule(run.account(unit, outcome.regime), known.rule if known else None)
    learned = rule.rule if rule and rule.shown else None
    fires = bool(rule_fires(learned, task, [record])[0]) if learned else None
    turns = [one for one in run.regimes if findings.unit(unit, one)] or run.regimes
    edits: list[Example] = []
    told = given.edits and regime in turns and rule and rule.prompt_only
    if learned and told and (near := list(task.edits(example))):
        switched = rule_fires(learned, task, [unobserved(one, task) for one in near]) != fires
        edits = [near[int(place)] for place in np.flatnonzero(switched)[: given.edits]]
    others = [
        other for other in behaviour_on(task, run.subject, edits).records if other.label == record.label
    ]
    made = ablated_rows(run, how, (unit,), [record, *others], [TYPED, *[EDITED] * len(others)])
    verb = "flips" if made[0].flipped else "does not flip"
    typed = "a typed prompt" if task.concealed else repr(last_line(record.example.prompt))
    claim = f"ablating {unit} {verb} {typed} ({regime.arrow})"
    certificate = keep(run, certified(run, how, (unit,), made, regime=regime, kind="flip", claim=claim))
    proof, (row, *rows) = f"c:{certificate.id}", shown_rows(certificate, given.show_text)
    if regime not in turns:
        words, label = task.words, bool(turns[0].value)
        said = (
            f"The question does not arise: unablated {run.config.model} already answers "
            f"{last_line(row.prompt)} {_side(run, row.before)}, and {unit} turns {words.of(label)} answers "
            f"{words.of(not label)}; with it switched off the answer is {_side(run, row.after)}"
        )
        return of_facts([of("does_not_arise", said, example_data(row), proof, of.source)])
    change = f"{last_line(row.prompt)} {_side(run, row.before)} → {_side(run, row.after)}"
    said = f"{'It flips' if row.flipped else 'It does not flip'}: with {unit} switched off, {change}"
    facts = [of("typed", said, example_data(row), proof)]
    if rule is None or learned is None or rule.held_out is None:
        facts.append(of("rule", "The run shows no rule of this unit's flips"))
    else:
        agrees = fires == row.flipped
        said = (
            f"Its rule {'holds' if fires else 'does not hold'} on this prompt; {_verdict(agrees)}: "
            f"{rule.words} (MCC {short(rule.held_out.mcc)})"
        )
        value: FactValue = {
            "text": str(learned),
            "held_out_mcc": rule.held_out.mcc,
            "fires": fires,
            "agrees": agrees,
        }
        facts.append(of("rule", said, value))
    facts.append(_first_order(run, unit, record, row, of))
    for number, each in enumerate(rows, 1):
        does = "flips" if each.flipped else "does not flip"
        said = f"The edit {last_line(each.prompt)!r}, on which the rule answers differently, {does}"
        facts.append(of(f"edits.{number}", f"{said} ({change_words(each)})", example_data(each), proof))
    return of_facts(facts)


def _unlabelled(run: Run, of: About, row: ExampleRow) -> Fact:
    """The completions of a prompt of one's own, which no certificate holds."""
    changed = row.before.text != row.after.text
    said = (
        f"{last_line(row.prompt)!r} is none of the prompts of {run.task.name}, so nothing says what is right: "
        f"{run.config.model} writes {row.before.text!r}, with {of.unit} switched off "
        f"{repr(row.after.text) if changed else 'the same'}"
    )
    value: FactValue = {**example_data(row), "example": None, "flipped": None, "changed": changed}
    return of("unlabelled", said, value)


def _first_order(run: Run, unit: Neuron, record: BehaviourRecord, row: ExampleRow, of: About) -> Fact:
    """Whether a success is lost, and of a failure whether its text changes at all, as first order says beforehand.

    Where most is left of drop − lead. Cost: a clean pass, and a backward a generated token and competitor.
    """
    answer = until_settled(run.subject, run.task, [record])
    found = effects(run.subject, answer, run.replacement(run.intervention(unit.basis)), [unit])
    leads, lead, drop = found.leads, found.leads.lead[0], found.effect[0, :, :, 0]
    beyond = np.nan_to_num(drop - lead, nan=-np.inf)
    if not np.isfinite(beyond).any():
        return of("first_order", "First order: no generated token is in reach of the ablation")
    at, competitor = np.unravel_index(int(beyond.argmax()), beyond.shape)
    tokens = leads.generated[0, at], leads.token[0, at, competitor]
    written, other = (token_name(run.subject, int(token)) for token in tokens)
    lead, drop, what = lead[at, competitor], drop[at, competitor], "answer" if row.before.label else "text"
    changes = bool(drop > lead)  # L_j(x): whether first order says that the answer changes.
    agrees = changes == (row.flipped if row.before.label else row.before.text != row.after.text)
    said = (
        f"First order: at token {at + 1} {quoted(written)} leads {quoted(other)}, which "
        f"the drop helps most, by {lead:.2f} logits, and the first-order drop of that is {drop:.2f}: the "
        f"{what} {'changes' if changes else 'stays'}; {_verdict(agrees)}"
    )
    value: FactValue = {
        **{"position": int(at) + 1, "generated": written, "competitor": other},
        **{"lead": float(lead), "drop": float(drop), "changes": changes, "agrees": agrees},
    }
    return of("first_order", said, value)


def _verdict(agrees: bool) -> str:
    return "it agrees" if agrees else "it is wrong here"


def _side(run: Run, completion: Completion) -> str:
    return f"{beginning(completion.text)} ({run.task.words.of(completion.label)})"


def ablated_rows(
    run: Run, how: Intervention, units: Group, records: Sequence[BehaviourRecord], slices: Sequence[str]
) -> tuple[ExampleRow, ...]:
    """Each record before and after the ablation, in the slice named for it."""
    placed = [(name, place) for place, name in enumerate(slices)]
    after = run.completer(how, records=records).completions([units], range(len(records)))
    return rows_from(after, 0, run.subject.decode, records, placed)


def unobserved(example: Example, task: Task) -> BehaviourRecord:
    """A record without a completion: enough for a rule over prompt columns."""
    parsed = task.parse(example, "")
    return BehaviourRecord(example=example, tokens=(), completion="", parsed=parsed, label=False)


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
