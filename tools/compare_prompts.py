"""Matched prompts that the run has not seen, on one of which a condition holds and on the other not: a unit's flips."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from mecharule_ops.certificates.certificate import Certificate, ExampleRow, shown_rows
from mecharule_ops.engine.behaviour import behaviour_on
from mecharule_ops.errors import ClaimNotSupported, UsageError
from mecharule_ops.plain_text import last_line
from mecharule_ops.questions.matched_prompts import PairTable, matched, sides
from mecharule_ops.questions.typed_prompt import ablated_rows
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.rules.in_words import rule_in_words
from mecharule_ops.run.certify import certified
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import keep, opened
from mecharule_ops.saying.control_facts import p_words
from mecharule_ops.saying.fact import Fact, fact
from mecharule_ops.types import BehaviourRecord
from tools._ablations import accepted, price_words
from tools._accounts import Asked, change_words, example_data
from tools._conditions import condition_of
from tools.arguments import ComparePromptsArguments
from tools.registry import Tell, ToolResult, stated

HOLDS, FAILS = "holds", "fails"
TRIED = 2
"""Pairs whose clean answers are read, for each pair that is wanted: both must start from the unit's outcome."""
SHOWN = 3


def compare_prompts(given: ComparePromptsArguments, tell: Tell) -> ToolResult:
    """The 2 × 2 table of pairs with McNemar's exact p, examples and a certificate; or only the price.

    Cost: at most `TRIED` · 2 clean and 2 ablated completions a pair. Raises `ClaimNotSupported` where the task makes
    no pair, or none starts from the unit's outcome.
    """
    with opened(given.run) as run:
        asked = Asked.of(run, given)
        condition = condition_of(run, given.predicate)
        if not all(map(run.prompt_only, Rule.parse(condition).predicates)):
            raise UsageError(f"expected a condition over the prompt, got {given.predicate!r}")
        pairs = matched(run, condition, TRIED * given.n)
        if not pairs:
            raise ClaimNotSupported(
                f"the task makes no prompts beyond the run's records that one edit parts by {condition}"
            )
        price = price_words(run, 2 * len(pairs) + 2 * min(given.n, len(pairs)))
    if given.estimate:
        return price.stated(asked.findings.run, at_most=True)
    accepted(price, given.yes, tell)
    with opened(given.run, write=True, tell=tell) as run:
        clean = behaviour_on(run.task, run.subject, list(sides(pairs))).records
        label = bool(asked.regime.value)
        both = zip(clean[::2], clean[1::2], strict=True)
        starting = [pair for pair in both if all(record.label == label for record in pair)][: given.n]
        if not starting:
            raise ClaimNotSupported(
                f"of {len(pairs)} pairs none starts from the outcome that {asked.neuron} flips"
            )
        certificate = _certified(run, asked, condition, [record for pair in starting for record in pair])
        words = rule_in_words(condition, run.task)
    return _told(asked, given, words, {"predicate": condition, "tried": len(pairs)}, certificate)


def _certified(run: Run, asked: Asked, condition: str, records: list[BehaviourRecord]) -> Certificate:
    intervention = run.intervention(asked.neuron.basis)
    names = [HOLDS, FAILS] * (len(records) // 2)
    rows = ablated_rows(run, intervention, (asked.neuron,), records, names)
    table = _table(rows)
    claim = (
        f"of {table.n} pairs of prompts one edit apart, ablating {asked.neuron} flips ({asked.regime.arrow}) only the "
        f"one where {condition} in {table.only_holds}, only the other in {table.only_fails}"
    )
    made = certified(run, intervention, (asked.neuron,), rows, regime=asked.regime, kind="flip", claim=claim)
    return keep(run, made)


def _table(rows: tuple[ExampleRow, ...]) -> PairTable:
    flipped = np.array([row.flipped for row in rows])
    return PairTable.of(flipped[::2], flipped[1::2])


def _told(
    asked: Asked,
    given: ComparePromptsArguments,
    words: str,
    data: dict[str, object],
    certificate: Certificate,
) -> ToolResult:
    table, rows = _table(certificate.rows), shown_rows(certificate, given.show_text)
    pairs = list(zip(rows[::2], rows[1::2], strict=True))
    parted = [pair for pair in pairs if pair[0].flipped != pair[1].flipped]
    data = {
        **asked.data,
        **data,
        "pairs": {**asdict(table), "n": table.n},
        "p": table.p,
        "examples": [[example_data(row) for row in pair] for pair in parted[:SHOWN]],
        "certificate": certificate.id,
    }
    source, unit = f"c:{certificate.id}", asked.neuron
    said = [
        f"Of {table.n} pairs of prompts one edit apart, ablating {unit} flips only the one where {words} in "
        f"{table.only_holds}, only the other in {table.only_fails}, both in {table.both}, neither in {table.neither}",
        f"{_verdict(table, certificate.alpha)} (McNemar, exact and two-sided: {p_words(table.p)})",
        "An edit may change more than this condition, so these pairs say what flips go with and not why",
        *([f"Parted: {'; '.join(map(_pair_words, parted[:SHOWN]))}"] if parted else []),
    ]
    facts: list[Fact] = [fact(sentence, source, unit=unit) for sentence in said]
    return stated(data, facts)


def _verdict(table: PairTable, alpha: float) -> str:
    if table.p > alpha:
        return "No difference between the two sides is shown"
    return f"Flips go with the side where it {'holds' if table.only_holds > table.only_fails else 'does not hold'}"


def _pair_words(pair: tuple[ExampleRow, ExampleRow]) -> str:
    return " beside ".join(f"{last_line(row.prompt)} {change_words(row)}" for row in pair)
