"""What the unablated model does on a run's records: how often it is right, by the values of a column, and where not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from mecharule_ops.codec import encode
from mecharule_ops.facts.fact import Stated, stated
from mecharule_ops.findings.records import Findings
from mecharule_ops.numbers import k_of_n
from mecharule_ops.plain_text import beginning, what_differs
from mecharule_ops.predicates.type_check import PredicateRefused
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.rules.in_words import rule_in_words
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.tabulating import few_valued, fires
from mecharule_ops.types import Share

SHOWN = 5
"""Records that are told of each kind."""


@dataclass(frozen=True, slots=True)
class Property:
    """One property: what tells it, how records with it are called, and words that mean it."""

    predicate: str
    where: str
    said: tuple[str, ...]


PROPERTIES: Mapping[str, Property] = {
    "carry": Property(
        "holds(op == '+' and carry(a, b))", "records where an addition has a carry", ("carry", "carries")
    ),
    "borrow": Property(
        "holds(op == '-' and borrow(a, b))", "records where a subtraction has a borrow", ("borrow", "borrows")
    ),
    "subtraction": Property("op == '-'", "subtractions", ("subtraction", "subtractions", "minus")),
    "addition": Property("op == '+'", "additions", ("addition", "additions", "plus")),
    "negative": Property(
        "expected < 0", "records with a negative result", ("negative", "negative result", "negative results")
    ),
    "even": Property("divisible(expected, 2)", "records with an even result", ("even", "even numbers")),
    "large": Property(
        "expected >= 100", "records with a result of 100 or more", ("large", "large numbers", "three-digit")
    ),
}
"""By name."""


def accuracy(run: Run, findings: Findings, where: Rule | None = None) -> Iterator[Stated]:
    """Its successes in all, by what is asked, on held-out records; records where it succeeds and where it fails.

    `where`: a predicate that narrows them all; raises `UsageError` for one that does not parse.
    """
    if where:
        yield from _accuracy_where(run, findings, where)
    else:
        yield from _accuracy(run, findings)
    yield from _records(run, False, where)
    yield from _records(run, True, where)


def _accuracy(run: Run, findings: Findings) -> Iterator[Stated]:
    score = findings.task_score
    yield stated("run.accuracy", encode(score), f=findings, share=k_of_n(score))
    of = {name: share for name, share in shares(run) if share.n}
    if of:
        said = "Of these: " + ", ".join(f"{k_of_n(share)} of the {name}" for name, share in of.items())
        yield "run.accuracy.of", {name: encode(share) for name, share in of.items()}, said
    for name, each in by_value(run).items():
        said = f"By {name}: " + ", ".join(f"{value}: {k_of_n(share)}" for value, share in each.items())
        yield f"run.accuracy.by.{name}", {value: encode(share) for value, share in each.items()}, said
    held_out = _share(run.labels[~run.train])
    yield stated("run.accuracy.held_out", encode(held_out), share=k_of_n(held_out))


def _accuracy_where(run: Run, findings: Findings, where: Rule) -> Iterator[Stated]:
    """Its successes where a predicate holds and where not, and on held-out records."""
    here, words = fires(run, where)[: len(run.records)], rule_in_words(where, run.task)
    inside, outside = _share(run.labels[here]), _share(run.labels[~here])
    parts = {"where": words, "inside": k_of_n(inside), "outside": k_of_n(outside)}
    value = {"where": encode(inside), "elsewhere": encode(outside)}
    yield stated("run.accuracy.where", value, f=findings, **parts)
    held_out = _share(run.labels[here & ~run.train])
    yield stated("run.accuracy.where.held_out", encode(held_out), share=k_of_n(held_out))


def shares(run: Run) -> list[tuple[str, Share]]:
    """Successes on the records of each property that has words and that the task's records can tell."""
    found = []
    for each in PROPERTIES.values():
        with suppress(PredicateRefused):
            fires = run.fires(each.predicate)
            if fires.any() and not fires.all():
                found.append((each.where, _share(run.labels[fires])))
    return found


def by_value(run: Run) -> dict[str, dict[str, Share]]:
    """Successes by each value of the columns of a task's own table that have few."""
    columns = run.observed.columns
    return {
        name: {str(value): _share(run.labels[columns[name][: len(run.records)] == value]) for value in values}
        for name, values in few_valued(run).items()
    }


def _share(labels: np.ndarray) -> Share:
    return Share(count=int(labels.sum()), n=len(labels))


def _records(run: Run, label: bool, where: Rule | None) -> Iterator[Stated]:
    """The first few records on which the unablated model succeeds or fails; only how many of a concealed task."""
    here = fires(run, where)[: len(run.records)] if where else np.ones(len(run.records), bool)
    prompts = what_differs([record.example.prompt for record in run.records])
    asked = [
        (record, words) for record, words, holds in zip(run.records, prompts, here, strict=True) if holds
    ]
    some = [f"{words} {beginning(record.completion)}" for record, words in asked if record.label == label]
    share = Share(count=len(some), n=len(asked))
    told = () if run.task.concealed else tuple(some[:SHOWN])
    if where or told:
        parts = {
            "does": "succeeds" if label else "fails",
            "where": f" where {rule_in_words(where, run.task)}" if where else "",
            "such": f", such as: {' · '.join(told)}" if told else "",
        }
        key, value = "run.successes" if label else "run.failures", {**encode(share), "such_as": told}
        yield stated(key, value, "run.records", share=k_of_n(share), **parts)
