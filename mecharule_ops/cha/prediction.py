"""What is predicted of each unit of a layer before any is ablated; it decides what is asked, never what is claimed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayerPrediction:
    """Predicted flips of one layer's units, aligned with the channels of its candidates."""

    associated: Float[np.ndarray, " channel"]
    """Share of D̃⁺ that each unit alone is predicted to flip, in [0, 1]."""
    unrelated: Float[np.ndarray, " channel"]
    """Share of D̃⁻, likewise."""
    scores: Float[np.ndarray, " channel"]
    """Larger is likelier to flip, among units of equal predicted strength; for example the mean excess of the
    drop over the lead."""

    flips: tuple[Bool[np.ndarray, "associated channel"], Bool[np.ndarray, "unrelated channel"]] | None = None
    """Which examples of D̃⁺ and of D̃⁻ each unit alone is predicted to flip; None where only the rates are known."""

    def together(self, units: Int[np.ndarray, " unit"]) -> Float[np.ndarray, "slice unit"]:
        """Share of each slice that the first unit, the first two, … all of `units` flip together, as predicted.

        An example counts once, however many of them flip it alone. Where only rates are known they are added up, as
        if no two units flipped the same example.
        """
        if self.flips is None:
            return np.cumsum([self.associated[units], self.unrelated[units]], axis=1)
        unions = (np.logical_or.accumulate(side[:, units], axis=1) for side in self.flips)
        return np.stack([union.sum(axis=0) / max(len(union), 1) for union in unions])

    @property
    def strength(self) -> Float[np.ndarray, " channel"]:
        """The larger of the two predicted rates."""
        return np.maximum(self.associated, self.unrelated)

    @property
    def order(self) -> Int[np.ndarray, " channel"]:
        """Places of the units, most promising first; ties keep the order of channels."""
        return ranked([self])


def ranked(predictions: Sequence[LayerPrediction]) -> Int[np.ndarray, " unit"]:
    """Places of the units of all layers one after the other, most promising first; ties go to earlier layers."""
    strength = np.concatenate([prediction.strength for prediction in predictions])
    scores = np.concatenate([prediction.scores for prediction in predictions])
    return np.lexsort((-scores, -strength))


def order_over_layers(predictions: Sequence[LayerPrediction]) -> Int[np.ndarray, " unit"]:
    """For every unit of all layers, most promising first, the place of its layer."""
    layer = np.repeat(np.arange(len(predictions)), [len(each.scores) for each in predictions])
    return np.asarray(layer[ranked(predictions)])
