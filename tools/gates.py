"""When to switch a found unit off: gates learned and tested now, or read where the run holds them, and exported."""

from __future__ import annotations

from pathlib import Path

from mecharule_ops.errors import UsageError
from mecharule_ops.gates.outcome import GatesAsked, LearnedGates
from mecharule_ops.numbers import signed
from mecharule_ops.report.as_text import text_of
from mecharule_ops.report.document import Document, Section, Table
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import check_direction, check_unit, findings_of, opened
from mecharule_ops.saying.answer_text import answer_text
from mecharule_ops.saying.gate_facts import gate_facts
from mecharule_ops.types import Basis, Neuron, Regime
from tools._ablations import accepted, price_words
from tools._tables import WIDTH
from tools.arguments import GatesArguments
from tools.registry import Tell, ToolResult


def gates(given: GatesArguments, tell: Tell) -> ToolResult:
    """The gates with their one test, which is kept in the run; what the run holds is read. That none helps is a result.

    Cost: `records` completions, and each unit and a random one on two thirds of them, said before they are run.
    """
    with opened(given.run, tell=tell) as run:
        # Torch and xgboost load here, after a wrong run was refused.
        from mecharule_ops.gates.exported import write_gates
        from mecharule_ops.gates.material import forwards
        from mecharule_ops.gates.testing import learn_gates, stored

        asked = asked_of(run, given)
        held = [one for one in stored(run) if one.asked == asked and not given.again]
        price = price_words(run, 0 if held else forwards(run, asked))
        words, identifier = run.task.words, run.id
        if given.estimate:
            return price.stated(identifier)
    if held:
        found = held[-1]
    else:
        accepted(price, given.yes, tell)
        with opened(given.run, write=True, tell=tell) as run:
            found = learn_gates(run, asked, tell)
    if given.export is not None:
        if not found.gates:
            raise UsageError(f"expected gates to export, run {identifier} holds none: {found.status.value}")
        with opened(given.run, tell=tell) as run:
            write_gates(run, found.gates, Path(given.export))
        tell(f"written: {given.export}; mecharule_ops.gates.exported.load_gates reads it")
    facts = tuple(gate_facts(found, words))
    table = gates_table(found)
    shown = Document(title="", sections=(Section(title="Gates", blocks=(table,)),))
    text = answer_text(facts) + (f"\n\n{text_of(shown, WIDTH).strip()}" if found.gates else "")
    return ToolResult(text=text, facts=facts, table=table)


def gates_table(found: LearnedGates) -> Table:
    """A row a gate, in the order in which they were chosen; counts are of the records that chose them."""
    rows = tuple(
        (str(one.unit), one.rule, str(one.fixed), str(one.broken), str(one.fired), signed(100 * one.gain))
        for one in found.gates
    )
    header = ("unit", "off where", "mended", "broken", "fires", "gain a hundred")
    return Table(header=header, rows=rows, align="llrrrr")


def asked_of(run: Run, given: GatesArguments) -> GatesAsked:
    """What the arguments ask of this run. Raises `UsageError` for a unit or basis that there is not."""
    from mecharule_ops.gates.material import found_units

    findings_of(run)
    unit = None if given.neuron is None else Neuron.parse(given.neuron)
    if unit is not None:
        check_unit(run, unit)
    if given.basis is not None and given.basis not in list(Basis):
        raise UsageError(f"expected a basis of {', '.join(Basis)}, got {given.basis!r}")
    basis = run.config.bases[0] if given.basis is None else Basis(given.basis)
    regime = mended_regime(run) if given.regime is None else Regime(int(given.regime))
    check_direction(run.id, regime, hidden=run.config.suppress_only)
    asked = GatesAsked(regime=regime, basis=unit.basis if unit else basis, unit=unit, records=given.records)
    if not found_units(run, asked):
        raise UsageError(
            f"expected units of {basis} that run {run.id} found to flip {regime.arrow}, there is none; name a unit, or "
            f"start a run with --regime {regime.value}"
        )
    return asked


def mended_regime(run: Run) -> Regime:
    """The outcome that is mended unless another is named: failures, or successes where those are harm."""
    return Regime(int(run.task.words.success_is_harm))
