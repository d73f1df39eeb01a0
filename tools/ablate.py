"""Ablating units now: on the slices or where a condition holds, on a typed prompt, on new pairs of prompts."""

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from mecharule_ops.certificates.certificate import Certificate, ExampleRow, shown_rows
from mecharule_ops.config import given_text
from mecharule_ops.engine.outcomes import Group
from mecharule_ops.errors import ClaimNotSupported, UsageError
from mecharule_ops.facts import fact, rules
from mecharule_ops.facts.control_facts import p_words
from mecharule_ops.facts.examples import change_words
from mecharule_ops.mcnemar import mcnemar_p
from mecharule_ops.plain_text import beginning, last_line, quoted
from mecharule_ops.rules import algebra, in_words
from mecharule_ops.run.certify import certified, certify, rows_from
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import find_certificate, findings_of, keep, outcome_for
from mecharule_ops.run.tabulating import Part, rule_fires
from mecharule_ops.tasks.base import OWN, Task
from mecharule_ops.types import Baseline, BehaviourRecord, Example, Intervention, Regime
from tools._asked import Asked, condition_of, direction, records_among, unit_of, units_of
from tools._counts import example_data, flipped_fact, flips_fact, flips_of
from tools.arguments import AblateArguments, FlipArguments, PairsArguments
from tools.result import About, Priced, Tell, ToolResult, of_facts

TRIED = 2
"""Pairs whose clean answers are read, for each pair that is wanted: both must start from the unit's outcome."""
SHOWN = 3
DRAWN = 20
"""Prompts drawn for each pair that is wanted."""


def ablate(run: Run, given: AblateArguments, tell: Tell) -> Priced:
    """What the units flip, ablated together, beside what each flips alone; with a certificate, made now or stored.

    Cost: a completion a record; nothing where the certificate is stored.
    """
    units, regime, slices = tuple(sorted(units_of(run, given.units))), direction(run, given.regime), None
    if len({unit.basis for unit in units}) > 1:
        raise UsageError(f"expected units of one basis, got {given.units!r}")
    baseline = None if given.baseline is None else Baseline(given.baseline)
    if given.prompts:
        examples = [typed_example(run.task, text) for text in given.prompts]
        if own := [one.prompt for one in examples if one.id == OWN]:
            raise UsageError(
                f"expected prompts of the table, which have a label, got {own[0]!r}; `flip` takes it"
            )
        yield 2 * len(examples)
        return _on_prompts(run, units, regime, baseline or run.config.baseline, examples, given)
    if given.where is not None:
        condition = condition_of(run, given.where)
        if not (places := records_among(run, regime, Part.TRAIN, given.where).tolist()):
            raise UsageError(f"expected a condition that holds on some train records, got {condition}")
        slices = {f"train records where {condition}": places}
    made = find_certificate(run, units, regime, baseline, slices)
    yield 0 if made else sum(map(len, (slices or run.slices(regime).named).values()))
    if made is None:
        kind = "ablate" if slices is None and baseline in (None, run.config.baseline) else "flip"
        made = keep(run, next(certify(run, [units], regime, kind=kind, baseline=baseline, slices=slices)))
    of = About(f"unit{'s' * (len(units) > 1)}.{'+'.join(made.units)}", f"c:{made.id}")
    facts = [flips_fact(made, of, given.baseline)]
    alone = [find_certificate(run, (unit,), regime, baseline, slices) for unit in units]
    known = [one for one in alone if one]
    if len(units) == len(known) > 1:
        facts.append(_beside_alone(made, known, run.config.alpha, of))
    return of_facts([*facts, flipped_fact(made, given.show_text, of)])


def _on_prompts(
    run: Run,
    units: Group,
    regime: Regime,
    baseline: Baseline,
    examples: Sequence[Example],
    given: AblateArguments,
) -> ToolResult:
    """The counts of the prompts that start from the regime's outcome, certified; how many others were left out."""
    from mecharule_ops.engine.behaviour import behaviour_on

    how = replace(run.intervention(units[0].basis), baseline=baseline)
    records = behaviour_on(run.task, run.subject, examples).records
    starting = [record for record in records if record.label == bool(regime.value)]
    if not starting:
        raise ClaimNotSupported(f"none of {len(records)} prompts starts from the outcome of {regime.arrow}")
    rows = rows_before_and_after(run, how, units, starting, ["typed prompts"] * len(starting))
    flips, named = sum(row.flipped for row in rows), "+".join(map(str, units))
    claim = fact.said("ablate.claim", units=named, flips=flips, n=len(rows), regime=regime)
    made = keep(run, certified(run, how, units, rows, regime=regime, kind="flip", claim=claim))
    of = About(f"unit{'s' * (len(units) > 1)}.{'+'.join(made.units)}.prompts", f"c:{made.id}")
    facts = [flips_fact(made, of, given.baseline), flipped_fact(made, given.show_text, of)]
    if left := len(records) - len(starting):
        facts.append(of.told("left_out", "ablate.left_out", left, of=len(records), regime=regime))
    return of_facts(facts)


