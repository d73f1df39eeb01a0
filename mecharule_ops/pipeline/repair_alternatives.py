"""What could be done about the answers without these units, and decides what a repair shows.

Where the gates act, or where rules made the same way say so, the runner-up is written: at the generated position in
reach where the model's lead is least it writes its second-best token, and goes on greedily. A solver answers: trees
over the columns that the gates may read, without the units' own, learned from the find records' right answers. And
the whole repair is made of random units.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from mecharule_ops.findings.repair import Control, ControlKind
from mecharule_ops.pipeline.repair_free_form import features_of
from mecharule_ops.pipeline.repair_material import Material, RepairRequest, prompt_predicates
from mecharule_ops.pipeline.repair_testing import Tested, acted, beside
from mecharule_ops.repair.gates import Gate
from mecharule_ops.repair.readings import Readings, firing, predicates_of
from mecharule_ops.repair.solver import Solver, learned, sure_enough
from mecharule_ops.rules.families import Family


def runner_up_written(
    found: Material, request: RepairRequest, positions: Int[np.ndarray, " some"]
) -> Bool[np.ndarray, " some"]:
    """The wanted outcome of records on each of which the runner-up is written once; as it is where none is in reach.

    Cost: the clean run's leads, and a completion a record from there on.
    """
    leads = found.readings(request, positions, Family.CLEAN_RUN).leads
    assert leads is not None
    task, subject, records = found.run.task, found.run.subject, found.at(positions)
    lead, stop = leads.lead[:, :, 0], subject.stop_ids(task.stop)
    least = np.where(np.isfinite(lead), lead, np.inf)
    at = np.where(np.isfinite(least).any(1), least.argmin(1), -1)
    prompts = subject.encode([record.example.prompt for record in records])
    after = found.good[positions]
    for place in np.unique(at[at >= 0]).tolist():
        rows = np.flatnonzero(at == place)
        written = [(*records[row].tokens[:place], int(leads.token[row, place, 0])) for row in rows]
        going_on = [one for one, tokens in enumerate(written) if tokens[-1] not in stop]
        if place + 1 < task.max_new_tokens:
            begun = [prompts[rows[one]] + written[one] for one in going_on]
            more = subject.generate(begun, task.max_new_tokens - place - 1, stop).tokens
            for one, rest in zip(going_on, more, strict=True):
                written[one] += rest
        labels = [
            task.label(records[row].example, subject.decode(tokens))
            for row, tokens in zip(rows, written, strict=True)
        ]
        after[rows] = request.wanted(np.array(labels, bool))
    return after


def without_units(request: RepairRequest) -> RepairRequest:
    """The request as it is for who may not read the units' own columns."""
    return replace(request, family=Family.CLEAN_RUN) if request.family is Family.MECHANISM else request


def runner_up_material(found: Material, request: RepairRequest) -> Material:
    """The runner-up in the place of a unit: what writing it does to each find and choose record."""
    written = runner_up_written(found, request, found.learn)
    return replace(found, units=found.units[:1], alone=written[None])


def runner_up_controls(
    found: Material, request: RepairRequest, tested: Tested, rules: tuple[Gate, ...]
) -> tuple[Control, Control]:
    """The runner-up where the gates act, and where `rules` say so, which were chosen for it before."""
    written, before = runner_up_written(found, request, found.test), found.good[found.test]
    asked = without_units(request)
    fires: Bool[np.ndarray, " test"] = np.zeros(len(before), bool)
    if rules:
        fires = np.asarray(firing(rules, found.readings(asked, found.test)).any(axis=0))

    def line(kind: ControlKind, name: str, where: Bool[np.ndarray, " test"]) -> Control:
        return beside(found, tested, kind, name, np.where(where, written, before), where)

    return (
        line(ControlKind.RUNNER_UP, "", acted(tested.acts)),
        line(ControlKind.RUNNER_UP_RULES, f"{len(rules)} clause{'s' * (len(rules) != 1)}", fires),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReadySolver:
    """A solver before the test records are opened."""

    solver: Solver
    texts: tuple[str, ...]
    """Predicates that it reads, beside the numbers; cut on the find records."""
    least: float
    """How sure it must be to answer; the choose records chose it."""

    def controls(self, found: Material, request: RepairRequest, tested: Tested) -> tuple[Control, ...]:
        """Its answers where the gates act, and anywhere. Cost: no model call beyond the clean run's columns."""
        right, sure = self.outcomes(found, request, found.test)
        before = found.good[found.test]
        return tuple(
            beside(found, tested, kind, f"sure at {self.least:g}", np.where(where, right, before), where)
            for kind, where in (
                (ControlKind.SOLVER, (sure >= self.least) & acted(tested.acts)),
                (ControlKind.SOLVER_ALONE, sure >= self.least),
            )
        )

    def outcomes(
        self, found: Material, request: RepairRequest, positions: Int[np.ndarray, " some"]
    ) -> tuple[Bool[np.ndarray, " some"], Float[np.ndarray, " some"]]:
        """(the wanted outcome of each record under its answer, how sure it is)."""
        readings = found.readings(without_units(request), positions)
        said, sure = self.solver.answers(features_of(readings, found.units[0], self.texts))
        label = found.run.task.label
        labels = [label(one.example, text) for one, text in zip(found.at(positions), said, strict=True)]
        return request.wanted(np.array(labels, bool)), sure


def solver(found: Material, request: RepairRequest) -> ReadySolver | None:
    """A solver from the find records; None where answers are free texts, or none of another record ever fits.

    Cost: no model call beyond the clean run's columns.
    """
    asked = without_units(request)
    readings: Readings = found.readings(asked, found.learn)
    split = len(found.find)
    prompt = prompt_predicates(found, readings, found.learn)
    texts = predicates_of(readings, found.units[0], prompt, np.arange(split)).texts
    features = features_of(readings, found.units[0], texts)
    answers = right_answers(found, request)
    known = [place for place, answer in enumerate(answers) if answer is not None]
    made = (
        learned(features[known], [answers[one] or "" for one in known], found.run.config.seed)
        if known
        else None
    )
    if made is None:
        return None
    trial = ReadySolver(solver=made, texts=texts, least=0.0)
    right, sure = trial.outcomes(found, request, found.learn)
    good, harm = found.good[found.learn], request.learning.harm
    return replace(trial, least=sure_enough(sure[split:], right[split:], good[split:], harm))


def right_answers(found: Material, request: RepairRequest) -> list[str | None]:
    """An answer of the wanted outcome to each find record: its own, else the commonest of others that fits it too."""
    records, good = found.at(found.find), found.good[found.find]
    said = [record.completion.strip() for record in records]
    common = [text for text, _ in Counter(np.array(said, object)[good].tolist()).most_common()]
    wanted, label = not request.regime.value, found.run.task.label

    def fits(place: int, text: str) -> bool:
        return label(records[place].example, text) == wanted

    return [
        next((text for text in ([said[place]] if good[place] else common) if fits(place, text)), None)
        for place in range(len(records))
    ]
