"""What the unablated model does on a run's records: how often it is right, by the values of a column, and where not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from mecharule_ops.codec import encode
from mecharule_ops.facts.fact import Stated
from mecharule_ops.facts.properties import PROPERTIES
from mecharule_ops.findings.records import Findings
from mecharule_ops.numbers import k_of_n
from mecharule_ops.plain_text import beginning, what_differs
from mecharule_ops.predicates.type_check import PredicateRefused
from mecharule_ops.rules.in_words import rule_in_words
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.tabulating import few_valued, fires
from mecharule_ops.types import Share

SHOWN = 5
"""Records that are told of each kind."""


def accuracy(run: Run, findings: Findings, where: str = "") -> Iterator[Stated]:
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
    words, score = findings.words, findings.task_score
    yield (
        "run.accuracy",
        encode(score),
        f"Unablated the model is {words.success} on {k_of_n(score)} of the records",
    )
    of = {name: share for name, share in shares(run) if share.n}
    if of:
        said = "Of these: " + ", ".join(f"{k_of_n(share)} of the {name}" for name, share in of.items())
        yield "run.accuracy.of", {name: encode(share) for name, share in of.items()}, said
    for name, each in by_value(run).items():
        said = f"By {name}: " + ", ".join(f"{value}: {k_of_n(share)}" for value, share in each.items())
        yield f"run.accuracy.by.{name}", {value: encode(share) for value, share in each.items()}, said
    held_out = _share(run.labels[~run.train])
    yield "run.accuracy.held_out", encode(held_out), f"On the held-out records alone: {k_of_n(held_out)}"


def _accuracy_where(run: Run, findings: Findings, where: str) -> Iterator[Stated]:
    """Its successes where a predicate holds and where not, and on held-out records."""
    here, words = fires(run, where)[: len(run.records)], rule_in_words(where, run.task)
    inside, outside = _share(run.labels[here]), _share(run.labels[~here])
    held_out = _share(run.labels[here & ~run.train])
    yield (
        "run.accuracy.where",
        {"where": encode(inside), "elsewhere": encode(outside)},
        f"Where {words} the model, unablated, is {findings.words.success} on {k_of_n(inside)} of the records, "
        f"elsewhere on {k_of_n(outside)}",
    )
    said = f"On the held-out records where it is so: {k_of_n(held_out)}"
    yield "run.accuracy.where.held_out", encode(held_out), said


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


def _records(run: Run, label: bool, where: str) -> Iterator[Stated]:
    """The first few records on which the unablated model succeeds or fails; only how many of a concealed task."""
    here = fires(run, where)[: len(run.records)] if where else np.ones(len(run.records), bool)
    prompts = what_differs([record.example.prompt for record in run.records])
    asked = [
        (record, words) for record, words, holds in zip(run.records, prompts, here, strict=True) if holds
    ]
    some = [f"{words} {beginning(record.completion)}" for record, words in asked if record.label == label]
    share = Share(count=len(some), n=len(asked))
    told = () if run.task.concealed else tuple(some[:SHOWN])
    key = "run.successes" if label else "run.failures"
    if where or told:
        yield (
            key,
            {**encode(share), "such_as": told},
            f"With nothing ablated the model {'succeeds' if label else 'fails'} on {k_of_n(share)} of the records"
            + (f" where {rule_in_words(where, run.task)}" if where else "")
            + (f", such as: {' · '.join(told)}" if told else ""),
        )
