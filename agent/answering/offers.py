"""What can be asked: one wording a kind of question, filled with a run's own units, and which three fit next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mecharule_ops.findings.records import Findings
from mecharule_ops.pipeline.run import Run
from mecharule_ops.questions.unit_account import strongest
from mecharule_ops.types import Neuron

ASKABLE: Mapping[str, str] = {
    "why": "why does {unit} flip?",
    "strongest": "which neuron is the strongest?",
    "summary": "what was found?",
    "units": "which units were found?",
    "when": "when does {unit} flip?",
    "prediction": "how well are the flips of {unit} predicted?",
    "responds": "what does {unit} respond to?",
    "reads": "what does {unit} read?",
    "writes": "what does {unit} write?",
    "through": "through which units does {unit} act?",
    "sure": "how sure is {unit}?",
    "covers": "what else does the rule of {unit} cover?",
    "disguise": "is the rule of {unit} the splitter in disguise?",
    "flip": 'would {unit} flip on "{prompt}"?',
    "versus": "is {unit} stronger than {second}?",
    "layer": "is layer {layer} as a whole worse than its best unit?",
    "shared": "which neurons share the flips of {unit}?",
    "controls": "what do the controls of {unit} say?",
    "mind": "what would change your mind about {unit}?",
    "how": "how was {unit} found?",
    "why-not": "why not {other}?",
    "verify": "prove it",
    "weakest": "what is the weakest claim here?",
    "missed": "what did the search miss?",
    "rank": "is {unit} the strongest unit?",
    "rule": "what is the rule of {unit}?",
    "ablate": "what happens if {unit} and {second} are ablated together?",
    "rules": "which rules were found?",
    "evidence": "which certificates are there?",
    "slices": "how large are the slices?",
    "hypotheses": "which hypotheses are in the ledger?",
    "compare": "compare with run {run}",
}
"""The kinds of question that have an answer without a language model, and how each can be put."""
MOST = 3
_NEXT: Mapping[str, tuple[str, ...]] = {
    "why": ("when", "through", "sure"),
    "when": ("responds", "covers", "flip"),
    "prediction": ("responds", "flip", "why"),
    "responds": ("reads", "prediction", "flip"),
    "reads": ("through", "responds", "why"),
    "writes": ("through", "reads", "why"),
    "through": ("reads", "versus", "verify"),
    "sure": ("mind", "weakest", "verify"),
    "rule": ("covers", "disguise", "flip"),
    "covers": ("disguise", "flip", "why"),
    "disguise": ("covers", "controls", "why"),
    "controls": ("verify", "mind", "weakest"),
    "why-not": ("missed", "how", "strongest"),
    "how": ("why", "missed", "verify"),
    "flip": ("verify", "when", "shared"),
    "shared": ("versus", "layer", "verify"),
    "versus": ("verify", "layer", "shared"),
    "layer": ("why", "missed", "shared"),
    "mind": ("controls", "weakest", "verify"),
    "verify": ("mind", "weakest", "why"),
    "weakest": ("mind", "controls", "missed"),
    "missed": ("layer", "weakest", "strongest"),
    "strongest": ("verify", "when", "versus"),
    "rank": ("versus", "why", "weakest"),
    "summary": ("why", "weakest", "missed"),
    "units": ("why", "rules", "weakest"),
    "rules": ("covers", "disguise", "units"),
}
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
                asked.append(ASKABLE[kind].format(**known))
            except KeyError:
                continue
        return tuple(asked[:most])


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
    return fill.fill([*_NEXT.get(kind, ()), *(other for other in _FIRST if other != kind)], MOST)


def _layers(unit: str | None, whole: set[int]) -> list[int]:
    own = [] if unit is None else [int(unit[1:].split(".")[0])]
    return [number for number in (*own, *sorted(whole)) if number in whole]


def _example(run: Run) -> str:
    """A question of the run's own task; one that is concealed only by its kind."""
    if run.task.concealed:
        return "a prompt of the task"
    return run.records[0].example.prompt.rstrip("\n").rsplit("\n", 1)[-1]
