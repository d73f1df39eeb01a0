"""What can be asked: the wordings of the questions filled with a run's own units, and which three fit next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agent.answering.questions import QUESTIONS
from mecharule_ops.findings.records import Findings
from mecharule_ops.questions.support import by_evidence
from mecharule_ops.run.live_run import Run
from mecharule_ops.types import Neuron

MOST = 3
FIRST = ("why", "summary", "weakest", "missed", "strongest", "units")
"""What may always be asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """What a run's wordings are filled with."""

    strongest: tuple[str, ...]
    """Its strongest unit and the one after it, or fewer; none where none is shown."""
    other: str
    prompt: str
    property: str | None
    """One that the task's records can have; None where the program has no word for any."""
    whole: tuple[int, ...]
    """Layers that were ablated as a whole, ascending."""
    both_ways: bool = False
    """Whether both directions of flips were searched."""

    def fill(
        self,
        kinds: Iterable[str],
        unit: str | None = None,
        most: int | None = None,
        named: Mapping[str, str] | None = None,
    ) -> tuple[str, ...]:
        """The questions of these kinds that can be answered, each once, about that unit, else the strongest.

        `named` are other things that they are about.

        A question that needs what the run does not have is left out.
        """
        unit = unit or next(iter(self.strongest), None)
        own = [] if unit is None else [Neuron.parse(unit).layer]
        filled = {
            "unit": unit,
            "second": next((each for each in self.strongest if each != unit), None),
            "other": self.other,
            "term": "τ",
            "property": self.property,
            "prompt": self.prompt,
            "layer": next((layer for layer in (*own, *self.whole) if layer in self.whole), None),
        }
        known = {name: value for name, value in {**filled, **(named or {})}.items() if value is not None}
        asked = []
        for kind in dict.fromkeys(kinds):
            try:
                asked.append(QUESTIONS[kind].wording.format(**known))
            except KeyError:
                continue
        return tuple(question for question in asked if question)[:most]

    def after(self, kind: str, unit: str | None = None) -> tuple[str, ...]:
        """Three questions that go on from one of this kind."""
        going_on = QUESTIONS[kind].next.split()
        return self.fill([*going_on, *(other for other in FIRST if other != kind)], unit, MOST)


def offers_of(run: Run, findings: Findings) -> Offers:
    """From a run's findings."""
    found = [unit for unit in by_evidence(findings) if unit.is_tau_agonist][:2]
    return Offers(
        strongest=tuple(str(unit.neuron) for unit in found if found[0].is_shown),
        other=str(Neuron(run.config.bases[0], 0, 0)),
        property="a carry" if "a carry" in (getattr(run.task, "rival_families", None) or ()) else None,
        prompt=_example(run),
        whole=tuple(sorted({each.layer for search in findings.searches[:1] for each in search.whole_layers})),
        both_ways=len(run.config.regimes) > 1,
    )


def _example(run: Run) -> str:
    """A question of the run's own task; one that is concealed only by its kind."""
    if run.task.concealed:
        return "a prompt of the task"
    return run.records[0].example.prompt.rstrip("\n").rsplit("\n", 1)[-1]
