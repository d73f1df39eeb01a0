"""Units, rules and searches of a report as tables of cells, and the units with what is said of each.

Paper, §5 and §6, with counts beside every share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from mecharule_ops.facts.account_facts import brief_account
from mecharule_ops.facts.control_facts import CONTROLS_KEY, control_parts, effect_cell, selective_cell
from mecharule_ops.facts.flips import unit_flips
from mecharule_ops.facts.flips_where import where_words
from mecharule_ops.facts.rules import clipped, is_told, rule_line, score_words, untold_sentence, worded
from mecharule_ops.facts.searches import is_risk, search_names
from mecharule_ops.facts.shown_units import (
    NOT_TOLD_APART,
    SHOWN_KEY,
    evidence_words,
    kept_aside,
    marked,
    reached_words,
    unit_status,
    unshowable,
)
from mecharule_ops.facts.unit_rules import ANCHORED, UnitRule, rules_of, shown_words
from mecharule_ops.findings.records import Findings, SearchOutcome, Unit
from mecharule_ops.numbers import k_of_n, percent, plural, sentence, signed, two_decimals
from mecharule_ops.pages.document import Block, Column, Table
from mecharule_ops.rules.families import AnchoredRule

RULE = "rule (learned on train)"
"""The column of a rule's text, which is long."""
WORDS = "in words"
"""Likewise of its words."""


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


def _strength(unit: Unit) -> str:
    bounds = f"[{two_decimals(unit.lower)}, {two_decimals(unit.agonist.ucb)}]"
    return f"{unit.estimate.strength:.3f} {bounds}"


_NAME: Column[Unit] = ("unit", "l", lambda unit: str(unit.neuron))
_MARKED: Column[Unit] = ("unit", "l", marked)
_KEPT_ASIDE: Column[Unit] = ("kept aside", "l", kept_aside)
_STATUS: Column[Unit] = ("status", "l", unit_status)
_FLIPS: tuple[Column[Unit], ...] = (
    ("flips D+", "r", lambda unit: k_of_n(unit.estimate.associated)),
    ("flips D-", "r", lambda unit: k_of_n(unit.estimate.unrelated)),
    ("strength", "r", _strength),
    ("selectivity", "r", lambda unit: signed(unit.estimate.signed_selectivity)),
)
_CONTROLS: tuple[Column[Unit], ...] = (
    ("above random units", "l", lambda unit: effect_cell(unit.controls)),
    ("selective", "l", lambda unit: selective_cell(unit.controls)),
)


def agonists(findings: Findings, outcome: SearchOutcome) -> Table:
    """A row a localized unit, the shown first, with its status, its flips and what the controls show."""
    return Table.of(findings.units_of(outcome), (_NAME, _STATUS, _KEPT_ASIDE, *_FLIPS, *_CONTROLS))


def rules(findings: Findings, outcome: SearchOutcome) -> Table:
    """Every rule of each localized unit, shown or not: a row a family of its account, then the anchored one."""
    return Table.of(_listed(findings, outcome), _rule_columns(findings))


def learned(findings: Findings, outcome: SearchOutcome) -> Table:
    """The rules of a search that were learned, shown or not, with their texts underneath."""
    columns = [
        column
        for column in _rule_columns(findings)
        if column[0] in ("unit", "family", "shown", "held-out MCC")
    ]
    kept = [rule for rule in _listed(findings, outcome) if rule.learned]
    notes = tuple((worded(clipped(str(rule.learned), findings.run), rule.words),) for rule in kept)
    return replace(Table.of(kept, columns), notes=notes)


def _listed(findings: Findings, outcome: SearchOutcome) -> Iterator[UnitRule]:
    for unit in findings.units_of(outcome):
        yield from rules_of(unit)
        if unit.rule is None:
            yield UnitRule(neuron=unit.neuron, family=ANCHORED, absent="not anchored")


