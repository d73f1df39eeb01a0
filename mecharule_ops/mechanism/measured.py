"""The measured drop: how far a lead really falls under do(A), from an ablation on the record's own completion.

    lead in the clean run − lead of the same token over the same competitor under do(A)

It is what first order estimates; the difference is curvature and self-repair. The smallest lead that is left, over
whatever token is best then, says exactly which token changes first: below 0, decoding under do(A) writes another one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Bool, Float32, Int

from mecharule_ops.loading.model import Subject
from mecharule_ops.loading.products import through_onednn
from mecharule_ops.mechanism.forced import Forcing
from mecharule_ops.mechanism.leads import LeadHead, Leads
from mecharule_ops.mechanism.unit_axis import UnitAxis
from mecharule_ops.passes.ablated import ablated_copies
from mecharule_ops.passes.batches import default_rows, parts
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.thresholds import COMPETITORS
from mecharule_ops.types import BehaviourRecord, Neuron


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measured:
    """What is left of the leads under each group."""

    leads: Leads
    """Of the clean run."""
    drop: Float32[np.ndarray, "group record position competitor"]
    """Clean lead − ablated lead over the same token, in logits; NaN out of reach."""
    left: Float32[np.ndarray, "group record position"]
    """Lead over the best other token under do(A); NaN out of reach."""
    best: Int[np.ndarray, "group record position"]
    """That token; −1 out of reach."""
    fall: Float32[np.ndarray, "group record position"]
    """Clean lead over that token − `left`, in logits; NaN out of reach."""

    @property
    def changed(self) -> Bool[np.ndarray, "group record"]:
        """Whether some token in reach changes."""
        return np.any(self.left < 0, axis=2)


def measured_drop(
    subject: Subject,
    records: Sequence[BehaviourRecord],
    replacement: ReplacementTable,
    groups: Sequence[Collection[Neuron]],
    *,
    competitors: int = COMPETITORS,
    columns: int | None = None,
) -> Measured:
    """Leads before and after each group's ablation, tokens of the clean completion fed back.

    Cost: a clean pass over the records, and for each group the blocks from its lowest layer up and one product with
    the unembedding. Raises `UsageError` for a unit that the model does not have.
    """
    basis = replacement.intervention.basis
    for group in groups:
        UnitAxis.of(subject, basis, tuple(group))
    forcing, head = Forcing(subject, records, replacement.intervention.phase), LeadHead(subject, competitors)
    runner_up = LeadHead(subject, 1)
    leads = Leads.empty(forcing.completions, competitors)
    shape = (len(groups), *leads.generated.shape)
    drop = np.full((*shape, competitors), np.nan, np.float32)
    left, best = np.full(shape, np.nan, np.float32), np.full(shape, -1)
    fall = left.copy()
    order = sorted(range(len(groups)), key=lambda index: min(unit.layer for unit in groups[index]))
    for batch in forcing.batches(columns):
        with torch.inference_mode(), through_onednn(subject.hf):
            clean = forcing.clean(batch, basis)
            at = clean.predicted
            begun = clean.spans.final[at.row, at.column]
            before = head.compare(begun, at.generated)
            leads.enter(batch, at, before)
            rows = np.array(batch)[at.row.cpu().numpy()]
            positions = at.position.cpu().numpy()
            for chosen in parts(order, max(1, default_rows(subject) // clean.offsets.numel())):
                units = [replacement.units(groups[index], clean.offsets, subject.device) for index in chosen]
                bind = partial(forcing.blocks.bind, clean.spans.batch)
                final = ablated_copies(subject, clean.spans, basis, units, bind)
                for copy, index in enumerate(chosen):
                    hidden = final[at.row, copy, at.column]
                    after = head.against(hidden, at.generated, before.tokens)
                    drop[index, rows, positions] = (before.lead - after.lead).cpu().numpy()
                    nearest = runner_up.compare(hidden, at.generated)
                    left[index, rows, positions] = nearest.lead[:, 0].cpu().numpy()
                    best[index, rows, positions] = nearest.tokens[:, 0].cpu().numpy()
                    then = runner_up.against(begun, at.generated, nearest.tokens)
                    fall[index, rows, positions] = (then.lead - nearest.lead)[:, 0].cpu().numpy()
    return Measured(leads=leads, drop=drop, left=left, best=best, fall=fall)
