"""Which units a question means: named ones, one by its place in strength, or the last one spoken of.

What was spoken of last is kept in the run file with each answer, so that `it` means the same in the next process.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent.answering.router import Route
from mecharule_ops.errors import UsageError
from mecharule_ops.findings.records import Findings
from mecharule_ops.questions.support import strongest
from mecharule_ops.run.live_run import Run
from mecharule_ops.store.keys import LAST_ANSWER, TOPIC, LastTopic
from mecharule_ops.types import Regime


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """What the last answer was about."""

    question: str = ""
    kind: str = "why"
    units: tuple[str, ...] = ()
    certificates: tuple[str, ...] = ()
    """What that answer cites."""

    def record(self) -> LastTopic:
        """As kept in the run file."""
        return LastTopic(question=self.question, kind=self.kind, units=list(self.units))


def topic_of(run: Run) -> Topic:
    """The last answer's topic; an empty one before any answer."""
    if not run.store.has(TOPIC):
        return Topic()
    kept = run.store.get(TOPIC)
    cited: list[str] = []
    if run.store.has(LAST_ANSWER):
        answer = run.store.get(LAST_ANSWER)
        cited = answer["certificates"] if answer["question"] == kept["question"] else []
    return Topic(
        question=kept["question"], kind=kept["kind"], units=tuple(kept["units"]), certificates=tuple(cited)
    )


def units_meant(findings: Findings, route: Route, topic: Topic) -> tuple[str, ...]:
    """The units of a question in order. Raises `UsageError` when a place or a pronoun stands for none."""
    units = list(route.units)
    if route.place is not None:
        units.append(_nth(findings, route.place, route.regime))
    if route.refers and route.kind != "verify":
        if not topic.units:
            raise UsageError(
                "expected the name of a unit, nothing was asked before that `it` could stand for"
            )
        units.insert(0, topic.units[0])
    return tuple(dict.fromkeys(units))


def _nth(findings: Findings, place: int, asked: str | None) -> str:
    """The unit of a place, in the direction asked about where one is."""
    regime = None if asked is None else Regime(int(asked))
    agonist = strongest(findings, place, regime)
    if agonist is None:
        searches = [search for search in findings.searches if regime in (None, search.regime)]
        found = len({one.neuron for search in searches for one in search.agonists})
        raise UsageError(f"expected at least {place} localized units in run {findings.run}, it has {found}")
    return str(agonist.neuron)
