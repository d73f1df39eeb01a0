"""EAP-IG scores of the units of a basis: which of them carry the contrast of a pair (paper, §4.2).

Edge attribution patching with integrated gradients (Hanna, Pezzelle and Belinkov 2024), "inputs" variant.
The embeddings of a pair are interpolated, e(a) = e_clean + a · (e_corrupt − e_clean), at the midpoints
a_k = (k + ½) / m, and a unit u scores

    mean over pairs of  Σ_positions (h_corrupt − h_clean)[u] · mean_k ∂M/∂h[u] at e(a_k),

with h and the gradient taken at the unit itself: the output of the MLP, the input of its down projection or
of W_O. It estimates M(u patched from corrupt into clean) − M(clean), so a negative unit supports the clean
answer. M is the mean over the answer span of the clean completion's logits, each minus the mean logit of the
vocabulary, teacher-forced after either prompt: unlike a divergence from the clean run, it has a gradient at
both ends. A score ranks candidates; it is no causal claim.

The tokens before the first difference within any pair have equal keys, values and units in both members:
they run once, and only the rest is interpolated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from mecharule_ops.candidates import top_candidates
from mecharule_ops.errors import UsageError
from mecharule_ops.loading.model import Subject
from mecharule_ops.mechanism.path_gradients import AttributionCost, AttributionPair, integrate
from mecharule_ops.types import Basis, Candidates, Phase


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attribution:
    """The scores of every unit and the candidates they leave."""

    candidates: Candidates
    scores: Float[np.ndarray, "layer channel"]
    """Signed, in mean-centred logits; one channel a unit, one head a channel for `attn_head`."""
    cost: AttributionCost


def eap_ig(
    subject: Subject,
    pairs: Sequence[AttributionPair],
    basis: Basis,
    phase: Phase,
    *,
    steps: int = 5,
    cap: int = 100_000,
    keep_zero: bool = True,
    batch: int = 16,
    on_progress: Callable[[int, int], None] | None = None,
) -> Attribution:
    """Signed EAP-IG scores of all units of a basis, summed over the positions that the phase intervenes on.

    `steps` is m; `on_progress` gets (pairs done, pairs in all). Under `Phase.DECODE` a completion of one
    token has no such position and contributes zero. Cost: `steps` + 2 forwards and `steps` backwards a pair.
    Raises `UsageError` without pairs or with a count below 1.
    """
    if not pairs or min(steps, cap, batch) < 1:
        raise UsageError(
            f"expected pairs, and steps, cap and batch of at least 1; got {len(pairs)} pairs, "
            f"steps {steps}, cap {cap}, batch {batch}"
        )
    sites = [subject.wiring.site(block, basis) for block in subject.wiring.blocks(subject.hf)]
    total, cost = integrate(
        subject.hf, sites, pairs, phase, steps=steps, batch=batch, on_progress=on_progress
    )
    units = total.reshape(len(sites), -1, subject.unit_size(basis)).sum(axis=2)
    candidates = top_candidates(basis, units, cap=cap, keep_zero=keep_zero)
    return Attribution(candidates=candidates, scores=units, cost=cost)
