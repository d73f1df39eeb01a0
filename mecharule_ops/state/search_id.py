"""The name under which one layer's search is told in events: `cha:1:m4` is CHA, regime 1, layer 4 of basis m."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mecharule_ops.types import Basis, Regime

CHA, GUIDED, EXHAUSTIVE, AGAIN = "cha", "guided", "exhaustive", "again"
"""The search of a run, the same by predictions, every unit singly, a later search on a stored run."""
OF_A_RUN = (GUIDED, CHA)
"""What finds a run's agonists, as against what checks them."""


def search_id(kind: str, regime: Regime, basis: Basis, layer: int) -> str:
    """The id of a layer's search."""
    return f"{kind}:{regime.value}:{basis.letter}{layer}"


def kind_of(search: str) -> str:
    """Which kind of search an id names."""
    return search.partition(":")[0]


def is_of(search: str, regime: Regime) -> bool:
    """Whether an id names a search of a regime."""
    return f":{regime.value}:" in search
