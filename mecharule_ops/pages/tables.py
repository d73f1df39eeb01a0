"""Units, rules and searches of a report as tables of cells, and the units with what is said of each.

Paper, §5 and §6, with counts beside every share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mecharule_ops.facts.account_facts import brief_account
from mecharule_ops.facts.control_facts import CONTROLS_KEY, control_parts
from mecharule_ops.facts.flips import unit_flips
from mecharule_ops.facts.rules import clipped, rule_line, worded
from mecharule_ops.facts.searches import is_risk, search_names
from mecharule_ops.facts.shown_units import (
    NOT_SHOWN,
    SHOWN_KEY,
    evidence_words,
    marked,
    reached_words,
    unshowable,
)
from mecharule_ops.findings.records import Findings, SearchOutcome, Unit
from mecharule_ops.numbers import k_of_n, plural, sentence
from mecharule_ops.pages.document import Block, Column, Table
from mecharule_ops.pages.rows import RuleRow, UnitRow, rule_rows, unit_row


def overview(findings: Findings) -> Table:
    """A row a search: units, anchored rules and union coverage; both flip directions side by side."""
    columns: tuple[Column[tuple[str, SearchOutcome]], ...] = (
        ("search", "l", lambda row: row[0]),
        ("units", "r", lambda row: f"{row[1].cost.candidates:,}"),
        ("localized", "r", lambda row: f"{len(row[1].agonists):,}"),
        ("shown", "r", lambda row: f"{len(findings.shown_of(row[1])):,}"),
        ("HQ-T", "r", lambda row: str(sum(map(findings.is_hq_t, row[1].anchored)))),
        ("HQ-F", "r", lambda row: str(sum(map(findings.is_hq_f, row[1].anchored)))),
        ("union flips", "r", lambda row: k_of_n(row[1].union)),
        ("drawn union", "r", lambda row: k_of_n(row[1].drawn_union)),
    )
    return Table.of(zip(search_names(findings), findings.searches, strict=True), columns)


def told_layers(findings: Findings, outcome: SearchOutcome) -> set[int]:
    """Layers with a localized unit or whose joint ablation reaches τ."""
    reach = {whole.layer for whole in outcome.whole_layers if findings.reaches(whole.estimate)}
    return reach | {agonist.neuron.layer for agonist in outcome.agonists}


def layers(findings: Findings, outcome: SearchOutcome) -> Table:
    """A row a layer that has something to tell: its units, the whole layer's flips, its union coverage."""
    whole = {layer.layer: layer.estimate for layer in outcome.whole_layers}
    cover = {layer.layer: layer.flipped for layer in outcome.layer_union}
    columns: tuple[Column[int], ...] = (
        ("layer", "r", str),
        ("localized", "r", lambda layer: str(sum(unit.neuron.layer == layer for unit in outcome.agonists))),
        (
            "τ-agonists",
            "r",
            lambda layer: str(sum(unit.neuron.layer == layer for unit in outcome.tau_agonists)),
        ),
        ("whole layer, D+", "r", lambda layer: k_of_n(whole[layer].associated if layer in whole else None)),
        ("whole layer, D-", "r", lambda layer: k_of_n(whole[layer].unrelated if layer in whole else None)),
        ("union flips, all", "r", lambda layer: k_of_n(cover.get(layer))),
    )
    return Table.of(sorted(told_layers(findings, outcome)), columns)


def learned(findings: Findings, outcome: SearchOutcome) -> Table:
    """The rules of a search that were learned, shown or not, with their texts underneath."""
    told = [row for row in rule_rows(findings, outcome) if row.learned]
    table = Table.of_rows(RuleRow, told, ("unit", "family", "shown", "held-out MCC"))
    notes = tuple((worded(clipped(str(row.learned), findings.run), row.in_words),) for row in told)
    return replace(table, notes=notes)


def _units(units: Sequence[Unit], *only: str) -> Table:
    return Table.of_rows(
        UnitRow, [unit_row(unit) for unit in units], ("unit", "flips D+", "flips D-", "strength", *only)
    )


def _strong(units: Sequence[Unit]) -> Table:
    """Each with the mark of how sure it is and what the controls show."""
    table = _units(units, "kept aside", "above random units", "selective")
    return replace(
        table, rows=tuple((marked(unit), *row[1:]) for unit, row in zip(units, table.rows, strict=True))
    )


AGONIST_KEY = (
    "Flips are counted on these slices. Strength is the larger of the two rates, between its lower bound, which holds "
    "over both slices of all units searched at once, and the search's upper one. They speak of D+ and D- where the "
    "slices were drawn at random and of nothing beyond them elsewhere; selectivity is the rate on D+ less that on D-. "
    f"{SHOWN_KEY} {CONTROLS_KEY}"
)


def strong_blocks(findings: Findings, outcome: SearchOutcome, name: str) -> tuple[Block, ...]:
    """The shown units of a search by rank, each with its controls and its rule under it; then the other τ-agonists."""
    shown = findings.shown_of(outcome)
    others = [unit for unit in findings.units_of(outcome) if unit.is_tau_agonist and not unit.is_shown]
    risk = ", a risk" if is_risk(findings, outcome) else ""
    blocks: list[Block] = []
    if shown:
        notes = tuple(_told_of(findings, unit) for unit in shown)
        bars = tuple(unit.estimate.strength for unit in shown)
        table = replace(_strong(shown), notes=notes, bars=bars)
        blocks += [
            f"{name}: {plural(len(shown), 'unit')} shown{risk}, by the lower bound of what it flips.",
            table,
        ]
    if others:
        why = unshowable(findings, outcome) or f"{NOT_SHOWN}, in the order of their names"
        reached = reached_words(findings, outcome, len(others), "more " if shown else "")
        blocks += [
            f"{name}{risk}: {reached}, {why}.",
            _strong(others),
        ]
    return tuple(blocks)


def weak_blocks(findings: Findings, outcome: SearchOutcome, most: int) -> tuple[Block, ...]:
    """The units that are localized only: how little it takes, at most `most` rows, then how many more there are."""
    weak = [unit for unit in findings.units_of(outcome) if not unit.is_tau_agonist]
    if not weak:
        return ()
    weakest = min(weak, key=lambda unit: unit.estimate.strength)
    said = (
        f"{plural(len(weak), 'unit')} {'is' if len(weak) == 1 else 'are'} not ruled out: the upper bound reaches τ = "
        f"{findings.tau:g}, the point estimate does not. Few flips suffice for that, {unit_flips(weakest)} for "
        f"{weakest.neuron}, so a place in this table is no evidence of an effect, and no control is run beside it."
    )
    more = f"… and {len(weak) - most:,} more (`mecharule show {findings.run} --table units`)."
    return (said, _units(weak[:most], "selectivity"), *([more] if len(weak) > most else []))


def _told_of(findings: Findings, unit: Unit) -> tuple[str, str, str]:
    """Its evidence; its controls; its account in short, which has a section of its own, or its anchored rule."""
    controls = "none was run"
    if unit.controls is not None:
        controls = "; ".join(control_parts(unit.controls, unit.estimate, findings.tau))
    rule = rule_line(findings, unit.rule) if unit.account is None else sentence(brief_account(unit.account))
    return f"{evidence_words(findings, unit)}.", f"Controls: {sentence(controls)}", rule
