"""What the unablated model does on a run's records: how often it is right, by the values of a column, and where not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from mecharule_ops.findings.records import Findings
from mecharule_ops.numbers import k_of_n
from mecharule_ops.plain_text import plain
from mecharule_ops.predicates.type_check import PredicateRefused
from mecharule_ops.questions.own_words import few_valued
from mecharule_ops.run.live_run import Run
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
        yield f"By {name}: " + ", ".join(f"{value} {k_of_n(share)}" for value, share in each.items())
    held_out = ~run.train
    yield f"On the held-out records alone: {k_of_n(_share(run.labels[held_out]))}"


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


def failures(run: Run, findings: Findings) -> Iterator[str]:
    """The first few records on which the unablated model fails; only how many where the task conceals them."""
    wrong = [record for record in run.records if not record.label]
    yield (
        f"With nothing ablated the model fails on {k_of_n(Share(count=len(wrong), n=len(run.records)))} of the records"
    )
    if wrong and not run.task.concealed:
        yield "Such as: " + " · ".join(
            _wrong(record.example.prompt, record.completion) for record in wrong[:SHOWN]
        )


def successes(run: Run, findings: Findings) -> Iterator[str]:
    """The first few records on which the unablated model succeeds."""
    right = [record for record in run.records if record.label]
    yield (
        f"With nothing ablated the model succeeds on {k_of_n(Share(count=len(right), n=len(run.records)))} "
        "of the records"
    )
    if right and not run.task.concealed:
        yield "Such as: " + " · ".join(
            _wrong(record.example.prompt, record.completion) for record in right[:SHOWN]
        )


def _wrong(prompt: str, completion: str) -> str:
    asked = plain(prompt.rstrip("\n").rsplit("\n", 1)[-1])
    return f"{asked} {plain(completion).strip() or 'nothing'}"
