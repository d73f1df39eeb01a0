"""The figures of one unit, topic by topic: its counts and bounds, chance, held-out records, split, rules, baselines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from mecharule_ops.codec import encode
from mecharule_ops.findings.records import Findings, SearchOutcome, Unit
from mecharule_ops.run.opening import opened
from mecharule_ops.saying import unit_evidence
from mecharule_ops.types import Neuron
from tools._accounts import Asked
from tools.arguments import UnitArguments, UnitTopic
from tools.registry import Tell, ToolResult, stated

Sentences = Callable[[Findings, SearchOutcome, Neuron, Unit | None], Iterator[str]]
TOPICS: Mapping[UnitTopic, Sentences] = {
    "strength": unit_evidence.strength,
    "chance": unit_evidence.chance,
    "held-out": unit_evidence.held_out,
    "selective": unit_evidence.selective,
    "rules": unit_evidence.rules,
    "replacement": unit_evidence.replacement,
}
"""Who answers each topic."""


def unit(given: UnitArguments, tell: Tell) -> ToolResult:
    """Sentences on the topic from the run's findings; no model is loaded.

    Raises `UsageError` for a unit that there is not.
    """
    with opened(given.run) as run:
        asked = Asked.of(run, given)
    estimate = asked.unit.estimate if asked.unit else unit_evidence.alone(asked.search, asked.neuron)
    said = list(TOPICS[given.topic](asked.findings, asked.search, asked.neuron, asked.unit))
    both = None
    if estimate is not None:
        one, other = estimate.associated, estimate.unrelated
        both = {"flips": one.flips + other.flips, "n": one.n + other.n}
    data = {
        **asked.data,
        "topic": given.topic,
        "slices": None if estimate is None else {**encode(estimate), "strength": estimate.strength},
        "both": both,
        "lower": None if asked.unit is None else asked.unit.lower,
        "upper": None if asked.unit is None else asked.unit.agonist.ucb,
        "others": asked.search.cost.candidates - 1,
        "sentences": said,
    }
    return stated(data, asked.facts(said))
