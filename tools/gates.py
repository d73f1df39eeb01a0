"""When to switch a found unit off: gates learned and tested now, or read where the run holds them, and exported."""

from collections.abc import Iterator
from pathlib import Path

from mecharule_ops import codec, numbers, types
from mecharule_ops.errors import UsageError
from mecharule_ops.facts.fact import Fact
from mecharule_ops.facts.gate_facts import gate_facts
from mecharule_ops.gates.outcome import GatesAsked, LearnedGates
from mecharule_ops.run import live_run, opening
from tools import arguments, result


def gates(run: live_run.Run, given: arguments.GatesArguments, tell: result.Tell) -> result.Priced:
    """The gates with their one test, kept in the run; what the run holds is read. That none helps is a result.

    Cost: `records` completions, and each unit and a random one on two thirds of them; nothing where the run holds them.
    """
    from mecharule_ops.gates import material

    asked = _asked(run, given)
    # Torch and xgboost load here, after a wrong run was refused.
    from mecharule_ops.gates import exported, testing

    held = [one for one in testing.stored(run) if one.asked == asked and not given.again]
    yield 0 if held else material.forwards(run, asked)
    found = held[-1] if held else testing.learn_gates(run, asked, tell)
    if given.export is not None:
        if not found.gates:
            raise UsageError(f"expected gates to export, run {run.id} holds none: {found.status.value}")
        exported.write_gates(run, found.gates, Path(given.export))
        tell(f"written: {given.export}; mecharule_ops.gates.exported.gated_answers reads it")
    return result.of_facts([*gate_facts(found, run.task.words), *_each(found)])


def _each(found: LearnedGates) -> Iterator[Fact]:
    """A fact a gate, in the order in which they were chosen; counts are of the records that chose them."""
    for number, one in enumerate(found.gates, 1):
        of, gain = result.About("gates", f"run:{found.run}", one.unit), numbers.signed(100 * one.gain)
        yield of.told(f"{number}", "gates.one", codec.encode(one), gate=one, points=gain)


def _asked(run: live_run.Run, given: arguments.GatesArguments) -> GatesAsked:
    """What the arguments ask of this run. Raises `UsageError` for a unit or basis that there is not."""
    from mecharule_ops.gates.material import offered_units

    opening.findings_of(run)
    if run.config.given:
        raise UsageError(f"expected a run of the whole model to learn gates, {run.id} is without some units")
    unit = None if given.neuron is None else types.Neuron.parse(given.neuron)
    if unit is not None:
        opening.check_unit(run, unit)
    basis = unit.basis if unit else run.config.bases[0] if given.basis is None else types.Basis(given.basis)
    # Failures are mended unless another outcome is named, or successes where those are harm.
    regime = types.Regime(int(run.task.words.success_is_harm) if given.regime is None else int(given.regime))
    asked = GatesAsked(regime=regime, basis=basis, unit=unit, records=given.records)
    if not offered_units(run, asked):
        raise UsageError(
            f"expected units of {basis} that run {run.id} found to flip {regime.arrow}, there is none; name a unit, or "
            f"start a run with --regime {regime.value}"
        )
    return asked
