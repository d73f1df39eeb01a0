"""Matched prompts that the run has not seen, on one of which a condition holds and on the other not: a unit's flips."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from mecharule_ops.certificates.certificate import Certificate, ExampleRow, shown_rows
from mecharule_ops.engine.behaviour import behaviour_on
from mecharule_ops.errors import ClaimNotSupported, UsageError
from mecharule_ops.facts.control_facts import p_words
from mecharule_ops.facts.fact import FactValue, fact
from mecharule_ops.mcnemar import mcnemar_p
from mecharule_ops.plain_text import last_line
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.rules.in_words import rule_in_words
from mecharule_ops.run.certify import certified
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import keep
from mecharule_ops.run.tabulating import rule_fires
from mecharule_ops.tasks.base import Task
from mecharule_ops.types import BehaviourRecord, Example
from tools._accounts import Asked, change_words, example_data
from tools._conditions import condition_of
from tools.arguments import PairsArguments
from tools.flip import ablated_rows, unobserved
from tools.result import Tell, ToolResult, of_facts

HOLDS, FAILS = "holds", "fails"
TRIED = 2
"""Pairs whose clean answers are read, for each pair that is wanted: both must start from the unit's outcome."""
SHOWN = 3
DRAWN = 20
"""Prompts drawn for each pair that is wanted."""


def pairs_price(run: Run, given: PairsArguments) -> int:
    """At most `TRIED` · 2 clean and 2 ablated completions a pair."""
    Asked.of(run, given)
    _, drawn = _drawn(run, given)
    return 2 * len(drawn) + 2 * min(given.n, len(drawn))


def pairs(run: Run, given: PairsArguments, tell: Tell) -> ToolResult:
    """The 2 × 2 table of pairs with McNemar's exact p, and examples; with `keep` as a certificate.

    Raises `ClaimNotSupported` where no pair starts from the unit's outcome.
    """
    asked = Asked.of(run, given)
    condition, drawn = _drawn(run, given)
    label = bool(asked.regime.value)
    clean = behaviour_on(run.task, run.subject, list(sides(drawn))).records
    both = zip(clean[::2], clean[1::2], strict=True)
    starting = [pair for pair in both if all(record.label == label for record in pair)][: given.n]
    if not starting:
        raise ClaimNotSupported(
            f"of {len(drawn)} pairs none starts from the outcome that {asked.neuron} flips"
        )
    made = _certified(run, asked, condition, [record for pair in starting for record in pair])
    source = f"c:{keep(run, made).id}" if given.keep else f"run:{run.id}"
    table, unit, key = _table(made.rows), asked.neuron, f"unit.{asked.neuron}.pairs.{condition}"
    words = rule_in_words(condition, run.task)
    said = (
        f"Of {table.n} pairs of prompts one edit apart, ablating {unit} flips only the one where {words} in "
        f"{table.only_holds}, only the other in {table.only_fails}, both in {table.both}, neither in {table.neither}"
    )
    value: FactValue = {**asdict(table), "n": table.n, "p": table.p, "tried": len(drawn)}
    facts = [fact(said, source, unit=unit, key=key, value=value)]
    goes_with = None if table.p > made.alpha else HOLDS if table.only_holds > table.only_fails else FAILS
    told = {
        None: "No difference between the two sides is shown",
        HOLDS: "Flips go with the side where it holds",
        FAILS: "Flips go with the side where it does not hold",
    }[goes_with]
    said = (
        f"{told} (McNemar, exact and two-sided: {p_words(table.p)}); an edit may change more than this condition, so "
        "these pairs say what flips go with and not why"
    )
    facts.append(fact(said, source, unit=unit, key=f"{key}.flips_go_with", value=goes_with))
    shown = shown_rows(made, given.show_text)
    parted = [
        pair for pair in zip(shown[::2], shown[1::2], strict=True) if pair[0].flipped != pair[1].flipped
    ]
    if parted:
        more = f"; {len(parted) - SHOWN} more" if len(parted) > SHOWN else ""
        said = f"Parted: {'; '.join(map(_pair_words, parted[:SHOWN]))}{more}"
        rows: list[FactValue] = [list(map(example_data, pair)) for pair in parted]
        facts.append(fact(said, source, unit=unit, key=f"{key}.parted", value=rows))
    return of_facts(facts)