def _beside_alone(joint: Certificate, alone: list[Certificate], alpha: float, of: About) -> fact.Fact:
    """What the units flip together beside what either flips alone, with an exact paired test.

    A record that one alone flips and both together do not, or the other way round, speaks for an interaction.
    """
    (both, *each), n = flips_of(joint, *alone)
    either = set[int]().union(*each)
    p = mcnemar_p(len(both - either), len(either - both))
    counts = {one.units[0]: len(flips) for one, flips in zip(alone, each, strict=True)}
    value: fact.FactValue = {
        **{"together": {"flips": len(both), "n": n}, "either_alone": {"flips": len(either), "n": n}},
        **{"each_alone": counts, "p": p, "alpha": alpha, "shown": p <= alpha},
    }
    names = ", ".join(f"{unit} {count}" for unit, count in counts.items())
    word = "an interaction" if p <= alpha else "no interaction shown"
    sources = [f"c:{one.id}" for one in (joint, *alone)]
    return of.told("together", "ablate.together", value, *sources, names=names, word=word, test=p_words(p))


def flip(run: Run, given: FlipArguments, tell: Tell) -> Priced:
    """The completions before and after, certified, and whether it lies where the unit is told to flip most.

    A prompt that no table has gets its two completions alone, since nothing says which is right. Cost: a clean and an
    ablated completion.
    """
    unit, findings = unit_of(run, given.neuron), findings_of(run)
    example = typed_example(run.task, given.prompt)
    yield 1
    from mecharule_ops.engine.behaviour import behaviour_on

    of, task, how = About.of_unit(run, unit, "flip"), run.task, run.intervention(unit.basis)
    (record,) = behaviour_on(task, run.subject, [example]).records
    (row,) = made = rows_before_and_after(run, how, (unit,), [record], ["typed"])
    if example.id == OWN:
        changed = row.before.text != row.after.text
        value: fact.FactValue = {**example_data(row), "example": None, "flipped": None, "changed": changed}
        told: dict[str, Any] = {"r": run, "row": row, "asked": quoted(row.prompt)}
        told["then"] = repr(row.after.text) if changed else "the same"
        return of_facts([of.told("unlabelled", "flip.unlabelled", value, **told)])
    regime, verb = Regime(int(record.label)), "flips" if row.flipped else "does not flip"
    typed = "a typed prompt" if task.concealed else quoted(record.example.prompt)
    claim = f"ablating {unit} {verb} {typed} ({regime.arrow})"
    certificate = keep(run, certified(run, how, (unit,), made, regime=regime, kind="flip", claim=claim))
    (row,) = shown_rows(certificate, given.show_text)
    before, after = (f"{beginning(one.text)} ({task.words.of(one.label)})" for one in (row.before, row.after))
    said = f"{quoted(row.prompt)} {before} → {after}"
    parts: dict[str, Any] = {"verb": verb, "said": said, "given": given_text("", run.config.given)}
    facts = [of.told("typed", "flip.typed", example_data(row), f"c:{certificate.id}", **parts)]
    outcome = outcome_for(findings, unit, regime if regime in run.regimes else None)
    known = findings.unit(unit, outcome.regime)
    where = rules.told_where(run.account(unit, outcome.regime), known.rule if known else None)
    if outcome.regime is not regime or not where:
        return of_facts([*facts, of.told("rule", "flip.rule.none", regime=regime)])
    cases = [algebra.Rule((clause,)) for rule in where for clause in rule.clauses]
    met = [case for case in cases if rule_fires(case, task, [record])[0]]
    value = {"text": " or ".join(map(str, where)), "fires": bool(met), "agrees": bool(met) == row.flipped}
    words = rules.in_brief(in_words.CLAUSE.join(in_words.rule_in_words(rule, task) for rule in met or where))
    parts = {"among": "among" if met else "not among", "words": words}
    return of_facts([*facts, of.told("rule", "flip.rule", value, **parts)])


