"""Where a unit flips: how often where a predicate holds and how often where not, of the slices or of drawn records."""

from __future__ import annotations

from collections.abc import Mapping

from mecharule_ops.codec import encode
from mecharule_ops.errors import ClaimNotSupported
from mecharule_ops.numbers import percent
from mecharule_ops.predicates.type_check import PredicateRefused
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.rules.interval import mcc_interval
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
from mecharule_ops.saying.flips_where import where_words
from mecharule_ops.saying.looks import looks_words
from mecharule_ops.saying.properties import PROPERTIES, Property
from mecharule_ops.types import FlipCount, FlipsWhere, Neuron
from tools._ablations import accepted, price_words
from tools._accounts import Asked
from tools.arguments import TabulateArguments
from tools.registry import Tell, ToolResult, stated


def tabulate(given: TabulateArguments, tell: Tell) -> ToolResult:
    """Counts on both sides of the predicate: of the slices, from the unit's certificate, or of drawn records.

    Cost: one completion a record that has no stored outcome yet. Raises `ClaimNotSupported` for a predicate that the
    run's records cannot tell.
    """
    asked_for = PROPERTIES.get(given.predicate, Property.of(given.predicate))
    with opened(given.run) as run:
        findings_of(run)
        try:
            run.fires(asked_for.predicate)
        except PredicateRefused as refused:
            raise ClaimNotSupported(
                f"the records of this run cannot tell {given.predicate}: {refused}"
            ) from None
    return _certified(given, asked_for, tell) if given.records == "slices" else _drawn(given, asked_for, tell)


def _certified(given: TabulateArguments, asked_for: Property, tell: Tell) -> ToolResult:
    """Both counts on the records of both slices, from the unit's certificate."""
    with opened(given.run) as run:
        asked = Asked.of(run, given)
        holds = run.fires(asked_for.predicate)
        places = {record.example.id: place for place, record in enumerate(run.records)}
        found = find_certificate(run, (asked.neuron,), asked.regime)
        price = price_words(run, 0 if found else len(run.slices(asked.regime).positions))
    if given.estimate:
        return price.stated(asked.findings.run)
    if found is None:
        accepted(price, given.yes, tell)
        from mecharule_ops.run.certify import certificate_now

        found = certificate_now(given.run, (asked.neuron,), asked.regime, tell)
    counts = {True: [0, 0], False: [0, 0]}
    for row in found.rows:
        count = counts[bool(holds[places[row.example]])]
        count[0] += row.flipped
        count[1] += 1
    there, elsewhere = (FlipCount(flips=flips, n=n) for flips, n in (counts[True], counts[False]))
    data: Mapping[str, object] = {
        **asked.data,
        "predicate": asked_for.predicate,
        "holds": {"flips": there.flips, "n": there.n},
        "elsewhere": {"flips": elsewhere.flips, "n": elsewhere.n},
    }
    sources = (f"c:{found.id}", f"run:{asked.findings.run}")
    said = (
        f"Ablating {asked.neuron} alone flips {_of(there, asked_for.where)} and {_of(elsewhere, asked_for.elsewhere)} "
        f"({asked_for.predicate})"
    )
    chose = (
        "These records chose the unit, so no test of the difference is made on them; "
        f'`mecharule tabulate {asked.findings.run} {asked.neuron} "{given.predicate}" --records held-out` counts on '
        "records that chose nothing"
    )
    return stated(data, [fact(sentence, *sources, unit=asked.neuron) for sentence in (said, chose)])


def _of(count: FlipCount, what: str) -> str:
    share = f" ({percent(count.flip_rate)})" if count.n else ""
    return f"{count.flips} of {count.n} {what}{share}"


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
        if held_out:
            count_look(run, str(unit), asked.regime, str(Rule.parse(predicate)), "tabulate")
        looks = looks_words(run, str(unit), asked.regime)
        conditions = len({look["condition"] for look in looks_at(run, str(unit), asked.regime)})
        positions = drawn(run, asked.regime, part)
        flips = run.flips([(unit,)], positions, asked.regime)[0]
        holds = fires(run, predicate)[positions]
    where, interval = FlipsWhere.of(holds, flips), mcc_interval(holds, flips)
    told = f"{where_words(where)}, where {predicate} holds and where not"
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
    source = f"run:{asked.findings.run}"
    facts = [
        fact(f"{unit} flips {told}, of {len(positions):,} {part} records", source, unit=unit, kinds="when")
    ]
    if interval is not None:
        facts.append(fact(f"As a rule it would have MCC {interval} on them", source, unit=unit))
    if held_out:
        facts.append(fact(looks, source, unit=unit))
    return stated(data, facts)