def _drawn(run: Run, given: PairsArguments) -> tuple[str, list[PromptPair]]:
    """The condition, and pairs that it parts. Raises `UsageError`, and `ClaimNotSupported` where there is none."""
    condition = condition_of(run, given.where)
    if not all(map(run.prompt_only, Rule.parse(condition).predicates)):
        raise UsageError(f"expected a condition over the prompt, got {given.where!r}")
    drawn = matched(run, condition, TRIED * given.n)
    if not drawn:
        raise ClaimNotSupported(
            f"the task makes no prompts beyond the run's records that one edit parts by {condition}"
        )
    return condition, drawn


def _certified(run: Run, asked: Asked, condition: str, records: list[BehaviourRecord]) -> Certificate:
    intervention = run.intervention(asked.neuron.basis)
    names = [HOLDS, FAILS] * (len(records) // 2)
    rows = ablated_rows(run, intervention, (asked.neuron,), records, names)
    table = _table(rows)
    claim = (
        f"of {table.n} pairs of prompts one edit apart, ablating {asked.neuron} flips ({asked.regime.arrow}) only the "
        f"one where {condition} in {table.only_holds}, only the other in {table.only_fails}"
    )
    return certified(run, intervention, (asked.neuron,), rows, regime=asked.regime, kind="flip", claim=claim)


def _table(rows: Sequence[ExampleRow]) -> PairTable:
    pairs = Counter((one.flipped, two.flipped) for one, two in zip(rows[::2], rows[1::2], strict=True))
    return PairTable(
        both=pairs[True, True],
        only_holds=pairs[True, False],
        only_fails=pairs[False, True],
        neither=pairs[False, False],
    )


def _pair_words(pair: tuple[ExampleRow, ExampleRow]) -> str:
    return " beside ".join(f"{last_line(row.prompt)} {change_words(row)}" for row in pair)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPair:
    """Two prompts one edit apart."""

    holds: Example
    """The condition holds on it."""
    fails: Example


def matched(run: Run, condition: str, most: int) -> list[PromptPair]:
    """Up to `most` pairs, in the order of a draw that the run's seed fixes. Raises `UsageError` on no predicate."""
    generator = np.random.default_rng(run.config.seed)
    known = {record.example.id for record in run.observed.records}
    pairs = list[PromptPair]()
    rule = Rule.parse(condition)
    drawn = list(run.task.examples(len(known) + DRAWN * most, generator))
    # A task of few examples gives all of them in order.
    for example in (drawn[place] for place in generator.permutation(len(drawn))):
        if len(pairs) == most:
            break
        if example.id in known:
            continue
        near = [edit for edit in run.task.edits(example) if edit.id not in known]
        pair = _pair(run.task, rule, example, near)
        if pair is not None:
            pairs.append(pair)
            known |= {pair.holds.id, pair.fails.id}
    return pairs


def _pair(task: Task, rule: Rule, example: Example, near: Sequence[Example]) -> PromptPair | None:
    holds = rule_fires(rule, task, [unobserved(one, task) for one in (example, *near)])
    switched = np.flatnonzero(holds[1:] != holds[0])
    if not len(switched):
        return None
    other = near[int(switched[0])]
    return PromptPair(holds=example, fails=other) if holds[0] else PromptPair(holds=other, fails=example)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTable:
    """Pairs by which of their two prompts flips."""

    both: int
    only_holds: int
    only_fails: int
    neither: int

    @property
    def n(self) -> int:
        """Pairs in all."""
        return self.both + self.only_holds + self.only_fails + self.neither

    @property
    def p(self) -> float:
        """McNemar's, exact, two-sided; 1 where no pair parts."""
        return mcnemar_p(self.only_holds, self.only_fails)


def sides(pairs: Sequence[PromptPair]) -> Iterator[Example]:
    """The prompts of pairs, the side where it holds first."""
    for pair in pairs:
        yield from (pair.holds, pair.fails)