def pairs(run: Run, given: PairsArguments, tell: Tell) -> Priced:
    """The 2 × 2 table of matched prompts that the run has not seen, with McNemar's exact p; `keep` certifies it.

    Cost: at most `TRIED` · 2 clean and 2 ablated completions a pair. Raises `ClaimNotSupported` where no pair starts
    from the unit's outcome.
    """
    asked, condition = Asked.of(run, given), condition_of(run, given.where)
    if not all(map(run.prompt_only, condition.predicates)):
        raise UsageError(f"expected a condition over the prompt, got {given.where!r}")
    tried = matched(run, condition, TRIED * given.n)
    if not tried:
        raise ClaimNotSupported(
            f"the task makes no prompts beyond the run's records that one edit parts by {condition}; "
            f"`mecharule tabulate {run.id} {asked.neuron} --where {shlex.quote(str(condition))}` counts on these"
        )
    yield 2 * len(tried) + 2 * min(given.n, len(tried))
    from mecharule_ops.engine.behaviour import behaviour_on

    unit, regime, how = asked.neuron, asked.regime, run.intervention(asked.neuron.basis)
    clean = behaviour_on(run.task, run.subject, list(chain.from_iterable(tried))).records
    both, label = zip(clean[::2], clean[1::2], strict=True), bool(regime.value)
    starts = [pair for pair in both if pair[0].label == pair[1].label == label][: given.n]
    starting, n = list(chain.from_iterable(starts)), len(starts)
    if not starting:
        both_so = f"answers both {asked.findings.words.of(label)} in none; -n asks more, `tabulate` counts the run's"
        raise ClaimNotSupported(f"of {len(tried)} new pairs the model {both_so}")
    rows = rows_before_and_after(run, how, (unit,), starting, ["holds", "fails"] * n)
    counts = Counter((one.flipped, two.flipped) for one, two in zip(rows[::2], rows[1::2], strict=True))
    holds, fails = counts[True, False], counts[False, True]
    p = mcnemar_p(holds, fails)
    parts = {"n": n, "unit": unit, "regime": regime, "condition": condition, "holds": holds, "fails": fails}
    claim = fact.said("pairs.claim", **parts)
    made = certified(run, how, (unit,), rows, regime=regime, kind="flip", claim=claim)
    of = About(f"unit.{unit}.pairs", f"c:{keep(run, made).id}" if given.keep else f"run:{run.id}", unit)
    table = {"both": counts[True, True], "only_holds": holds, "only_fails": fails}
    table |= {"neither": counts[False, False], "n": n, "tried": len(tried)}
    where, test = in_words.rule_in_words(condition, run.task), p_words(p)
    goes_with = None if p > made.alpha else "holds" if holds > fails else "fails"
    facts = [
        of.told(str(condition), "pairs.table", {**table, "p": p}, where=where),
        of.told(f"{condition}.flips_go_with", f"pairs.flips_go_with.{goes_with}", goes_with, test=test),
    ]
    shown = shown_rows(made, given.show_text)
    apart = [two for two in zip(shown[::2], shown[1::2], strict=True) if two[0].flipped != two[1].flipped]
    if apart:
        told = [[f"{last_line(row.prompt)} {change_words(row)}" for row in pair] for pair in apart[:SHOWN]]
        more = f"; {len(apart) - SHOWN} more" if len(apart) > SHOWN else ""
        said = f"Parted: {'; '.join(map(' beside '.join, told))}{more}"
        facts.append(of(f"{condition}.parted", said, [list(map(example_data, pair)) for pair in apart]))
    return of_facts(facts)


def matched(run: Run, rule: algebra.Rule, most: int) -> list[tuple[Example, Example]]:
    """Up to `most` pairs one edit apart, on the first of which the rule holds and on the second not.

    In the order of a draw that the run's seed fixes. Raises `UsageError` on no predicate.
    """
    generator = np.random.default_rng(run.config.seed)
    known = {record.example.id for record in run.observed.records}
    pairs = list[tuple[Example, Example]]()
    drawn = list(run.task.examples(len(known) + DRAWN * most, generator))
    # A task of few examples gives all of them in order.
    for example in (drawn[place] for place in generator.permutation(len(drawn))):
        if len(pairs) == most:
            break
        if example.id in known:
            continue
        near = [edit for edit in run.task.edits(example) if edit.id not in known]
        holds = rule_fires(rule, run.task, [unobserved(one, run.task) for one in (example, *near)])
        if len(switched := np.flatnonzero(holds[1:] != holds[0])):
            other = near[int(switched[0])]
            pairs.append((example, other) if holds[0] else (other, example))
            known |= {example.id, other.id}
    return pairs


def rows_before_and_after(
    run: Run, how: Intervention, units: Group, records: Sequence[BehaviourRecord], slices: Sequence[str]
) -> tuple[ExampleRow, ...]:
    """Each record before and after the ablation, in the slice named for it."""
    after = run.completer(how, records=records).completions([units], range(len(records)))
    return rows_from(after, 0, run.subject.decode, records, slices)


def unobserved(example: Example, task: Task) -> BehaviourRecord:
    """A record without a completion: enough for a rule over prompt columns."""
    parsed = task.parse(example, "")
    return BehaviourRecord(example=example, tokens=(), completion="", parsed=parsed, label=False)


def typed_example(task: Task, text: str) -> Example:
    """The example of a typed prompt: of the task, of words that one item alone has, or of one's own, without a label.

    Raises `UsageError` for an empty one, and for one's own where prompts are concealed.
    """
    try:
        return task.read(text)
    except UsageError:
        if task.concealed or not text.strip():
            raise
        return task.holding(text)
