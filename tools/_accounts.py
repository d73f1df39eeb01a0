"""What is known of a unit as short JSON and as lines of text; the two say the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from mecharule_ops.certificates.certificate import Certificate, ExampleRow, SliceTotal
from mecharule_ops.certificates.concealment import shown_rows
from mecharule_ops.confidence import lower_bound, searched_alpha
from mecharule_ops.findings.records import AgonistControls, Findings
from mecharule_ops.numbers import signed
from mecharule_ops.plain_text import plain
from mecharule_ops.questions.unit_account import UnitAccount
from mecharule_ops.saying.controls import claims_words, control_parts, effect_words, selective_cell
from mecharule_ops.saying.flips import leaning, of_these
from mecharule_ops.saying.rules import anchored_words, predicts
from mecharule_ops.types import AnchoredRule, FlipCount, FlipEstimate, Share

SHOWN = 5
"""Flipped examples listed."""


def slices_data(certificate: Certificate) -> dict[str, dict[str, object]]:
    """Flips of each slice with one-sided bounds at α/2, of a unit named beforehand and a random draw of examples."""
    return {
        total.slice: {"flips": total.flips, "n": total.n, "lower": total.lower, "upper": total.upper}
        for total in certificate.totals
    }


def _bounded_slices(certificate: Certificate, alpha: float) -> dict[str, dict[str, object]]:
    """The same with lower bounds at another α/2, that of all units searched at once."""
    data = slices_data(certificate)
    for total in certificate.totals:
        data[total.slice]["lower"] = lower_bound(total.flips, total.n, alpha / 2)
    return data


def slice_words(total: SliceTotal, tau: float, units: int = 0) -> str:
    """`28 of these 64 of D+ (44 %)`."""
    name = {"associated": "D+", "unrelated": "D-"}.get(total.slice, total.slice)
    return of_these(FlipCount(flips=total.flips, n=total.n), name, tau, units)


def flipped_rows(certificate: Certificate, show_text: bool = False) -> list[ExampleRow]:
    """The flipped examples; their texts are left out where the task conceals them, unless asked for."""
    return [row for row in shown_rows(certificate, show_text) if row.flipped]


def example_data(row: ExampleRow) -> dict[str, object]:
    """One example before and after."""
    return {
        "example": row.example,
        "prompt": last_line(row.prompt),
        "before": plain(row.before.text),
        "after": plain(row.after.text),
        "flipped": row.flipped,
    }


def last_line(prompt: str) -> str:
    """The question without few-shot lines."""
    return plain(prompt.rstrip("\n").rsplit("\n", 1)[-1])


def rule_data(rule: AnchoredRule | None) -> dict[str, object] | None:
    """A rule that held-out records bear out, with its score; None when there is none."""
    interval = predicts(rule)
    if rule is None or rule.held_out is None or interval is None:
        return None
    return {
        "text": rule.rule,
        "prompt_only": rule.prompt_only,
        "held_out_mcc": interval.mcc,
        "held_out_lower": interval.low,
        "held_out_upper": interval.high,
        "held_out_n": interval.n,
        "held_out_positives": interval.positives,
        "held_out_coverage": rule.held_out.coverage,
        "p": None if rule.chance is None else rule.chance.p,
        "adjusted_p": None if rule.chance is None else rule.chance.adjusted,
    }


def controls_data(
    controls: AgonistControls | None, main: FlipEstimate, tau: float
) -> dict[str, object] | None:
    """What the controls counted, the two claims that they decide, and both in words; None when none ran."""
    if controls is None:
        return None
    return {
        "flips": None if controls.flips is None else {"flips": controls.flips.flips, "n": controls.flips.n},
        "random_units": None
        if controls.basis is None
        else {**_below(controls.basis), "p": controls.effect_p, "corrected_over": controls.effect_family},
        "random_units_of_layer": None if controls.layer is None else _below(controls.layer),
        "standing": None if controls.standing is None else asdict(controls.standing),
        "selective": controls.selective.value,
        "selective_p": controls.selective_p,
        "claims": claims_words(controls),
        "parts": control_parts(controls, main, tau),
        "split": _counts(controls.split),
        "second_baseline": None if controls.second_baseline is None else controls.second_baseline.value,
        "second": _counts(controls.second),
        "depends_on_baseline": controls.depends_on_baseline(main, tau),
        "out_of_range": None if controls.out_of_range is None else _finite(controls.out_of_range.rate),
    }


def controls_lines(controls: AgonistControls | None, main: FlipEstimate, tau: float) -> list[str]:
    """The same for a person: the two claims, then a line a control."""
    if controls is None:
        return ["  controls  none ran"]
    first, *rest = control_parts(controls, main, tau)
    return [
        f"  rank      {effect_words(controls)}",
        f"  selective {selective_cell(controls)}",
        f"  controls  {first}",
        *(f"            {part}" for part in rest),
    ]


def _counts(estimate: FlipEstimate | None) -> dict[str, int] | None:
    if estimate is None:
        return None
    plus, minus = estimate.associated, estimate.unrelated
    return {
        "associated_flips": plus.flips,
        "associated_n": plus.n,
        "unrelated_flips": minus.flips,
        "unrelated_n": minus.n,
    }


def _below(share: Share) -> dict[str, int]:
    """Of the random units those that flip fewer records."""
    return {"count": share.n - share.count, "n": share.n}


def _finite(value: float) -> float | None:
    return value if value == value else None


def account_data(
    findings: Findings,
    account: UnitAccount,
    certificate: Certificate,
    show_text: bool = False,
) -> dict[str, object]:
    """Everything that an answer about a localized unit may cite; lower bounds hold over all units searched."""
    agonist = account.agonist
    flipped = flipped_rows(certificate, show_text)
    return {
        "neuron": str(agonist.neuron),
        "regime": agonist.regime.value,
        "arrow": agonist.regime.arrow,
        "status": "τ-agonist" if agonist.is_tau_agonist else "localized only",
        "tau": agonist.tau,
        "mcc_floor": findings.mcc_floor,
        "slices": _bounded_slices(certificate, searched_alpha(findings.alpha, account.searched)),
        "at_random": account.bounded > 0,
        "searched": account.searched,
        "confidence": 1 - findings.alpha,
        "strength": agonist.estimate.strength,
        "upper_bound": agonist.ucb,
        "selectivity": _finite(agonist.estimate.signed_selectivity),
        "leaning": leaning(agonist.estimate.signed_selectivity, agonist.epsilon),
        "rule": rule_data(account.rule),
        "rule_words": anchored_words(account.rule, findings.run),
        "rule_certified": certificate.rule is not None
        and account.rule is not None
        and certificate.rule.text == account.rule.rule,
        "hq_t": account.hq_t,
        "controls": controls_data(account.controls, agonist.estimate, agonist.tau),
        "grade": account.grade,
        "stronger_slice": account.stronger[0],
        "flips_needed": _needed(account),
        "flipped": [example_data(row) for row in flipped[:SHOWN]],
        "flipped_in_all": len(flipped),
        "certificate": certificate.id,
    }


def _needed(account: UnitAccount) -> dict[str, int] | None:
    """The count under the name of its slice, so that an answer's number is compared with that slice alone."""
    if account.flips_needed is None:
        return None
    return {"associated" if account.stronger[0] == "D+" else "unrelated": account.flips_needed}


