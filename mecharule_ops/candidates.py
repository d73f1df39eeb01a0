"""Which units attribution hands to the search: the strongest by score, grouped by layer (paper, §4.3).

Apart from `attribution`, which measures the scores on the model, so that questions about a stored search need
no model.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from mecharule_ops.types import Basis, Candidates, LayerCandidates


def top_candidates(
    basis: Basis, scores: Float[np.ndarray, "layer channel"], *, cap: int = 100_000, layer: int | None = None
) -> Candidates:
    """The `cap` units of largest |score| across layers, or in one; on a tie the lower layer and channel first.

    Units of score zero stay, so that the recall of the search does not rest on attribution; the paper keeps non-zero
    ones only. A layer that keeps nothing is left out.
    """
    searched = np.array([layer in (None, place) for place in range(len(scores))])[:, None]
    strength = np.where(searched, np.abs(scores), -1.0).reshape(-1)
    kept = np.zeros(strength.size, dtype=bool)
    kept[np.argsort(-strength, kind="stable")[:cap]] = True
    layers = []
    for place, mask in enumerate(kept.reshape(scores.shape) & searched):
        if mask.any():
            channels = np.flatnonzero(mask)
            layers.append(LayerCandidates(layer=place, channels=channels, scores=scores[place, channels]))
    return Candidates(basis=basis, layers=tuple(layers))


def unranked(
    basis: Basis, shape: tuple[int, int], *, cap: int = 100_000, layer: int | None = None
) -> Candidates:
    """The first `cap` units in the order of channels, without scores: nobody asked attribution."""
    found = top_candidates(basis, np.zeros(shape), cap=cap, layer=layer)
    return replace(found, layers=tuple(replace(layer, scores=None) for layer in found.layers))
