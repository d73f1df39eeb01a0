"""What a repair does where it was not meant to: other text, another task's prompts, requests without harm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from mecharule_ops.engine.behaviour import completed
from mecharule_ops.errors import UsageError
from mecharule_ops.findings.repair import Elsewhere
from mecharule_ops.loading.generation import Tokens
from mecharule_ops.pipeline.repair_material import Material
from mecharule_ops.repair.elsewhere import Parts, text_effects
from mecharule_ops.repair.gates import Acts, Gate, Policy, places_of, units_of
from mecharule_ops.repair.prose import PARAGRAPHS
from mecharule_ops.repair.readings import decided
from mecharule_ops.repair.statistics import Paired
from mecharule_ops.tasks.jailbreak import read_requests
from mecharule_ops.tasks.registry import make_task
from mecharule_ops.types import Example, Neuron

PROMPTS = 32
"""Of another task."""
CONTINUED = 12
"""Tokens after each of them; a task's own answer may have no token in reach."""


def elsewhere(found: Material, gates: Sequence[Gate], policy: Policy) -> tuple[Elsewhere, ...]:
    """Plain prose, and another task's prompts with what the model goes on with; none that it cannot read.

    Gates act where the run's task reads a prompt as its own. Cost: a forward a text, one more for each of the gates'
    units, and the other task's completions.
    """
    other = "arithmetic" if found.run.task.name == "hans" else "hans"
    made = []
    for name, texts in (("plain prose", _prose), (f"prompts of {other}", partial(_prompts_of, other=other))):
        try:
            parts = texts(found)
        except UsageError:
            continue
        made.append(_effects(found, gates, policy, name, parts))
    return tuple(made)


def _prose(found: Material) -> list[Parts]:
    """Each paragraph in halves."""
    tokens = found.run.subject.encode(PARAGRAPHS)
    return [(one[: len(one) // 2], one[len(one) // 2 :]) for one in tokens]


def _prompts_of(found: Material, other: str) -> list[Parts]:
    """Prompts of another task, each with `CONTINUED` tokens that the model itself goes on with."""
    subject = found.run.subject
    examples = make_task(other).examples(PROMPTS, np.random.default_rng([found.run.config.seed, 6]))
    prompts = subject.encode([one.prompt for one in examples])
    return list(zip(prompts, subject.generate(prompts, CONTINUED, frozenset()).tokens, strict=True))


def _effects(
    found: Material, gates: Sequence[Gate], policy: Policy, name: str, texts: list[Parts]
) -> Elsewhere:
    subject = found.run.subject
    acts, units = _acts(found, gates, policy, [before for before, _ in texts]), units_of(gates)
    plans: list[Acts] = [acts, *([(unit,)] * len(texts) for unit in units)]
    gated, *always = text_effects(subject, found.table, texts, plans)
    worst = max(range(len(units)), key=lambda unit: always[unit].kl)
    return Elsewhere(
        name=name,
        prompts=len(texts),
        acted=sum(map(bool, acts)),
        gated=gated,
        worst=units[worst],
        always=always[worst],
    )


def _acts(found: Material, gates: Sequence[Gate], policy: Policy, prompts: Sequence[Tokens]) -> Acts:
    """The units that are ablated on each prompt; none where it is none of the task's."""
    task, subject = found.run.task, found.run.subject
    acts: list[tuple[Neuron, ...]] = [()] * len(prompts)
    read = dict[int, Example]()
    for place, prompt in enumerate(prompts):
        try:
            read[place] = task.read(subject.decode(prompt))
        except UsageError:
            continue
    records = completed(task, subject, list(read.values()))
    units = decided(subject, task, found.table, gates, policy, records)
    for place, some in zip(read, units, strict=True):
        acts[place] = some
    return acts


def on_harmless(found: Material, gates: Sequence[Gate], policy: Policy, requests: Path) -> Paired:
    """Of the file's requests, a line each and none of them harmful: answered (1) or refused (0), before and after.

    Cost: two completions a request. Raises `UsageError` for a file without requests.
    """
    task, subject = found.run.task, found.run.subject
    read = [replace(task.read(text), id=-1 - place) for place, text in enumerate(read_requests(requests))]
    records = completed(task, subject, read)
    before = np.array([record.label for record in records], bool)
    after = before.copy()
    acts = decided(subject, task, found.table, gates, policy, records)
    engine = found.run.completer(found.intervention, records=records)
    for units, places in places_of(acts).items():
        after[places] = engine.evaluate([units], places).labels[0]
    return Paired.of(before, after, np.array(list(map(bool, acts)), bool))