def account_lines(
    run: str, account: UnitAccount, certificate: Certificate, show_text: bool = False
) -> list[str]:
    """The same for a person."""
    agonist = account.agonist
    selectivity = signed(agonist.estimate.signed_selectivity)
    reaches = "≥" if agonist.is_tau_agonist else "<"
    flips = " · ".join(slice_words(total, agonist.tau, account.bounded) for total in certificate.totals)
    return [
        f"{agonist.neuron} ({agonist.regime.arrow})",
        f"  flips     {flips} [c:{certificate.id}]",
        f"  strength  {agonist.estimate.strength:.2f} {reaches} τ {agonist.tau:g} · selectivity {selectivity} "
        f"({leaning(agonist.estimate.signed_selectivity, agonist.epsilon)})",
        f"  rule      {anchored_words(account.rule, run)}",
        *controls_lines(account.controls, agonist.estimate, agonist.tau),
        *examples_lines("flipped", flipped_rows(certificate, show_text)),
        f"  grade     {account.grade}",
    ]


def examples_lines(title: str, rows: Sequence[ExampleRow]) -> list[str]:
    """The first few examples on one line, and how many more there are."""
    shown = [
        f"{last_line(row.prompt)} {plain(row.before.text)} → {plain(row.after.text)}" for row in rows[:SHOWN]
    ]
    more = f" … {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
    return [f"  {title:9} {' · '.join(shown) or 'none'}{more}"]
