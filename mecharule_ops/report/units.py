"""Localized units as blocks of a report: the τ-agonists with their evidence, then those not ruled out."""

from __future__ import annotations

from dataclasses import replace

from mecharule_ops.findings.controls import depends_on_baseline
from mecharule_ops.findings.records import AgonistControls, Findings, SearchOutcome
from mecharule_ops.report import tables
from mecharule_ops.report.document import Block, k_of_n, plural, signed
from mecharule_ops.report.prose import both_slices, by_strength, control_word, is_risk, stronger_slice
from mecharule_ops.report.rule_lines import is_told, rule_line, untold_sentence
from mecharule_ops.types import Agonist

AGONIST_KEY = (
    "Strength is the larger of the "
    "two flip rates, with its lower and upper bound; selectivity is the rate on D+ less that on D-. Verdicts "
    "of the controls: supported – strength ≥ τ by its lower bound, told apart from random units of the layer, "
    "and flips that follow the split; not selective – strong, but the two slices differ by less than ε or a "
    "fake rule's split differs as much; control also flips – random units of the layer reach τ themselves; "
    "underpowered – these examples cannot decide. A fake rule is one learned from permuted targets."
)


def strong_blocks(findings: Findings, outcome: SearchOutcome, name: str) -> tuple[Block, ...]:
    """The τ-agonists of a search, strongest first, each with its controls and its rule under it."""
    strong = by_strength(outcome.tau_agonists)
    notes = tuple(
        (_control_line(findings, outcome, agonist), rule_line(findings, outcome, agonist))
        for agonist in strong
    )
    table = replace(tables.unit_table(findings, outcome, strong), notes=notes)
    risk = ", a risk" if is_risk(findings, outcome) else ""
    return (f"{name}: {plural(len(strong), 'τ-agonist')}{risk}, strongest first.", table)


def weak_blocks(findings: Findings, outcome: SearchOutcome, most: int) -> tuple[Block, ...]:
    """The units that are localized only: at most `most` rows, then how many more there are."""
    weak = [agonist for agonist in by_strength(outcome.agonists) if not agonist.is_tau_agonist]
    if not weak:
        return ()
    shown, hidden = weak[:most], weak[most:]
    notes = tuple(
        (rule_line(findings, outcome, agonist),) if is_told(outcome, agonist) else () for agonist in shown
    )
    table = tables.unit_table(findings, outcome, shown)
    uncontrolled = replace(
        table,
        header=table.header[:-1],
        rows=tuple(row[:-1] for row in table.rows),
        align=table.align[:-1],
        notes=notes,
    )
    blocks: list[Block] = [_not_ruled_out(findings, weak), uncontrolled]
    if hidden:
        ruled = sum(is_told(outcome, agonist) for agonist in hidden)
        told = f", {ruled} of them with a rule (`mecharule rules {findings.run}`)" if ruled else ""
        blocks.append(f"… and {len(hidden):,} more (`mecharule neurons {findings.run}`){told}.")
    blocks.append(untold_sentence(outcome, weak))
    return tuple(block for block in blocks if block)


def _not_ruled_out(findings: Findings, weak: list[Agonist]) -> str:
    """How little it takes to stand in this table."""
    count, weakest = len(weak), weak[-1]
    these = f"{plural(count, 'unit')} {'is' if count == 1 else 'are'} not ruled out"
    return (
        f"{these}: the upper bound reaches τ = {findings.tau:g}, the point estimate does not. Few flips suffice "
        f"for that, {stronger_slice(weakest.estimate)} for {weakest.neuron}, so a place in this table is no "
        "evidence of an effect, and no control is run beside it."
    )


def _control_line(findings: Findings, outcome: SearchOutcome, agonist: Agonist) -> str:
    ran = outcome.controls_of(agonist.neuron)
    word = control_word(findings, outcome, agonist)
    if ran is None:
        return "Controls: none was run."
    return f"Controls: {word}. {'; '.join(_control_parts(ran, agonist, findings.tau))}."


def _control_parts(ran: AgonistControls, agonist: Agonist, tau: float) -> list[str]:
    parts = ["No random unit was ablated"]
    if ran.random is not None:
        units = plural(ran.random_units, "random unit")
        parts = [f"{units} of layer {agonist.neuron.layer} flip {both_slices(ran.random)}"]
    if ran.fake_split is not None:
        parts.append(f"selectivity on a fake rule's split {signed(ran.fake_split.signed_selectivity)}")
    if ran.second is not None:
        below = ", below τ: the effect depends on the baseline" if depends_on_baseline(ran, tau) else ""
        parts.append(f"with baseline {ran.second_baseline} it flips {both_slices(ran.second)}{below}")
    if ran.out_of_range is not None:
        parts.append(f"{k_of_n(ran.out_of_range)} of its replaced values are out of range")
    return parts
