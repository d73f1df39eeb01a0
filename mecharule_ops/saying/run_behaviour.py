"""What the unablated model does on a run's records: how often it is right, by the values of a column, and where not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from mecharule_ops.findings.records import Findings
from mecharule_ops.numbers import k_of_n
from mecharule_ops.plain_text import beginning, what_differs
from mecharule_ops.predicates.type_check import PredicateRefused
from mecharule_ops.questions.own_words import few_valued
from mecharule_ops.rules.in_words import rule_in_words
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.tabulating import fires
from mecharule_ops.saying.properties import PROPERTIES
from mecharule_ops.types import Share

SHOWN = 5
"""Failing records that are told."""


def accuracy(run: Run, findings: Findings) -> Iterator[str]:
    """Its successes in all, by what is asked, and on held-out records."""
    words = findings.words
    yield f"Unablated the model is {words.success} on {k_of_n(findings.task_score)} of the records"
    parts = [f"{k_of_n(share)} of the {name}" for name, share in shares(run) if share.n]
    if parts:
        yield "Of these: " + ", ".join(parts)
    for name, each in by_value(run).items():
        yield f"By {name}: " + ", ".join(f"{value}: {k_of_n(share)}" for value, share in each.items())
    held_out = ~run.train
    yield f"On the held-out records alone: {k_of_n(_share(run.labels[held_out]))}"


def accuracy_where(run: Run, findings: Findings, where: str) -> Iterator[str]:
    """Its successes where a predicate holds and where not, and on held-out records. Raises `UsageError`."""
    here, words = fires(run, where)[: len(run.records)], rule_in_words(where, run.task)
    held_out = run.labels[here & ~run.train]
    yield (
        f"Where {words} the model, unablated, is {findings.words.success} on {k_of_n(_share(run.labels[here]))} of the "
        f"records, elsewhere on {k_of_n(_share(run.labels[~here]))}"
    )
    yield f"On the held-out records where it is so: {k_of_n(_share(held_out))}"


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


def failures(run: Run, findings: Findings, where: str = "") -> Iterator[str]:
    """The first few records on which the unablated model fails; only how many where the task conceals them.

    `where`: a predicate that narrows them; raises `UsageError` for one that does not parse.
    """
    return _records(run, False, where)


def successes(run: Run, findings: Findings, where: str = "") -> Iterator[str]:
    """The same of those on which it succeeds."""
    return _records(run, True, where)


def _records(run: Run, label: bool, where: str) -> Iterator[str]:
    here = fires(run, where)[: len(run.records)] if where else np.ones(len(run.records), bool)
    prompts = what_differs([record.example.prompt for record in run.records])
    asked = [
        (record, words) for record, words, holds in zip(run.records, prompts, here, strict=True) if holds
    ]
    some = [(record, words) for record, words in asked if record.label == label]
    yield (
        f"With nothing ablated the model {'succeeds' if label else 'fails'} on "
        f"{k_of_n(Share(count=len(some), n=len(asked)))} of the records"
        + (f" where {rule_in_words(where, run.task)}" if where else "")
    )
    if some and not run.task.concealed:
        yield "Such as: " + " · ".join(
            f"{words} {beginning(record.completion)}" for record, words in some[:SHOWN]
        )
