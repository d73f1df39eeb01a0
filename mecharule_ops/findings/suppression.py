"""Findings and events without the names of the units that flip 0→1, for tasks where that direction is a risk.

With `--suppress-only` a run says how many such units there are and how strong, and nowhere which. A unit keeps its
layer and gets a number from a keyed hash: the same in every event and table of the run, meaningless without the
run's own key. What an ablation flipped is still counted per unit in the run file, which resuming needs.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from mecharule_ops.events import AgonistFound, Event, NodeAsked, NodeTested, RuleAnchored, UnitJudged
from mecharule_ops.findings.controls import AgonistControls
from mecharule_ops.findings.evidence import HeldOutFlips
from mecharule_ops.findings.records import Findings
from mecharule_ops.rules.families import UnitRule
from mecharule_ops.state.search_id import SearchId
from mecharule_ops.types import Agonist, Neuron, Regime, ends_printed, ends_read

RISKY = Regime.BASELINE_NEGATIVE
"""The direction whose units are hidden."""
_NUMBERS = 10**6
_BY_NAME = (Agonist, UnitRule, AgonistControls, HeldOutFlips)


@dataclass(frozen=True, slots=True)
class Suppression:
    """Hides units under a key."""

    key: bytes

    def hidden(self, neuron: Neuron) -> Neuron:
        """What stands for a unit: its layer, and a negative channel that no model has."""
        digest = hmac.digest(self.key, str(neuron).encode(), "sha256")
        number = int.from_bytes(digest[:6], "big") % _NUMBERS
        return Neuron(neuron.basis, neuron.layer, -1 - number)

    def event(self, event: Event) -> Event:
        """The event as it may be told and kept."""
        match event:
            case NodeAsked() | NodeTested() if SearchId.parse(event.search).regime == RISKY.value:
                ends = ends_printed(*map(self.hidden, ends_read(event.units)))
                return replace(event, units=ends, begin=0, end=0, channels=())
            case (
                AgonistFound(regime=RISKY.value)
                | UnitJudged(regime=RISKY.value)
                | RuleAnchored(regime=RISKY.value)
            ):
                return replace(event, neuron=str(self.hidden(Neuron.parse(event.neuron))))
        return event

    def findings(self, findings: Findings) -> Findings:
        """The findings with every unit of the risky direction hidden, and the searches marked so."""
        searches = tuple(
            replace(self._walk(outcome), suppressed=True) if outcome.regime is RISKY else outcome
            for outcome in findings.searches
        )
        return replace(findings, searches=searches)

    def _walk(self, value: Any) -> Any:
        if isinstance(value, Neuron):
            return self.hidden(value)
        if isinstance(value, tuple):
            walked = tuple(map(self._walk, value))
            # The order of true names would tell of them.
            in_order = all(isinstance(each, _BY_NAME) for each in walked)
            return tuple(sorted(walked, key=lambda each: each.neuron)) if in_order else walked
        if is_dataclass(value) and not isinstance(value, type):
            return replace(
                value, **{part.name: self._walk(getattr(value, part.name)) for part in fields(value)}
            )
        return value
