"""Clauses that compete to be gates: learned on the find records of each unit, and those that somebody proposes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool

from mecharule_ops.findings.repair import ProposedGates
from mecharule_ops.pipeline.repair_material import Material, RepairRequest, prompt_predicates
from mecharule_ops.repair.learning import gate_clauses
from mecharule_ops.repair.proposing import GateProposer, Judged, Sheet, holds, judged
from mecharule_ops.repair.readings import Readings, predicates_of
from mecharule_ops.rules.algebra import Clause, lookup_in
from mecharule_ops.types import Neuron


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidate:
    """A clause of one unit, and where it holds on the find and choose records."""

    unit: Neuron
    clause: Clause
    fires: Bool[np.ndarray, " learn"]
    proposed: bool


@dataclass(slots=True, kw_only=True, eq=False)
class Offer:
    """Clauses of every unit, and what was said of those that were proposed."""

    candidates: list[Candidate] = field(default_factory=list)
    asked: list[Neuron] = field(default_factory=list)
    judged: list[Judged] = field(default_factory=list)

    def came_to(self, proposer: GateProposer, chosen: Sequence[int]) -> ProposedGates:
        """The counts; `chosen` are places among the candidates."""
        return ProposedGates(
            proposer=proposer.name,
            units=len(self.asked),
            proposed=len(self.judged),
            read=sum(one.read for one in self.judged),
            competing=sum(one.proposed for one in self.candidates),
            chosen=tuple(gate for gate, place in enumerate(chosen) if self.candidates[place].proposed),
            ended=proposer.ended,
        )


def offered(
    found: Material, request: RepairRequest, readings: Readings, proposer: GateProposer | None
) -> Offer:
    """Clauses learned on the find records, of every unit, and beside them those proposed from the same records."""
    learn, split = found.learn, len(found.find)
    prompt = prompt_predicates(found, readings, learn)
    good, offer = found.good[learn], Offer()
    for place, (unit, alone) in enumerate(zip(found.units, found.alone, strict=True)):
        table = predicates_of(readings, unit, prompt, np.arange(split))
        value = alone.astype(np.int64) - good
        clauses = gate_clauses(table.matrix[:split], table.texts, value[:split], request.learning)
        lookup = lookup_in(table.matrix, table.texts)
        offer.candidates += [
            Candidate(unit=unit, clause=one, fires=one.fires(lookup), proposed=False) for one in clauses
        ]
        if proposer is None or proposer.ended or place >= request.units:
            continue
        columns = readings.of(unit)
        sheet = Sheet(
            unit=unit,
            columns={name: column[:split] for name, column in columns.items()},
            before_answer=frozenset(readings.prompt),
            value=value[:split],
            learned=clauses,
            settings=request.learning,
        )
        results = judged(sheet, proposer.propose(sheet))
        offer.asked.append(unit)
        offer.judged.extend(results)
        offer.candidates += [
            Candidate(unit=unit, clause=one, fires=holds(one, columns), proposed=True)
            for result in results
            for one in result.clauses
        ]
    return offer
