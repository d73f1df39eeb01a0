"""Where a unit flips: how often where a predicate holds, and how often where not, on train or held-out records."""

from __future__ import annotations

from mecharule_ops.codec import encode
from mecharule_ops.rules.interval import mcc_interval
from mecharule_ops.run.opening import findings_of, opened
from mecharule_ops.run.tabulating import Part, count_look, drawn, fires, flips_where, forwards_missing
from mecharule_ops.saying.fact import fact
from mecharule_ops.saying.flips_where import where_words
from mecharule_ops.types import Neuron
from tools._ablations import accepted, price_words
from tools._accounts import Asked
from tools.arguments import DirectedArguments, TabulateArguments
from tools.registry import Tell, ToolResult, stated


def tabulate(given: TabulateArguments, tell: Tell) -> ToolResult:
    """Counts on both sides of the predicate, from stored flips where there are any.

    A look at held-out records is counted in the run file and said. Raises `PredicateRefused` where the predicate does
    not read.
    """
    part, unit = Part(given.records), Neuron.parse(given.neuron)
    with opened(given.run) as run:
        findings_of(run)
        asked = Asked.of(run, DirectedArguments(run=given.run, neuron=given.neuron, regime=given.regime))
        fires(run, given.predicate)
        price = price_words(run, forwards_missing(run, (unit,), drawn(run, asked.regime, part)))
    if given.estimate:
        return price.stated(asked.findings.run)
    if price.example_forwards:
        accepted(price, given.yes, tell)
    held_out = part is Part.HELD_OUT
    with opened(given.run, write=held_out or bool(price.example_forwards), tell=tell) as run:
        looks = count_look(run, str(unit), given.predicate) if held_out else 0
        where = flips_where(run, (unit,), asked.regime, given.predicate, part)
        positions = drawn(run, asked.regime, part)
        flips = run.flips([(unit,)], positions, asked.regime)[0]
        interval = mcc_interval(fires(run, given.predicate)[positions], flips)
    told = f"{where_words(where)}, where {given.predicate} holds and where not"
    data = {
        **asked.data,
        "predicate": given.predicate,
        "records": part.value,
        "n": len(positions),
        "where": encode(where),
        "mcc": None if interval is None else encode(interval),
        "looks": looks,
        "price": price.data,
    }
    source = f"run:{asked.findings.run}"
    facts = [
        fact(f"{unit} flips {told}, of {len(positions):,} {part} records", source, unit=unit, kinds="when")
    ]
    if held_out:
        facts.append(fact(f"Looks at held-out flips of {unit} so far: {looks}", source, unit=unit))
    return stated(data, facts)
