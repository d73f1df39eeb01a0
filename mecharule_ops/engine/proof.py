"""Proof on the very model that will be used: its passes give its own logits, and what an ablation costs here."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from mecharule_ops.engine.ablation import AblationEngine
from mecharule_ops.engine.guard import check_intervention
from mecharule_ops.engine.soundness import Soundness, check_soundness
from mecharule_ops.loading.generation import SharedPrefix
from mecharule_ops.loading.model import Subject
from mecharule_ops.loading.products import through_onednn
from mecharule_ops.passes.ablated import ablated_copies
from mecharule_ops.passes.batches import CHUNK_POSITIONS
from mecharule_ops.passes.clean import clean_pass, clean_spans
from mecharule_ops.passes.forward import Blocks
from mecharule_ops.passes.greedy import unembedding_of
from mecharule_ops.passes.intervention import Units
from mecharule_ops.passes.spans import span_of
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.subsets import some_records
from mecharule_ops.tasks.base import Task
from mecharule_ops.types import BehaviourRecord, Neuron, Phase

RECORDS = 2
ALLOWED = 1e-4
"""Of the largest logit: what rounding in another order may make."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What was shown."""

    guard: str
    """The sentence of the no-op guard."""
    soundness: Soundness
    hooked: float
    """Largest difference of a logit between the passes under the method and the model's plain forward."""
    restored: float
    """… between the clean pass and one where a unit of a layer, each layer in turn, is replaced by itself."""
    largest: float
    """The largest logit in absolute value."""
    rows: int
    """Positions of the largest batch that went through."""
    seconds: float
    """An example-forward in batches of that size."""

    @property
    def passed(self) -> bool:
        """Both differences are rounding."""
        return max(self.hooked, self.restored) <= ALLOWED * self.largest


def prove(subject: Subject, task: Task, records: Sequence[BehaviourRecord], table: ReplacementTable) -> Proof:
    """The proof on the model's own records. Raises what the guard and `check_soundness` raise.

    Cost: theirs, about three forwards a layer on `RECORDS` records, and one batch of ablations as large as
    free memory allows.
    """
    prompts = subject.encode([record.example.prompt for record in records])
    soundness = check_soundness(subject, prompts, [record.tokens for record in records])
    guard = check_intervention(subject, task, records, table.intervention, table)
    found = [_differences(subject, record, table) for record in some_records(records, RECORDS, of="proof")]
    hooked, restored, largest = (max(each) for each in zip(*found, strict=True))
    rows, seconds = _pace(subject, task, records, table)
    return Proof(
        guard=guard.sentence,
        soundness=soundness,
        hooked=hooked,
        restored=restored,
        largest=largest,
        rows=rows,
        seconds=seconds,
    )


def _differences(
    subject: Subject, record: BehaviourRecord, table: ReplacementTable
) -> tuple[float, float, float]:
    """(hooked, restored, largest) of one record, as `Proof` has them."""
    basis, prompt = table.intervention.basis, subject.encode([record.example.prompt])[0]
    span = span_of(prompt, record.tokens, Phase.LAST_PROMPT)
    unembedding = unembedding_of(subject)

    def logits(final: Float[Tensor, "copy position channel"]) -> Float[Tensor, "copy position token"]:
        found = unembedding.capped(unembedding.logits(final.flatten(0, 1)))
        return found.unflatten(0, final.shape[:2])

    with torch.inference_mode():
        ids = torch.tensor([[*span.prefix, *span.fed]], device=subject.device)
        plain = subject.hf(ids).logits[0, len(span.prefix) :].float()
        with through_onednn(subject.hf):
            shared, blocks = SharedPrefix.of(subject.hf, [span.prefix]), Blocks(subject)
            clean = clean_spans(subject, blocks, [span], basis, shared)
            sites = {
                str(layer): subject.wiring.site(block, basis) for layer, block in enumerate(blocks.stack)
            }
            seen, _ = clean_pass(subject, [span], sites, shared)
            own = [seen[name].unflatten(-1, subject.unit_shape(basis)) for name in sites]
            probe = torch.tensor(sorted({0, subject.width(basis) // 2}))
            groups = [
                {layer: Units(channels=probe, values=site[:, :, probe.to(site.device)])}
                for layer, site in enumerate(own)
            ]
            final = ablated_copies(subject, clean, basis, groups, partial(blocks.bind, clean.batch))
        begun, copies = logits(clean.final), logits(final[0])
    return (
        float((begun - plain).abs().max()),
        float((copies - begun).abs().max()),
        float(plain.abs().max()),
    )


def _pace(
    subject: Subject, task: Task, records: Sequence[BehaviourRecord], table: ReplacementTable
) -> tuple[int, float]:
    """(positions a batch, seconds an example-forward) of units of the first layer, ablated one at a time."""
    engine = AblationEngine(subject, task, records, table.intervention, table)
    basis, examples = table.intervention.basis, range(len(records))
    width = subject.width(basis)
    groups = [
        (Neuron(basis, 0, channel),) for channel in range(min(width, engine.rows // CHUNK_POSITIONS + 1))
    ]
    engine.evaluate(groups, examples)
    began = time.perf_counter()
    forwards = engine.evaluate(groups, examples).example_forwards
    return engine.rows, (time.perf_counter() - began) / forwards