def _rule_columns(findings: Findings) -> tuple[Column[UnitRule], ...]:
    return (
        ("unit", "l", lambda rule: str(rule.neuron)),
        ("family", "l", lambda rule: rule.family),
        (WORDS, "l", lambda rule: rule.words or "–"),
        (RULE, "l", lambda rule: str(rule.learned or rule.absent)),
        ("flips where, elsewhere", "l", lambda rule: where_words(rule.where) if rule.where else "–"),
        ("shown", "l", lambda rule: shown_words(rule)),
        ("held-out MCC", "l", _held_out),
        ("free-form trees", "l", lambda rule: str(rule.trees or "–")),
        ("coverage", "l", lambda rule: _coverage(rule.anchored)),
        ("high quality", "l", lambda rule: _marks(findings, rule.anchored)),
        ("full-fit MCC", "l", lambda rule: _full(rule.anchored)),
        ("checked", "l", lambda rule: rule.checked or "–"),
    )


def _held_out(rule: UnitRule) -> str:
    scored = rule.anchored and rule.anchored.held_out
    return score_words(scored) if scored else str(rule.held_out or "–")


def _coverage(rule: AnchoredRule | None) -> str:
    return f"{percent(rule.held_out.coverage)} of {rule.held_out.n:,}" if rule and rule.held_out else "–"


def _full(rule: AnchoredRule | None) -> str:
    return score_words(rule.full) if rule and rule.full else "–"


def _marks(findings: Findings, rule: AnchoredRule | None) -> str:
    passed = () if rule is None else (("HQ-T", findings.is_hq_t(rule)), ("HQ-F", findings.is_hq_f(rule)))
    return ", ".join(name for name, reached in passed if reached) or "–"


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
        notes = tuple(
            (
                f"{evidence_words(findings, unit)}.",
                _control_line(findings, unit),
                _rule_line(findings, unit),
            )
            for unit in shown
        )
        bars = tuple(unit.estimate.strength for unit in shown)
        table = replace(
            Table.of(shown, (_MARKED, _KEPT_ASIDE, *_FLIPS[:3], *_CONTROLS)), notes=notes, bars=bars
        )
        blocks += [
            f"{name}: {plural(len(shown), 'unit')} shown{risk}, by the lower bound of what it flips.",
            table,
        ]
    if others:
        why = unshowable(findings, outcome) or f"{NOT_TOLD_APART}, in the order of their names"
        reached = reached_words(findings, outcome, len(others), "more " if shown else "")
        blocks += [
            f"{name}{risk}: {reached}, {why}.",
            Table.of(others, (_MARKED, _KEPT_ASIDE, *_FLIPS[:3], *_CONTROLS)),
        ]
    return tuple(blocks)


def weak_blocks(findings: Findings, outcome: SearchOutcome, most: int) -> tuple[Block, ...]:
    """The units that are localized only: at most `most` rows, then how many more there are."""
    weak = [unit for unit in findings.units_of(outcome) if not unit.is_tau_agonist]
    if not weak:
        return ()
    shown, hidden = weak[:most], weak[most:]
    notes = tuple((rule_line(findings, unit.rule),) if is_told(unit) else () for unit in shown)
    table = replace(Table.of(shown, (_NAME, *_FLIPS)), notes=notes)
    blocks: list[Block] = [_not_ruled_out(findings, outcome, weak), table]
    if hidden:
        ruled = sum(map(is_told, hidden))
        told = (
            f", {ruled} of them with a rule (`mecharule show {findings.run} --table rules`)" if ruled else ""
        )
        blocks.append(f"… and {len(hidden):,} more (`mecharule show {findings.run} --table units`){told}.")
    blocks.append(untold_sentence(weak))
    return tuple(block for block in blocks if block)


def _not_ruled_out(findings: Findings, outcome: SearchOutcome, weak: Sequence[Unit]) -> str:
    """How little it takes to stand in this table."""
    count, weakest = len(weak), min(weak, key=lambda unit: unit.estimate.strength)
    these = f"{plural(count, 'unit')} {'is' if count == 1 else 'are'} not ruled out"
    few = unit_flips(weakest)
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
