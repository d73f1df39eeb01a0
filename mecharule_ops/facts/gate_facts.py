"""What gates came to, in words: how many answers they mend for how many they break, and whether units were needed."""

from collections.abc import Iterator

from mecharule_ops import mcnemar, numbers, types
from mecharule_ops.facts.fact import About, Fact, FactValue
from mecharule_ops.gates.outcome import ControlKind, LearnedGates


def gate_facts(found: LearnedGates, words: types.OutcomeWords) -> Iterator[Fact]:
    """The one test, each control beside it, and what may be claimed."""
    of, status, result = About("gates", f"run:{found.run}"), found.status.value, found.test
    text = f"{status[0].upper()}{status[1:]}"
    if result is None:
        yield of.told("status", "gates.status.unopened", found.status.name, status=text)
        return
    shares = {"after": result.after / result.n, "before": result.before / result.n}
    parts = {name: numbers.percent(share) for name, share in shares.items()}
    parts["units"] = ", ".join(dict.fromkeys(str(gate.unit) for gate in found.gates))
    parts["records"] = numbers.plural(result.n, f"{'fresh' if found.fresh else 'held-out'} record")
    parts["wanted"] = words.of(found.asked.regime is types.Regime.BASELINE_NEGATIVE)
    parts["points"] = points_words(result)
    proof = (f"c:{one}" for one in found.certificates)
    yield of.told("test", "gates.test", _value(result), *proof, of.source, r=result, **parts)
    yield of("status", text, found.status.name)
    for one in found.controls:
        value = {"result": _value(one.result), "ahead": _value(one.ahead)}
        said = {"points": points_words(one.result), "ahead": points_words(one.ahead)}
        yield of.told(f"control.{one.kind.name.lower()}", "gates.control", value, kind=one.kind.value, **said)
    beaten = [one.ahead.interval[0] > 0 for one in found.controls if one.kind is not ControlKind.RANDOM]
    needed = result.interval[0] > 0 and all(beaten)
    yield of.told("units_needed", f"gates.units_needed{'' if needed else '.not'}", needed)


def points_words(result: mcnemar.Paired) -> str:
    """`+2.9 points [+2.1, +3.7]`."""
    low, high = result.interval
    return f"{numbers.signed(result.points)} points [{numbers.signed(low)}, {numbers.signed(high)}]"


def _value(result: mcnemar.Paired) -> FactValue:
    low, high = result.interval
    return {
        **{"n": result.n, "before": result.before, "fixed": result.fixed, "broken": result.broken},
        **{"acted": result.acted, "low": low, "high": high, "p": result.p_value},
    }
