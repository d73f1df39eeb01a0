"""Which units a run has localized, and the tree node that tested each alone."""

from __future__ import annotations

from collections.abc import Mapping

from mecharule_ops.events import AgonistFound, Event, NodeTested
from mecharule_ops.state.run_state import RunState
from mecharule_ops.state.search_id import EXHAUSTIVE, kind_of
from mecharule_ops.state.search_view import NodeView

Singles = Mapping[tuple[str, str], int]
"""(search, printed unit) → id of the node that tested the unit alone."""


def note_single(singles: dict[tuple[str, str], int], event: Event) -> None:
    """Remember the node of a unit that was tested alone."""
    if isinstance(event, NodeTested) and event.size == 1:
        singles[event.search, event.units] = event.node


def unit_node(state: RunState, singles: Singles, search: str, neuron: str) -> NodeView | None:
    """The node that tested a unit alone, as far as the state has come."""
    number = singles.get((search, neuron))
    view = state.searches.get(search)
    return view.nodes.get(number) if view and number is not None else None


def strongest(state: RunState) -> list[AgonistFound]:
    """Localized units, strongest first, each once a regime; the exhaustive run's own are left out."""
    found = [agonist for (search, _), agonist in state.agonists.items() if kind_of(search) != EXHAUSTIVE]
    return sorted(found, key=lambda agonist: (-agonist.strength, agonist.neuron, agonist.regime))
