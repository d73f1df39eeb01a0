"""The name under which one layer's search is told in events: `cha:1:m4` is CHA, regime 1, layer 4 of basis m."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mecharule_ops.types import Basis, Regime

CHA, GUIDED, EXHAUSTIVE = "cha", "guided", "exhaustive"
"""The search of a run, the same by predictions, every unit singly."""
OF_A_RUN = (GUIDED, CHA)
"""What finds a run's agonists, as against what checks them."""


@dataclass(frozen=True, slots=True)
class SearchId:
    """What an id names; prints as it and is read from it."""

    kind: str
    regime: int
    place: str
    """Basis and layer: `m4`."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.regime}:{self.place}"

    @classmethod
    def parse(cls, text: str) -> SearchId:
        """The id that prints so."""
        kind, regime, place = text.split(":")
        return cls(kind, int(regime), place)


def search_id(kind: str, regime: Regime, basis: Basis, layer: int) -> str:
    """The id of a layer's search."""
    return str(SearchId(kind, regime.value, f"{basis.letter}{layer}"))
