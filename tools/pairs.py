"""Matched prompts that the run has not seen, on one of which a condition holds and on the other not: a unit's flips."""

from __future__ import annotations

from collections import Counter
from itertools import chain

import numpy as np

from mecharule_ops.certificates.certificate import shown_rows
from mecharule_ops.engine.behaviour import behaviour_on
from mecharule_ops.errors import ClaimNotSupported, UsageError
from mecharule_ops.facts.control_facts import p_words
from mecharule_ops.mcnemar import mcnemar_p
from mecharule_ops.plain_text import last_line
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.rules.in_words import rule_in_words
from mecharule_ops.run.certify import certified
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import keep
from mecharule_ops.run.tabulating import rule_fires
from mecharule_ops.types import Example
from tools._asked import Asked, condition_of
from tools._counts import change_words, example_data
from tools.arguments import PairsArguments
from tools.flip import ablated_rows, unobserved
from tools.result import About, Priced, Tell, of_facts

HOLDS, FAILS = "holds", "fails"
TRIED = 2
"""Pairs whose clean answers are read, for each pair that is wanted: both must start from the unit's outcome."""
SHOWN = 3
DRAWN = 20
"""Prompts drawn for each pair that is wanted."""
PromptPair = tuple[Example, Example]
"""Two prompts one edit apart: the condition holds on the first and not on the second."""


def pairs(run: Run, given: PairsArguments, tell: Tell) -> Priced:
    """The 2 × 2 table of pairs with McNemar's exact p, and examples; with `keep` as a certificate.

    Cost: at most `TRIED` · 2 clean and 2 ablated completions a pair. Raises `ClaimNotSupported` where no pair starts
    from the unit's outcome.
    """
    asked, condition = Asked.of(run, given), condition_of(run, given.where)
    if not all(map(run.prompt_only, condition.predicates)):
        raise UsageError(f"expected a condition over the prompt, got {given.where!r}")
    drawn = matched(run, condition, TRIED * given.n)
    if not drawn:
        raise ClaimNotSupported(
            f"the task makes no prompts beyond the run's records that one edit parts by {condition}"
        )
    yield 2 * len(drawn) + 2 * min(given.n, len(drawn))
    unit, regime = asked.neuron, asked.regime
    clean = behaviour_on(run.task, run.subject, list(chain.from_iterable(drawn))).records
    both = zip(clean[::2], clean[1::2], strict=True)
    starting = [pair for pair in both if all(one.label == bool(regime.value) for one in pair)][: given.n]
    if not starting:
        raise ClaimNotSupported(f"of {len(drawn)} pairs none starts from the outcome that {unit} flips")
    records, how = list(chain.from_iterable(starting)), run.intervention(unit.basis)
    rows = ablated_rows(run, how, (unit,), records, [HOLDS, FAILS] * len(starting))
    counts = Counter((one.flipped, two.flipped) for one, two in zip(rows[::2], rows[1::2], strict=True))
    names = ("both", "only_holds", "only_fails", "neither")
    places = ((True, True), (True, False), (False, True), (False, False))
    value = {name: counts[place] for name, place in zip(names, places, strict=True)}
    n, p = len(starting), mcnemar_p(value["only_holds"], value["only_fails"])
    claim = (
        f"of {n} pairs of prompts one edit apart, ablating {unit} flips ({regime.arrow}) only the one where "
        f"{condition} in {value['only_holds']}, only the other in {value['only_fails']}"
    )
    made = certified(run, how, (unit,), rows, regime=regime, kind="flip", claim=claim)
    source = f"c:{keep(run, made).id}" if given.keep else f"run:{run.id}"
    of = About(f"unit.{unit}.pairs", source, unit)
    said = (
        f"Of {n} pairs of prompts one edit apart, ablating {unit} flips only the one where "
        f"{rule_in_words(condition, run.task)} in {value['only_holds']}, only the other in {value['only_fails']}, both "
        f"in {value['both']}, neither in {value['neither']}"
    )
    facts = [of(str(condition), said, {**value, "n": n, "p": p, "tried": len(drawn)})]
    goes_with = None if p > made.alpha else HOLDS if value["only_holds"] > value["only_fails"] else FAILS
    side = f"Flips go with the side where it {'holds' if goes_with == HOLDS else 'does not hold'}"
    said = (
        f"{side if goes_with else 'No difference between the two sides is shown'} (McNemar, exact and two-sided: "
        f"{p_words(p)}); an edit may change more than this condition, so these pairs say what flips go with and not why"
    )
    facts.append(of(f"{condition}.flips_go_with", said, goes_with))
    shown = shown_rows(made, given.show_text)
    parted = [two for two in zip(shown[::2], shown[1::2], strict=True) if two[0].flipped != two[1].flipped]
    if parted:
        more = f"; {len(parted) - SHOWN} more" if len(parted) > SHOWN else ""
        told = [
            " beside ".join(f"{last_line(row.prompt)} {change_words(row)}" for row in pair) for pair in parted
        ]
        examples = [list(map(example_data, pair)) for pair in parted]
        facts.append(of(f"{condition}.parted", f"Parted: {'; '.join(told[:SHOWN])}{more}", examples))
    return of_facts(facts)


def matched(run: Run, rule: Rule, most: int) -> list[PromptPair]:
    """Up to `most` pairs, in the order of a draw that the run's seed fixes. Raises `UsageError` on no predicate."""
    generator = np.random.default_rng(run.config.seed)
    known = {record.example.id for record in run.observed.records}
    pairs = list[PromptPair]()
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
