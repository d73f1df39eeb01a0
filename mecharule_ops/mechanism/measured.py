"""The measured drop: how far a logit difference really falls under do(A) on the record's own completion.

    lead in the clean run − lead of the same token over the same competitor under do(A)

It is what first order estimates, and the outcome of activation patching; the difference is curvature and self-repair.
It is taken over the token that is best under do(A). The lead that is left over that one says exactly which token
changes first: below 0, decoding under do(A) writes another one.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Bool, Float32, Int

from mecharule_ops.loading import model, products
from mecharule_ops.mechanism.forced import Forcing
from mecharule_ops.mechanism.leads import LeadHead
from mecharule_ops.passes.ablated import ablated_copies
from mecharule_ops.passes.batches import default_rows, parts
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.types import BehaviourRecord, Neuron


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measured:
    """What is left of the leads under each group."""

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
    subject: model.Subject,
    records: Sequence[BehaviourRecord],
    replacement: ReplacementTable,
    groups: Sequence[Collection[Neuron]],
) -> Measured:
    """Leads before and after each group's ablation, tokens of the clean completion fed back.

    Cost: as `Forcing.at_rest`, and for each group the blocks from its lowest layer up and one product with the
    unembedding. Raises `UsageError` for a unit that the model does not have.
    """
    basis = replacement.intervention.basis
    subject.check_units([unit for group in groups for unit in group], basis)
    forcing, head = Forcing(subject, records, replacement.intervention.phase), LeadHead(subject, 1)
    shape = (len(groups), len(records), forcing.positions)
    left, best = np.full(shape, np.nan, np.float32), np.full(shape, -1)
    fall = left.copy()
    order = sorted(range(len(groups)), key=lambda index: min(unit.layer for unit in groups[index]))
    for batch in forcing.batches():
        with torch.inference_mode(), products.through_onednn(subject.hf):
            rest = forcing.at_rest(batch, basis)
            at = rest.predicted
            begun = rest.final[at.row, at.column]
            rows = np.array(batch)[at.row.cpu().numpy()]
            positions = at.position.cpu().numpy()
            for chosen in parts(order, max(1, default_rows(subject) // rest.offsets.numel())):
                units = [replacement.units(groups[index], rest.offsets, subject.device) for index in chosen]
                bind = partial(forcing.blocks.bind, rest.clean.batch)
                final = ablated_copies(subject, rest.clean, basis, units, bind)
                for copy, index in enumerate(chosen):
                    nearest = head.compare(final[:, copy], at)
                    left[index, rows, positions] = nearest.lead[:, 0].cpu().numpy()
                    best[index, rows, positions] = nearest.tokens[:, 0].cpu().numpy()
                    then = head.against(begun, at.generated, nearest.tokens)
                    fall[index, rows, positions] = (then.lead - nearest.lead)[:, 0].cpu().numpy()
    return Measured(left=left, best=best, fall=fall)
