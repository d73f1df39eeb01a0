"""What a repair does where it was not meant to: other text, another task's prompts, requests without harm.

Other text is measured by KL from the clean model and by perplexity. For a text in two parts, what stands before and
what continues it, both are taken at each token of the continuation:

    KL = Σ_w p(w) (log p(w) − log q(w)),   perplexity = exp(−mean log p(token)),

p the clean model, q the one in which each row's units are replaced as in a generation of the continuation.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.resources import files
from math import exp
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from mecharule_ops.engine.behaviour import behaviour_on
from mecharule_ops.errors import UsageError
from mecharule_ops.findings.repair_outcome import Elsewhere, Gate, Policy, TextEffect
from mecharule_ops.loading.generation import Tokens
from mecharule_ops.loading.model import Subject
from mecharule_ops.mcnemar import Paired
from mecharule_ops.repair.acting_rows import ablating_rows
from mecharule_ops.repair.gates import Acts, places_of, units_of
from mecharule_ops.repair.material import Material
from mecharule_ops.repair.readings import decided
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.tasks.jailbreak import read_requests
from mecharule_ops.tasks.task_names import make_task
from mecharule_ops.types import Example

Parts = tuple[Tokens, Tokens]
"""What stands before, and what continues it; neither is empty."""
_ROWS = 8
PROMPTS = 32
"""Of another task."""
PROSE = files(__package__).joinpath("plain_prose.txt")
"""Plain English that is none of any task, a paragraph a line, written for this package."""
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
    tokens = found.run.subject.encode(PROSE.read_text(encoding="utf-8").splitlines())
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
    read = dict[int, Example]()
    for place, prompt in enumerate(prompts):
        with suppress(UsageError):
            read[place] = task.read(subject.decode(prompt))
    records = behaviour_on(task, subject, list(read.values())).records
    acts = dict(zip(read, decided(subject, task, found.table, gates, policy, records), strict=True))
    return [acts.get(place, ()) for place in range(len(prompts))]


def on_harmless(found: Material, gates: Sequence[Gate], policy: Policy, requests: Path) -> Paired:
    """Of the file's requests, a line each and none of them harmful: answered (1) or refused (0), before and after.

    Cost: two completions a request. Raises `UsageError` for a file without requests.
    """
    task, subject = found.run.task, found.run.subject
    read = [replace(task.read(text), id=-1 - place) for place, text in enumerate(read_requests(requests))]
    records = behaviour_on(task, subject, read).records
    before = np.array([record.label for record in records], bool)
    after = before.copy()
    acts = decided(subject, task, found.table, gates, policy, records)
    engine = found.run.completer(found.intervention, records=records)
    for units, places in places_of(acts).items():
        after[places] = engine.evaluate([units], places).labels[0]
    return Paired.of(before, after, np.array(list(map(bool, acts)), bool))


def text_effects(
    subject: Subject,
    table: ReplacementTable,
    texts: Sequence[Parts],
    plans: Sequence[Acts],
) -> list[TextEffect]:
    """What each plan does, which replaces the units `plan[i]` in `texts[i]`.

    Cost: a forward over the texts for the clean model, and one for each plan over the batches that it touches.
    """
    assert texts
    assert all(len(plan) == len(texts) for plan in plans), [len(plan) for plan in plans]
    tokens, clean_loss, sums = 0, 0.0, [[0.0, 0.0] for _ in plans]
    for start in range(0, len(texts), _ROWS):
        some = texts[start : start + _ROWS]
        prompts = [before for before, _ in some]
        with torch.no_grad():
            clean = _predictions(subject, some)
            tokens += sum(len(continuation) for _, continuation in some)
            clean_loss += _loss(clean, some)
            for plan, known in zip(plans, sums, strict=True):
                acts, acted = plan[start : start + _ROWS], clean
                if any(acts):
                    with ablating_rows(subject, table, prompts, max(map(len, prompts)), acts):
                        acted = _predictions(subject, some)
                known[0] += sum(float((p.exp() * (p - q)).sum()) for p, q in zip(clean, acted, strict=True))
                known[1] += _loss(acted, some)
    before = exp(clean_loss / tokens)
    return [
        TextEffect(tokens=tokens, kl=max(0.0, kl / tokens), before=before, after=exp(loss / tokens))
        for kl, loss in sums
    ]


def _loss(predicted: Sequence[Float[Tensor, "_ word"]], texts: Sequence[Parts]) -> float:
    """−log p of every token of the continuations, in all."""
    return -sum(
        float(p.gather(1, torch.tensor(continuation, device=p.device)[:, None]).sum())
        for p, (_, continuation) in zip(predicted, texts, strict=True)
    )


def _predictions(subject: Subject, texts: Sequence[Parts]) -> list[Float[Tensor, "_ word"]]:
    """Log probabilities at each token of each continuation; texts are aligned where the continuations begin."""
    width = max(len(before) for before, _ in texts)
    longest = max(len(continuation) for _, continuation in texts)
    ids = torch.zeros((len(texts), width + longest), dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, (before, continuation) in enumerate(texts):
        here = slice(width - len(before), width + len(continuation))
        ids[row, here], mask[row, here] = torch.tensor((*before, *continuation)), 1
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    device = subject.device
    output = subject.hf(
        ids.to(device), attention_mask=mask.to(device), position_ids=positions.to(device), use_cache=False
    )
    return [
        output.logits[row, width - 1 : width - 1 + len(continuation)].float().log_softmax(-1)
        for row, (_, continuation) in enumerate(texts)
    ]
