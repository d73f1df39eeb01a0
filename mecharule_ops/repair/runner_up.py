"""The runner-up written in the place of an ablation: what could be done about the answers without these units.

Where the gates act, or where rules made the same way say so, at the generated position in reach where the model's
lead is least it writes its second-best token, and goes on greedily. It decides what a repair shows, as a solver does.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Int

from mecharule_ops.findings.repair_outcome import ControlKind, Gate, RepairControl
from mecharule_ops.numbers import plural
from mecharule_ops.repair.material import Material
from mecharule_ops.repair.readings import firing
from mecharule_ops.repair.testing import Tested, acted
from mecharule_ops.rules.families import Family


def runner_up_written(found: Material, positions: Int[np.ndarray, " some"]) -> Bool[np.ndarray, " some"]:
    """The wanted outcome of records on each of which the runner-up is written once; as it is where none is in reach.

    Cost: the clean run's leads, and a completion a record from there on.
    """
    leads = found.readings(positions, Family.CLEAN_RUN).leads
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
        after[rows] = found.answered([records[row] for row in rows], list(map(subject.decode, written)))
    return after


def runner_up_material(given: Material) -> Material:
    """The runner-up in the place of a unit: what writing it does to each find and choose record."""
    found = given.without_units
    return replace(found, units=found.units[:1], alone=runner_up_written(found, found.learn)[None])


def runner_up_controls(tested: Tested, rules: tuple[Gate, ...]) -> tuple[RepairControl, RepairControl]:
    """The runner-up where the gates act, and where `rules` say so, which were chosen for it before."""
    found = tested.found.without_units
    written, before = runner_up_written(found, found.test), found.good[found.test]
    fires: Bool[np.ndarray, " test"] = np.zeros(len(before), bool)
    if rules:
        fires = np.asarray(firing(rules, found.readings(found.test)).any(axis=0))

    def line(kind: ControlKind, name: str, where: Bool[np.ndarray, " test"]) -> RepairControl:
        return tested.beside(kind, name, np.where(where, written, before), where)

    return (
        line(ControlKind.RUNNER_UP, "", acted(tested.acts)),
        line(ControlKind.RUNNER_UP_RULES, plural(len(rules), "clause"), fires),
    )
