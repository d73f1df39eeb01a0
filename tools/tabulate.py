"""Where a unit flips: how often where a predicate holds and how often where not, of the slices or of drawn records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mecharule_ops.codec import encode
from mecharule_ops.errors import ClaimNotSupported
from mecharule_ops.numbers import percent
from mecharule_ops.predicates.type_check import PredicateRefused
from mecharule_ops.questions.own_words import few_valued
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.rules.in_words import rule_in_words
from mecharule_ops.rules.interval import mcc_interval
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import find_certificate, findings_of, opened
from mecharule_ops.run.tabulating import (
    Part,
    count_look,
    drawn,
    fires,
    forwards_missing,
    looks_at,
)
from mecharule_ops.saying.fact import fact
from mecharule_ops.saying.looks import looks_words
from mecharule_ops.saying.properties import PROPERTIES, Property
from mecharule_ops.types import FlipCount, FlipsWhere, Neuron
from tools._ablations import accepted, price_words
from tools._accounts import Asked
from tools.arguments import TabulateArguments
from tools.registry import Tell, ToolResult, stated


def tabulate(given: TabulateArguments, tell: Tell) -> ToolResult:
    """Counts on both sides of the predicate: of the slices, from the unit's certificate, or of drawn records.

    A column of few values may stand in place of a predicate: then each value is counted. Cost: one completion a record
    that has no stored outcome yet. Raises `ClaimNotSupported` for a predicate that the run's records cannot tell.
    """
    with opened(given.run) as run:
        findings_of(run)
        asked_for = PROPERTIES.get(given.predicate)
        predicate = asked_for.predicate if asked_for else given.predicate
        is_column = predicate in few_valued(run)
        try:
            run.fires(f"{predicate} == {predicate}" if is_column else predicate)
        except PredicateRefused as refused:
            raise ClaimNotSupported(
                f"the records of this run cannot tell {given.predicate}: {refused}"
            ) from None
        words = predicate if is_column else rule_in_words(predicate, run.task)
        asked_for = asked_for or Property.of(predicate, words)
    return _certified(given, asked_for, tell) if given.records == "slices" else _drawn(given, asked_for, tell)


def _by_value(run: Run, column: str, positions: Sequence[int], flips: np.ndarray) -> dict[str, FlipCount]:
    """Flips among the records of each value of the column, those that flip most first."""
    values = run.observed.columns[column][positions]
    counts = {
        str(value): FlipCount(flips=int(flips[values == value].sum()), n=int((values == value).sum()))
        for value in few_valued(run)[column]
    }
    return dict(sorted(counts.items(), key=lambda each: (-each[1].flip_rate if each[1].n else 0.0, each[0])))


def _values_words(unit: Neuron, column: str, counts: Mapping[str, FlipCount]) -> str:
    said = ", ".join(f"{value}: {_of(count, '')}" for value, count in counts.items())
    return f"Flips of {unit} by {column}: {said}"


def _certified(given: TabulateArguments, asked_for: Property, tell: Tell) -> ToolResult:
    """The counts on the records of both slices, from the unit's certificate."""
    with opened(given.run) as run:
        asked = Asked.of(run, given)
        found = find_certificate(run, (asked.neuron,), asked.regime)
        price = price_words(run, 0 if found else len(run.slices(asked.regime).positions))
    if given.estimate:
        return price.stated(asked.findings.run)
    if found is None:
        accepted(price, given.yes, tell)
        from mecharule_ops.run.certify import certificate_now

        found = certificate_now(given.run, (asked.neuron,), asked.regime, tell)
    with opened(given.run) as run:
        may_be_drawn = True
        places = {record.example.id: place for place, record in enumerate(run.records)}
        positions = [places[row.example] for row in found.rows]
        flips = np.array([row.flipped for row in found.rows])
        if given.predicate in few_valued(run):
            counts = _by_value(run, given.predicate, positions, flips)
            data: dict[str, object] = {"by": {value: encode(count) for value, count in counts.items()}}
            said = _values_words(asked.neuron, given.predicate, counts)
        else:
            where = FlipsWhere.of(run.fires(asked_for.predicate)[positions], flips)
            data = {
                "holds": {"flips": where.holds.flips, "n": where.holds.n},
                "elsewhere": {"flips": where.elsewhere.flips, "n": where.elsewhere.n},
            }
            said = f"Ablating {asked.neuron} alone flips {_sides(where, asked_for)}"
            if not where.holds.n:
                said, may_be_drawn = _untried(run, asked, asked_for, len(flips))
    sources = (f"c:{found.id}", f"run:{asked.findings.run}")
    chose = (
        "These records chose the unit, so no test of the difference is made on them; "
        f'`mecharule tabulate {asked.findings.run} {asked.neuron} "{given.predicate}" --records held-out` counts on '
        "records that chose nothing"
    )
    return stated(
        {**asked.data, "predicate": asked_for.predicate, **data},
        [
            fact(said, *sources, unit=asked.neuron),
            *([fact(chose, *sources, unit=asked.neuron, kinds="property counted")] if may_be_drawn else []),
        ],
    )


