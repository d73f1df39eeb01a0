"""Localized units as blocks of a report: the τ-agonists with their controls and rules, then those not ruled out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mecharule_ops.findings.records import Findings, SearchOutcome, Unit
from mecharule_ops.numbers import plural, sentence
from mecharule_ops.report import tables
from mecharule_ops.report.document import Block
from mecharule_ops.saying.accounts import brief_account
from mecharule_ops.saying.controls import CONTROLS_KEY, control_parts
from mecharule_ops.saying.flips import stronger_slice
from mecharule_ops.saying.rules import is_told, rule_line, untold_sentence
from mecharule_ops.saying.searches import is_risk

AGONIST_KEY = (
    "Flips are counted on these slices. Strength is the larger of the two rates, between its lower bound, which holds "
    "over both slices of all units searched at once, and the search's upper one. They speak of D+ and D- where the "
    "slices were drawn at random and of nothing beyond them elsewhere; selectivity is the rate on D+ less that on D-. "
    f"{CONTROLS_KEY}"
)


def strong_blocks(findings: Findings, outcome: SearchOutcome, name: str) -> tuple[Block, ...]:
    """The τ-agonists of a search, strongest first, each with its controls and its rule under it."""
    strong = [unit for unit in findings.units_of(outcome) if unit.is_tau_agonist]
    notes = tuple((_control_line(findings, unit), _rule_line(findings, unit)) for unit in strong)
    bars = tuple(unit.estimate.strength for unit in strong)
    table = replace(tables.unit_table(strong), notes=notes, bars=bars)
    risk = ", a risk" if is_risk(findings, outcome) else ""
    return (f"{name}: {plural(len(strong), 'τ-agonist')}{risk}, strongest first.", table)


def weak_blocks(findings: Findings, outcome: SearchOutcome, most: int) -> tuple[Block, ...]:
    """The units that are localized only: at most `most` rows, then how many more there are."""
    weak = [unit for unit in findings.units_of(outcome) if not unit.is_tau_agonist]
    if not weak:
        return ()
    shown, hidden = weak[:most], weak[most:]
    notes = tuple((rule_line(findings, unit.rule),) if is_told(unit) else () for unit in shown)
    table = tables.unit_table(shown)
    uncontrolled = replace(
        table,
        header=table.header[:-2],
        rows=tuple(row[:-2] for row in table.rows),
        align=table.align[:-2],
        notes=notes,
    )
    blocks: list[Block] = [_not_ruled_out(findings, outcome, weak), uncontrolled]
    if hidden:
        ruled = sum(map(is_told, hidden))
        told = f", {ruled} of them with a rule (`mecharule rules {findings.run}`)" if ruled else ""
        blocks.append(f"… and {len(hidden):,} more (`mecharule neurons {findings.run}`){told}.")
    blocks.append(untold_sentence(weak))
    return tuple(block for block in blocks if block)


def _not_ruled_out(findings: Findings, outcome: SearchOutcome, weak: Sequence[Unit]) -> str:
    """How little it takes to stand in this table."""
    count, weakest = len(weak), weak[-1]
    these = f"{plural(count, 'unit')} {'is' if count == 1 else 'are'} not ruled out"
    few = stronger_slice(weakest.estimate, findings.tau, outcome.bounded)
    return (
        f"{these}: the upper bound reaches τ = {findings.tau:g}, the point estimate does not. Few flips suffice "
        f"for that, {few} for {weakest.neuron}, so a place in this table is "
        "no evidence of an effect, and no control is run beside it."
    )


def _rule_line(findings: Findings, unit: Unit) -> str:
    """Its account in short, which has a section of its own; without one its anchored rule."""
    return rule_line(findings, unit.rule) if unit.account is None else sentence(brief_account(unit.account))


def _control_line(findings: Findings, unit: Unit) -> str:
    if unit.controls is None:
        return "Controls: none was run."
    return f"Controls: {sentence('; '.join(control_parts(unit.controls, unit.estimate, findings.tau)))}"
