"""The tables of a report, cell by cell (paper, §5 and §6, with counts beside every share)."""

from __future__ import annotations

from statistics import median

from mecharule_ops.controls import depends_on_baseline
from mecharule_ops.findings import AgonistControls, Findings, RecallRow, SearchCost, SearchOutcome
from mecharule_ops.report.document import Table, k_of_n, percent, signed, two_decimals
from mecharule_ops.report.prose import control_word, rule_note, search_name
from mecharule_ops.types import Agonist


def overview(findings: Findings) -> Table:
    """A row a search: units, anchored rules and union coverage; both flip directions side by side."""
    rows = []
    for outcome in findings.searches:
        rows.append(
            (
                search_name(outcome),
                f"{outcome.cost.candidates:,}",
                str(len(outcome.agonists)),
                str(len(outcome.tau_agonists)),
                str(sum(findings.is_hq_t(rule) for rule in outcome.anchored)),
                str(sum(findings.is_hq_f(rule) for rule in outcome.anchored)),
                k_of_n(outcome.union),
                k_of_n(outcome.random_union),
            )
        )
    header = ("search", "N", "localized", "τ-agonists", "HQ-T", "HQ-F", "union flips", "random union")
    return Table(header=header, rows=tuple(rows), align="lrrrrrrr")


def layers(outcome: SearchOutcome) -> Table:
    """A row a layer: localized units, τ-agonists, the whole layer's flips, and the layer's union coverage."""
    whole = {layer.layer: layer.estimate for layer in outcome.whole_layers}
    cover = {layer.layer: layer.flipped for layer in outcome.layer_union}
    named = set(whole) | set(cover) | {agonist.neuron.layer for agonist in outcome.agonists}
    rows = []
    for layer in sorted(named):
        estimate = whole.get(layer)
        rows.append(
            (
                str(layer),
                str(sum(agonist.neuron.layer == layer for agonist in outcome.agonists)),
                str(sum(agonist.neuron.layer == layer for agonist in outcome.tau_agonists)),
                k_of_n(estimate.associated if estimate else None),
                k_of_n(estimate.unrelated if estimate else None),
                k_of_n(cover.get(layer)),
            )
        )
    header = ("layer", "localized", "τ-agonists", "whole layer, D+", "whole layer, D-", "union flips")
    return Table(header=header, rows=tuple(rows), align="rrrrrr")


def _by_strength(outcome: SearchOutcome) -> list[Agonist]:
    return sorted(outcome.agonists, key=lambda agonist: (-agonist.estimate.strength, agonist.neuron))


def agonists(findings: Findings, outcome: SearchOutcome) -> Table:
    """A row a localized unit, strongest first: flips a slice, strength with bounds, selectivity, controls."""
    rows = []
    for agonist in _by_strength(outcome):
        estimate = agonist.estimate
        bounds = f"[{two_decimals(estimate.lcb(findings.alpha))}, {two_decimals(agonist.ucb)}]"
        rows.append(
            (
                str(agonist.neuron),
                "τ-agonist" if agonist.is_tau_agonist else "localized only",
                k_of_n(estimate.associated),
                k_of_n(estimate.unrelated),
                f"{two_decimals(estimate.strength)} {bounds}",
                f"{signed(estimate.signed_selectivity)} {agonist.selectivity_label}",
                control_word(findings, outcome, agonist),
            )
        )
    header = (
        "unit",
        "status",
        "flips D+",
        "flips D-",
        "strength",
        "selectivity",
        "controls",
    )
    return Table(header=header, rows=tuple(rows), align="llrrrll")


def rules(findings: Findings, outcome: SearchOutcome) -> Table:
    """A row a localized unit: when its ablation flips a record, and how well that predicts."""
    return Table(
        header=("unit", "rule (learned on train)", "held-out MCC", "coverage", "HQ", "full-fit MCC", "reads"),
        rows=tuple(_rule_row(findings, outcome, agonist) for agonist in _by_strength(outcome)),
        align="lllrlll",
    )


