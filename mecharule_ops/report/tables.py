"""Units, rules and searches of a report as tables of cells, and the units with what is said of each.

Paper, §5 and §6, with counts beside every share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from mecharule_ops.findings.records import Findings, SearchOutcome, Unit
from mecharule_ops.numbers import k_of_n, percent, plural, sentence, signed, two_decimals
from mecharule_ops.report.document import Block, Table
from mecharule_ops.saying.accounts import brief_account
from mecharule_ops.saying.controls import CONTROLS_KEY, control_parts, effect_cell, selective_cell
from mecharule_ops.saying.flips import stronger_slice
from mecharule_ops.saying.rules import clipped, is_told, rule_line, score_words, untold_sentence
from mecharule_ops.saying.searches import is_risk, search_names
from mecharule_ops.saying.unit_rules import ANCHORED, UnitRule, rules_of, shown_words

RULE = "rule (learned on train)"
"""The column of a rule's text, which is long."""
SHOWN = "shown"
"""The column that says whether a rule is shown, and why."""


def overview(findings: Findings) -> Table:
    """A row a search: units, anchored rules and union coverage; both flip directions side by side."""
    rows = tuple(
        (
            name,
            f"{outcome.cost.candidates:,}",
            f"{len(outcome.agonists):,}",
            f"{len(outcome.tau_agonists):,}",
            str(sum(findings.is_hq_t(rule) for rule in outcome.anchored)),
            str(sum(findings.is_hq_f(rule) for rule in outcome.anchored)),
            k_of_n(outcome.union),
            k_of_n(outcome.drawn_union),
        )
        for name, outcome in zip(search_names(findings), findings.searches, strict=True)
    )
    header = ("search", "units", "localized", "τ-agonists", "HQ-T", "HQ-F", "union flips", "drawn union")
    return Table(header=header, rows=rows, align="lrrrrrrr")


def told_layers(findings: Findings, outcome: SearchOutcome) -> set[int]:
    """Layers with a localized unit or whose joint ablation reaches τ."""
    reach = {whole.layer for whole in outcome.whole_layers if whole.estimate.reaches(findings.tau)}
    return reach | {agonist.neuron.layer for agonist in outcome.agonists}


def layers(findings: Findings, outcome: SearchOutcome) -> Table:
    """A row a layer that has something to tell: its units, the whole layer's flips, its union coverage."""
    whole = {layer.layer: layer.estimate for layer in outcome.whole_layers}
    cover = {layer.layer: layer.flipped for layer in outcome.layer_union}
    rows = tuple(
        (
            str(layer),
            str(sum(agonist.neuron.layer == layer for agonist in outcome.agonists)),
            str(sum(agonist.neuron.layer == layer for agonist in outcome.tau_agonists)),
            k_of_n(whole[layer].associated if layer in whole else None),
            k_of_n(whole[layer].unrelated if layer in whole else None),
            k_of_n(cover.get(layer)),
        )
        for layer in sorted(told_layers(findings, outcome))
    )
    header = ("layer", "localized", "τ-agonists", "whole layer, D+", "whole layer, D-", "union flips, all")
    return Table(header=header, rows=rows, align="rrrrrr")


def unit_table(units: Sequence[Unit]) -> Table:
    """A row a unit: flips a slice, strength with bounds, selectivity, then what the controls show in two columns."""
    header = ("unit", "flips D+", "flips D-", "strength", "selectivity", "above random units", "selective")
    return Table(header=header, rows=tuple(map(_unit_row, units)), align="lrrrrll")


def agonists(findings: Findings, outcome: SearchOutcome) -> Table:
    """A row a localized unit, strongest first, with its status."""
    units = findings.units_of(outcome)
    table = unit_table(units)
    status = ["τ-agonist" if unit.is_tau_agonist else "not ruled out" for unit in units]
    rows = tuple((row[0], word, *row[1:]) for row, word in zip(table.rows, status, strict=True))
    return Table(header=(table.header[0], "status", *table.header[1:]), rows=rows, align="llrrrrll")


def _unit_row(unit: Unit) -> tuple[str, ...]:
    estimate = unit.estimate
    bounds = f"[{two_decimals(unit.lower)}, {two_decimals(unit.agonist.ucb)}]"
    return (
        str(unit.neuron),
        k_of_n(estimate.associated),
        k_of_n(estimate.unrelated),
        f"{estimate.strength:.3f} {bounds}",
        signed(estimate.signed_selectivity),
        effect_cell(unit.controls),
        selective_cell(unit.controls),
    )


def rules(findings: Findings, outcome: SearchOutcome) -> Table:
    """Every rule of each localized unit, shown or not: a row a family of its account, its drive, the anchored one."""
    header = (
        "unit",
        "family",
        RULE,
        SHOWN,
        "held-out MCC",
        "free-form trees",
        "coverage",
        "HQ",
        "full-fit MCC",
        "checked",
    )
    rows = tuple(row for unit in findings.units_of(outcome) for row in _rule_rows(findings, unit))
    return Table(header=header, rows=rows, align="l" * len(header))


def learned(findings: Findings, outcome: SearchOutcome) -> Table:
    """The rules of a search that were learned, shown or not, with their texts underneath."""
    table = rules(findings, outcome)
    place, mark = table.header.index(RULE), table.header.index(SHOWN)
    kept = [row for row in table.rows if row[mark] != "–"]
    columns = [table.header.index(name) for name in ("unit", "family", SHOWN, "held-out MCC")]
    return Table(
        header=tuple(table.header[column] for column in columns),
        rows=tuple(tuple(row[column] for column in columns) for row in kept),
        align="l" * len(columns),
        notes=tuple((clipped(row[place], findings.run),) for row in kept),
    )


def _rule_rows(findings: Findings, unit: Unit) -> Iterator[tuple[str, ...]]:
    yield from (_rule_row(findings, str(unit.neuron), rule) for rule in rules_of(unit))
    if unit.rule is None:
        yield (str(unit.neuron), ANCHORED, "not anchored", *("–",) * 7)


def _rule_row(findings: Findings, unit: str, rule: UnitRule) -> tuple[str, ...]:
    paper = rule.anchored
    held, full = (None, None) if paper is None else (paper.held_out, paper.full)
    is_hq = () if paper is None else (("T", findings.is_hq_t(paper)), ("F", findings.is_hq_f(paper)))
    return (
        unit,
        rule.family,
        rule.learned or rule.absent,
        shown_words(rule),
        score_words(held) if held else str(rule.held_out or "–"),
        str(rule.trees or "–"),
        percent(held.coverage) + f" of {held.n:,}" if held else "–",
        "+".join(name for name, passed in is_hq if passed) or "–",
        score_words(full) if full else "–",
        rule.checked or "–",
    )


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
    table = replace(unit_table(strong), notes=notes, bars=bars)
    risk = ", a risk" if is_risk(findings, outcome) else ""
    return (f"{name}: {plural(len(strong), 'τ-agonist')}{risk}, strongest first.", table)


def weak_blocks(findings: Findings, outcome: SearchOutcome, most: int) -> tuple[Block, ...]:
    """The units that are localized only: at most `most` rows, then how many more there are."""
    weak = [unit for unit in findings.units_of(outcome) if not unit.is_tau_agonist]
    if not weak:
        return ()
    shown, hidden = weak[:most], weak[most:]
    notes = tuple((rule_line(findings, unit.rule),) if is_told(unit) else () for unit in shown)
    table = unit_table(shown)
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
