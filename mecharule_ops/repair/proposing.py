"""Clauses that compete to be gates: learned on the find records of each unit, and proposed by somebody shown those.

Whoever proposes sees a `Sheet` of a unit and nothing else. What it writes becomes a candidate beside the learned
clauses only if it parses, reads columns that a gate may read, and fixes more of the find records than it breaks; the
choose records decide the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Int

from mecharule_ops.errors import MechaRuleError
from mecharule_ops.findings.repair_outcome import ProposedGates
from mecharule_ops.predicates.cuts import evaluated
from mecharule_ops.predicates.language import parse_predicate, schema_of
from mecharule_ops.repair.learning import GateSettings, gate_clauses
from mecharule_ops.repair.material import Material
from mecharule_ops.repair.readings import Readings, predicates_of
from mecharule_ops.rules.algebra import Clause, Condition, Rule, lookup_in
from mecharule_ops.types import Columns, Neuron


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sheet:
    """What is known of one unit from the find records."""

    unit: Neuron
    columns: Columns
    """What a gate of this unit may read, on the find records."""
    before_answer: frozenset[str]
    """Of the columns, those that are known before the model answers."""
    value: Int[np.ndarray, " find"]
    """+1 where ablating the unit fixes the answer, −1 where it breaks it, else 0."""
    learned: tuple[Clause, ...]
    settings: GateSettings

    def changed(self, fires: Bool[np.ndarray, " find"]) -> tuple[int, int]:
        """How many records are fixed and how many broken where it fires."""
        value = self.value[fires]
        return int((value > 0).sum()), int((value < 0).sum())

    def fires(self, clause: Clause) -> Bool[np.ndarray, " find"]:
        """Where it holds. Raises `PredicateRefused` on a column that there is not."""
        return holds(clause, self.columns)


def holds(clause: Clause, columns: Columns) -> Bool[np.ndarray, " record"]:
    """Where a clause holds over some columns. Raises `PredicateRefused`."""
    table = evaluated(sorted(clause.predicates), columns)
    return clause.fires(lookup_in(table.matrix, table.texts))


@runtime_checkable
class GateProposer(Protocol):
    """Whoever proposes gates, unit after unit, those that fix most first."""

    @property
    def name(self) -> str:
        """As it is reported."""
        ...

    @property
    def ended(self) -> str:
        """Why it proposes nothing more; empty while it does."""
        ...

    def propose(self, sheet: Sheet) -> Sequence[str]:
        """Clauses, or several joined by `or`, in the closed language. Never raises for want of an idea."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What became of one proposed text."""

    text: str
    clauses: tuple[Clause, ...] = ()
    """Those that may compete."""
    read: bool = False
    """Whether it is one of the language, over columns that there are."""
    reason: str = ""
    """Why nothing of it may compete; empty where something may."""


def judged(sheet: Sheet, texts: Sequence[str]) -> tuple[Judged, ...]:
    """Each text in turn, against the learned clauses and those before it. Cost: no model call."""
    known = {sheet.fires(clause).tobytes() for clause in sheet.learned}
    return tuple(_judged(sheet, text, known) for text in texts)


def _judged(sheet: Sheet, text: str, known: set[bytes]) -> Judged:
    try:
        clauses = [_canonical(clause, sheet.columns) for clause in Rule.parse(text).clauses]
        reasons = [_against(sheet, clause, known) for clause in clauses]
    except MechaRuleError as error:
        return Judged(text=text, reason=str(error))
    kept = tuple(clause for clause, reason in zip(clauses, reasons, strict=True) if not reason)
    return Judged(text=text, clauses=kept, read=True, reason="" if kept else "; ".join(reasons))


def _canonical(clause: Clause, columns: Columns) -> Clause:
    """The clause over predicates as the language prints them. Raises `PredicateRefused`."""
    schema = schema_of(columns)
    return Clause(
        tuple(Condition(parse_predicate(one.predicate, schema).text, one.value) for one in clause.conditions)
    )


def _against(sheet: Sheet, clause: Clause, known: set[bytes]) -> str:
    """What speaks against a clause on the find records; empty where nothing does, and then it is known."""
    settings, fires = sheet.settings, sheet.fires(clause)
    fixed, broken = sheet.changed(fires)
    if len(clause.conditions) > settings.max_literals:
        return f"{len(clause.conditions)} conditions, at most {settings.max_literals} are allowed"
    if fires.tobytes() in known:
        return "it holds where a clause holds that is known already"
    if fixed < settings.least_fixed or fixed <= settings.harm * broken:
        return (
            f"it fixes {fixed} and breaks {broken} of the find records; at least "
            f"{settings.least_fixed} fixed are asked, and more than {settings.harm:g} for each broken one"
        )
    known.add(fires.tobytes())
    return ""


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


def offered(found: Material, readings: Readings, proposer: GateProposer | None) -> Offer:
    """Clauses learned on the find records, of every unit, and beside them those proposed from the same records."""
    learn, split, request = found.learn, len(found.find), found.request
    prompt = found.predicates(readings, learn)
    good, offer = found.good[learn], Offer()
    for unit, alone in found.known.items():
        table = predicates_of(readings, unit, prompt, np.arange(split))
        value = alone.astype(np.int64) - good
        clauses = gate_clauses(table.on(np.arange(split)), value[:split], request.learning)
        lookup = lookup_in(table.matrix, table.texts)
        offer.candidates += [
            Candidate(unit=unit, clause=one, fires=one.fires(lookup), proposed=False) for one in clauses
        ]
        if proposer is None or proposer.ended or len(offer.asked) >= request.units:
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