def _rule_row(findings: Findings, outcome: SearchOutcome, agonist: Agonist) -> tuple[str, ...]:
    rule = outcome.rule_of(agonist.neuron)
    if rule is None:
        return (str(agonist.neuron), "not anchored", "–", "–", "–", "–", "–")
    held, full = rule.held_out, rule.full
    marks = [
        name for name, passed in (("T", findings.is_hq_t(rule)), ("F", findings.is_hq_f(rule))) if passed
    ]
    return (
        str(agonist.neuron),
        rule.rule or "no rule found",
        rule_note(held) if held else "–",
        percent(held.coverage) + f" of {held.n:,}" if held else "–",
        "+".join(marks) or "–",
        rule_note(full) if full else "–",
        ("prompt only" if rule.prompt_only else "output too") if rule.rule else "–",
    )


def controls(findings: Findings, outcome: SearchOutcome) -> Table:
    """A row a controlled unit: what random units, a fake rule's split and a second baseline give."""
    rows = []
    for agonist in _by_strength(outcome):
        ran = outcome.controls_of(agonist.neuron)
        if ran is not None:
            rows.append((str(agonist.neuron), *_control_cells(ran, findings.tau)))
    header = (
        "unit",
        "random units",
        "random D+",
        "random D-",
        "fake-rule Δ",
        "out of range",
        "second baseline",
    )
    return Table(header=header, rows=tuple(rows), align="lrrrrrl")


def _control_cells(ran: AgonistControls, tau: float) -> tuple[str, ...]:
    second = "–"
    if ran.second is not None:
        note = "; below τ: effect depends on the baseline" if depends_on_baseline(ran, tau) else ""
        plus, minus = k_of_n(ran.second.associated), k_of_n(ran.second.unrelated)
        second = f"{ran.second_baseline}: D+ {plus}, D- {minus}{note}"
    return (
        str(ran.random_units) if ran.random else "not run",
        k_of_n(ran.random.associated if ran.random else None),
        k_of_n(ran.random.unrelated if ran.random else None),
        signed(ran.fake_split.signed_selectivity) if ran.fake_split else "–",
        k_of_n(ran.out_of_range),
        second,
    )


def cost(findings: Findings) -> Table:
    """A row a search, and one for its exhaustive run: queries against N and 2N−1, and example-forwards."""
    rows = []
    for outcome in findings.searches:
        rows.append(_cost_row(search_name(outcome), outcome.cost))
        if outcome.exhaustive is not None:
            rows.append(_cost_row("· exhaustive, same units", outcome.exhaustive.cost))
    header = ("search", "queries", "of N", "of 2N−1", "example-forwards", "of exhaustive")
    return Table(header=header, rows=tuple(rows), align="lrrrrr")


def _cost_row(name: str, spent: SearchCost) -> tuple[str, ...]:
    n, forwards, full = spent.candidates, spent.example_forwards, spent.exhaustive_example_forwards
    return (
        name,
        f"{spent.queries:,}",
        f"{percent(spent.share_of_n)} of {n:,}",
        f"{percent(spent.share_of_2n_minus_1)} of {max(0, 2 * n - 1):,}",
        f"{forwards:,}",
        f"{percent(spent.share_of_exhaustive_forwards)} of {full:,}",
    )


def recall(outcome: SearchOutcome) -> Table:
    """Recall by strength bin, by point estimate and by upper bound."""
    truth = {"point": "Ê ≥ τ (τ-agonists)", "ucb": "Û ≥ τ (localized)"}
    rows = tuple((truth[row.criterion], _bin(row), k_of_n(row.found)) for row in outcome.recall)
    return Table(header=("exhaustive truth", "strength Ê", "found"), rows=rows, align="llr")


def _bin(row: RecallRow) -> str:
    return "all" if row.whole else f"[{row.low:.2g}, {row.high:.2g}{']' if row.high == 1.0 else ')'}"


def dominance_sentence(outcome: SearchOutcome) -> str:
    """Dom(1) of the opened groups in a sentence; empty when it was not measured."""
    ratios = [group.ratio for group in outcome.dominance]
    if not ratios:
        return ""
    weaker = sum(ratio > 1 for ratio in ratios)
    return (
        "Dom(1), the strongest tested singleton of an opened group over the group itself: median "
        f"{median(ratios):.2f} over {len(ratios)} opened groups; {weaker}/{len(ratios)} groups measured "
        "weaker than one of their members, and where that is no sampling noise, pruning is not safe."
    )
