"""The lead of a generated token as a sum over everything that wrote into the residual stream.

    ℓ = κ ( Σ_components ⟨g, write⟩ + ⟨β, W_U[y] − W_U[w]⟩ + b[y] − b[w] ),    g = γ ⊙ (W_U[y] − W_U[w]) / σ

with the final normalisation's scale σ frozen (g centred under LayerNorm), β its bias, b the unembedding's, and κ
the share that the soft cap leaves. Components are the embedding (positions included), every attention and every
MLP; `bias` is the rest. The sum is exact up to rounding; it says where the lead comes from, not what would remain
if a component were gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from mecharule_ops.loading import norms
from mecharule_ops.loading.model import Subject
from mecharule_ops.loading.products import through_onednn
from mecharule_ops.mechanism.effects import direction
from mecharule_ops.mechanism.forced import Forced, Forcing
from mecharule_ops.mechanism.leads import Compared, LeadHead, Leads
from mecharule_ops.passes.intervention import hooked
from mecharule_ops.types import Basis, BehaviourRecord, Phase


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contributions:
    """What each component adds to each lead."""

    leads: Leads
    names: tuple[str, ...]
    """`embedding`, `a0`, `m0`, `a1`, …, `bias`."""
    value: Float32[np.ndarray, "record position competitor component"]
    """In logits; NaN out of reach."""


def contributions(
    subject: Subject,
    records: Sequence[BehaviourRecord],
    phase: Phase,
    *,
    competitors: int = 1,
    columns: int | None = None,
) -> Contributions:
    """The parts of every lead in reach of the phase. Cost: one forward over prompts and completions."""
    forcing, head = Forcing(subject, records, phase), LeadHead(subject, competitors)
    leads = Leads.empty(forcing.completions, competitors)
    layers = range(subject.n_layers)
    names = ("embedding", *(f"{letter}{layer}" for layer in layers for letter in "am"), "bias")
    value = np.full((*leads.lead.shape, len(names)), np.nan, np.float32)
    for batch in forcing.batches(columns):
        with torch.no_grad(), through_onednn(subject.hf):
            forced, writes = _writes(forcing, batch)
            at = forced.predicted
            compared = head.compare(forced.final[at.row, at.column], at.generated)
            leads.enter(batch, at, compared)
            toward = direction(subject, head, forced, compared)
            parts = [
                torch.einsum("tkc,tc->tk", toward, write.to(toward.device)[at.row, at.column])
                for write in writes
            ]
            parts.append(_bias(subject, head, compared))
        places = np.array(batch)[at.row.cpu().numpy()], at.position.cpu().numpy()
        value[places] = torch.stack(parts, -1).cpu().numpy()
    return Contributions(leads=leads, names=names, value=value)


def _writes(forcing: Forcing, batch: Sequence[int]) -> tuple[Forced, list[Tensor]]:
    """A forward, and what entered the first block and every attention and MLP added, in the order of `names`."""
    subject = forcing.subject
    seen: dict[str, Tensor] = {}
    with ExitStack() as stack:
        for layer, block in enumerate(forcing.blocks.stack):
            mlp, _ = subject.wiring.site(block, Basis.MLP_OUT)
            for letter, module in (("a", subject.wiring.attention_write(block)), ("m", mlp)):
                see = partial(seen.__setitem__, f"{letter}{layer}")
                stack.callback(hooked(module, False, see).remove)
        forced = forcing.feed(batch)
    layers = range(subject.n_layers)
    return forced, [forced.calls.embedded, *(seen[f"{kind}{layer}"] for layer in layers for kind in "am")]


def _bias(subject: Subject, head: LeadHead, compared: Compared) -> Tensor:
    """What the biases of the final normalisation and of the unembedding add."""
    final_norm, _ = subject.wiring.head(subject.hf)
    within = head.difference(compared) @ norms.bias(final_norm)
    return (within + head.bias_lead(compared)) * head.secant(compared)
