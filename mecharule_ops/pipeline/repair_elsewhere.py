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
from mecharule_ops.repair.gates import Gate, units_of
from mecharule_ops.repair.prose import PARAGRAPHS
from mecharule_ops.repair.readings import acting_units
from mecharule_ops.repair.statistics import Paired
from mecharule_ops.tasks.jailbreak import read_requests
from mecharule_ops.tasks.registry import make_task
from mecharule_ops.types import Example, Neuron

PROMPTS = 32
"""Of another task."""
CONTINUED = 12
"""Tokens after each of them; a task's own answer may have no token in reach."""


def elsewhere(found: Material, gates: Sequence[Gate]) -> tuple[Elsewhere, ...]:
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
        made.append(_effects(found, gates, name, parts))
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


def _effects(found: Material, gates: Sequence[Gate], name: str, texts: list[Parts]) -> Elsewhere:
    subject = found.run.subject
    acts, units = _acts(found, gates, [before for before, _ in texts]), units_of(gates)
    plans: list[Sequence[Neuron | None]] = [acts, *([unit] * len(texts) for unit in units)]
    gated, *always = text_effects(subject, found.table, texts, plans)
    worst = max(range(len(units)), key=lambda unit: always[unit].kl)
    return Elsewhere(
        name=name,
        prompts=len(texts),
        acted=sum(unit is not None for unit in acts),
        gated=gated,
        worst=units[worst],
        always=always[worst],
    )


def _acts(found: Material, gates: Sequence[Gate], prompts: Sequence[Tokens]) -> list[Neuron | None]:
    """The unit that is ablated on each prompt; None where it is none of the task's."""
    task, subject = found.run.task, found.run.subject
    acts: list[Neuron | None] = [None] * len(prompts)
    read = dict[int, Example]()
    for place, prompt in enumerate(prompts):
        try:
            read[place] = task.read(subject.decode(prompt))
        except UsageError:
            continue
    records = completed(task, subject, list(read.values()))
    for place, unit in zip(read, acting_units(subject, task, found.table, gates, records), strict=True):
        acts[place] = unit
    return acts


def on_harmless(found: Material, gates: Sequence[Gate], requests: Path) -> Paired:
    """Of the file's requests, a line each and none of them harmful: answered (1) or refused (0), before and after.

    Cost: two completions a request. Raises `UsageError` for a file without requests.
    """
    task, subject = found.run.task, found.run.subject
    read = [replace(task.read(text), id=-1 - place) for place, text in enumerate(read_requests(requests))]
    records = completed(task, subject, read)
    before = np.array([record.label for record in records], bool)
    after = before.copy()
    acts = acting_units(subject, task, found.table, gates, records)
    engine = found.run.completer(found.intervention, records=records)
    for unit in dict.fromkeys(one for one in acts if one is not None):
        places = [place for place, one in enumerate(acts) if one == unit]
        after[places] = engine.evaluate([(unit,)], places).labels[0]
    return Paired.of(before, after, np.array([one is not None for one in acts], bool))