def _untried(run: Run, asked: Asked, asked_for: Property, tried: int) -> tuple[str, bool]:
    """Why no ablated record is one where the predicate holds: none was drawn, or none is there to be (False)."""
    holds = run.fires(asked_for.predicate)
    label = bool(asked.regime.value)
    fit = sum(record.label == label for record, fires in zip(run.records, holds, strict=True) if fires)
    if fit:
        answers = f"{tried} answers that {asked.neuron} was tried on"
        return f"None of the {answers} is one of the {asked_for.where}, so nothing is known of them", True
    if not holds.any():
        return f"The run has no records of that kind: {asked_for.predicate}", False
    words = run.task.words
    so = f"{words.of(label)} unablated, so without {asked.neuron} none can turn {words.of(not label)}"
    return f"Of the {asked_for.where}, {int(holds.sum())} in this run, none is {so}", False


def _sides(where: FlipsWhere, asked_for: Property) -> str:
    there, elsewhere = _of(where.holds, asked_for.where), _of(where.elsewhere, asked_for.elsewhere)
    return f"{there} and {elsewhere} ({asked_for.predicate})"


def _of(count: FlipCount, what: str) -> str:
    counted = f"{count.flips} of {count.n} {what}".strip()
    return f"{counted} ({percent(count.flip_rate)})" if count.n else counted


def _drawn(given: TabulateArguments, asked_for: Property, tell: Tell) -> ToolResult:
    """The same on train or held-out records, from stored flips; a look at held-out ones is counted and said."""
    part, unit, predicate = Part(given.records), Neuron.parse(given.neuron), asked_for.predicate
    with opened(given.run) as run:
        asked = Asked.of(run, given)
        price = price_words(run, forwards_missing(run, (unit,), drawn(run, asked.regime, part)))
    if given.estimate:
        return price.stated(asked.findings.run)
    if price.example_forwards:
        accepted(price, given.yes, tell)
    held_out = part is Part.HELD_OUT
    with opened(given.run, write=held_out or bool(price.example_forwards), tell=tell) as run:
        is_column = predicate in few_valued(run)
        if held_out:
            looked = predicate if is_column else str(Rule.parse(predicate))
            count_look(run, str(unit), asked.regime, looked, "tabulate")
        looks = looks_words(run, str(unit), asked.regime)
        conditions = len({look["condition"] for look in looks_at(run, str(unit), asked.regime)})
        positions = drawn(run, asked.regime, part)
        flips = run.flips([(unit,)], positions, asked.regime)[0]
        if is_column:
            counts = _by_value(run, predicate, positions.tolist(), flips)
        else:
            holds = fires(run, predicate)[positions]
    source = f"run:{asked.findings.run}"
    of_look = [fact(looks, source, unit=unit)] if held_out else []
    if is_column:
        by = {value: encode(count) for value, count in counts.items()}
        said = f"{_values_words(unit, predicate, counts)}, of {len(positions):,} {part} records"
        return stated(
            {**asked.data, "predicate": predicate, "records": part.value, "by": by, "price": price.data},
            [fact(said, source, unit=unit), *of_look],
        )
    where, interval = FlipsWhere.of(holds, flips), mcc_interval(holds, flips)
    told = f"{unit} flips {_sides(where, asked_for)}, of {len(positions):,} {part} records"
    data = {
        **asked.data,
        "predicate": predicate,
        "records": part.value,
        "n": len(positions),
        "where": encode(where),
        "mcc": None if interval is None else encode(interval),
        "looks": conditions,
        "price": price.data,
    }
    facts = [fact(told, source, unit=unit)]
    if interval is not None:
        facts.append(fact(f"As a rule it would have MCC {interval} on them", source, unit=unit))
    return stated(data, [*facts, *of_look])
