"""The kinds of search that a run can make: one search a layer, whatever the kind, all driven together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from mecharule_ops.cha.exhaustive import exhaustive_search
from mecharule_ops.cha.group_search import Search
from mecharule_ops.cha.guided import SWEEP, GuidedSettings, guided_searches
from mecharule_ops.cha.prediction import LayerPrediction
from mecharule_ops.cha.search import ChaSearch
from mecharule_ops.cha.settings import ChaSettings
from mecharule_ops.pipeline.driver import NamedSearch
from mecharule_ops.state import search_id
from mecharule_ops.types import Candidates, Regime


class SearchKind(StrEnum):
    """How units are searched; also the head of a search's id."""

    GUIDED = search_id.GUIDED
    """What predictions promise alone, the rest in large groups."""
    CHA = search_id.CHA
    """Groups by attribution, opened by bisection."""
    EXHAUSTIVE = search_id.EXHAUSTIVE
    """Every unit alone, on all examples."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchPlan:
    """How the layers of one basis and regime are searched."""

    kind: SearchKind = SearchKind.CHA
    settings: ChaSettings
    """How a group is tested, whatever the kind."""
    sweep: int = SWEEP
    """Units of the largest group of a guided sweep."""
    predictions: Sequence[LayerPrediction] = ()
    """Of each layer of the candidates, for a guided search."""
    prediction_forwards: int = 0
    """Example-forwards that the predictions took."""

    def searches(self, candidates: Candidates, regime: Regime) -> list[NamedSearch]:
        """New searches of all layers; nothing is asked yet.

        Raises `PredictionError` when a guided plan has no predictions of these candidates.
        """
        return [
            NamedSearch(
                id=search_id.search_id(self.kind, regime, candidates.basis, layer.layer),
                search=search,
                layer=layer.layer,
            )
            for layer, search in zip(candidates.layers, self._unnamed(candidates, regime), strict=True)
        ]

    def _unnamed(self, candidates: Candidates, regime: Regime) -> Sequence[Search]:
        layers = candidates.layers
        if self.kind is SearchKind.GUIDED:
            guided = GuidedSettings(cha=self.settings, sweep=self.sweep)
            return guided_searches(layers, self.predictions, settings=guided, regime=regime)
        if self.kind is SearchKind.EXHAUSTIVE:
            return [exhaustive_search(layer, settings=self.settings, regime=regime) for layer in layers]
        return [ChaSearch(layer, settings=self.settings, regime=regime) for layer in layers]
