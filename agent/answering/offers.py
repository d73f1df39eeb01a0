"""What can be asked: the wordings of the questions filled with a run's own units, and which three fit next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agent.answering.questions import QUESTIONS
from mecharule_ops.findings.records import Findings
from mecharule_ops.questions.support import strongest
from mecharule_ops.run.live_run import Run
from mecharule_ops.types import Neuron

MOST = 3
_FIRST = ("why", "summary", "weakest", "missed", "strongest", "units")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fillings:
    """What the wordings are filled with; a missing one leaves out the questions that need it."""

    unit: str | None
    second: str | None
    other: str
    prompt: str
    layer: int | None

    def fill(self, kinds: Iterable[str], most: int | None = None) -> tuple[str, ...]:
        """The questions of these kinds that this run can answer, each once."""
        known = {name: value for name in self.__slots__ if (value := getattr(self, name)) is not None}
        asked = []
        for kind in dict.fromkeys(kinds):
            try:
                asked.append(QUESTIONS[kind].wording.format(**known))
            except KeyError:
                continue
        return tuple(question for question in asked if question)[:most]


def fillings(run: Run, findings: Findings, unit: str | None = None) -> Fillings:
    """From a run's findings, around the unit that was spoken of, else its strongest."""
    found = [str(agonist.neuron) for place in (1, 2) if (agonist := strongest(findings, place))]
    unit = unit or (found[0] if found else None)
    whole = {one.layer for search in findings.searches[:1] for one in search.whole_layers}
    layer = next((number for number in _layers(unit, whole)), None)
    return Fillings(
        unit=unit,
        second=next((one for one in found if one != unit), None),
        other=str(Neuron(run.config.bases[0], 0, 0)),
        prompt=_example(run),
        layer=layer,
    )


def fitting(kind: str, fill: Fillings) -> tuple[str, ...]:
    """Three questions that go on from one of this kind."""
    return fill.fill([*QUESTIONS[kind].next.split(), *(other for other in _FIRST if other != kind)], MOST)


def _layers(unit: str | None, whole: set[int]) -> list[int]:
    own = [] if unit is None else [int(unit[1:].split(".")[0])]
    return [number for number in (*own, *sorted(whole)) if number in whole]


def _example(run: Run) -> str:
    """A question of the run's own task; one that is concealed only by its kind."""
    if run.task.concealed:
        return "a prompt of the task"
    return run.records[0].example.prompt.rstrip("\n").rsplit("\n", 1)[-1]
