"""A recorded run that can be looked at after any of its events.

Snapshots share structure, so one is kept every `STRIDE` events and the way from there is folded again.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from mecharule_ops.events import Event
from mecharule_ops.state.run_state import RunState

STRIDE = 256


class Timeline:
    """The states of a fixed list of events."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = tuple(events)
        self._kept = [RunState()]

    def __len__(self) -> int:
        """Positions run from 0, before the first event, to this."""
        return len(self.events)

    def at(self, position: int) -> RunState:
        """The state after that many events; each event is folded at most once to get there, plus a stride."""
        position = min(max(position, 0), len(self.events))
        while len(self._kept) <= position // STRIDE:
            begin = (len(self._kept) - 1) * STRIDE
            self._kept.append(self._folded(self._kept[-1], begin, begin + STRIDE))
        nearest = position // STRIDE
        return self._folded(self._kept[nearest], nearest * STRIDE, position)

    def _folded(self, state: RunState, begin: int, end: int) -> RunState:
        for event in islice(self.events, begin, end):
            state = state.apply(event)
        return state
