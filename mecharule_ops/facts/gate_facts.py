"""What gates came to, in words: how many answers they mend for how many they break, and whether units were needed."""

from __future__ import annotations

from collections.abc import Iterator

from mecharule_ops.facts.fact import Fact, FactValue, fact
from mecharule_ops.gates.outcome import ControlKind, LearnedGates
from mecharule_ops.mcnemar import Paired
from mecharule_ops.numbers import percent, plural, signed
from mecharule_ops.types import OutcomeWords, Regime


def gate_facts(found: LearnedGates, words: OutcomeWords) -> Iterator[Fact]:
    """The one test, each control beside it, and what may be claimed."""
    source, status = f"run:{found.run}", found.status.value
    wanted, result = words.of(found.asked.regime is Regime.BASELINE_NEGATIVE), found.test
    sources = (*(f"c:{one}" for one in found.certificates), source)
    if result is None:
        said = f"{status[0].upper()}{status[1:]}; the test records were not opened"
        yield fact(said, source, key="gates.status", value=found.status.name)
        return
    units = ", ".join(dict.fromkeys(str(gate.unit) for gate in found.gates))
    records = plural(result.n, f"{'fresh' if found.fresh else 'held-out'} record")
    yield fact(
        f"With {units} off where a gate fires, {percent(result.after / result.n)} of {records} are {wanted}, "
        f"{percent(result.before / result.n)} without: {changed_words(result)}, {points_words(result)}",
        *sources,
        key="gates.test",
        value=_value(result),
    )
    yield fact(f"{status[0].upper()}{status[1:]}", source, key="gates.status", value=found.status.name)
    for one in found.controls:
        yield fact(
            f"Beside them, {one.kind.value}: {points_words(one.result)}; the gates are ahead by "
            f"{points_words(one.ahead)}",
            source,
            key=f"gates.control.{one.kind.name.lower()}",
            value={"result": _value(one.result), "ahead": _value(one.ahead)},
        )
    beaten = [one.ahead.interval[0] > 0 for one in found.controls if one.kind is not ControlKind.RANDOM]
    needed = result.interval[0] > 0 and all(beaten)
    yield fact(
        "They do more than what was tried without units"
        if needed
        else "So it is not shown that a unit is needed for what they mend",
        source,
        key="gates.units_needed",
        value=needed,
    )


def points_words(result: Paired) -> str:
    """`+2.9 points [+2.1, +3.7]`."""
    low, high = result.interval
    return f"{signed(result.points)} points [{signed(low)}, {signed(high)}]"


def changed_words(result: Paired) -> str:
    """`110 mended, 23 broken`."""
    return f"{result.fixed:,} mended, {result.broken:,} broken"


def _value(result: Paired) -> FactValue:
    low, high = result.interval
    return {
        **{"n": result.n, "before": result.before, "fixed": result.fixed, "broken": result.broken},
        **{"acted": result.acted, "low": low, "high": high, "p": result.p_value},
    }
