"""What several tools say of a unit, as short JSON and as facts: flips, examples, rule, controls."""

from bisect import bisect
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from typing import Any

from mecharule_ops import codec, plain_text
from mecharule_ops.certificates.certificate import Certificate, ExampleRow
from mecharule_ops.facts import control_facts, examples, fact, flips
from mecharule_ops.findings.controls import AgonistControls
from mecharule_ops.run import live_run, opening
from mecharule_ops.run.certify import certify
from mecharule_ops.types import FlipCount, FlipEstimate, Neuron, Regime, Share
from tools.result import About

_MOST, _ROOM = 40, 600
"""Flipped examples listed, and their characters."""


def slices_data(certificate: Certificate) -> dict[str, dict[str, fact.FactValue]]:
    """Flips of each slice with one-sided bounds at α/2, of a unit named beforehand and a random draw of examples."""
    names = ("flips", "n", "lower", "upper")
    return {total.slice: {name: getattr(total, name) for name in names} for total in certificate.totals}


def slices_words(certificate: Certificate) -> str:
    """`28 of these 64 of D+ (44 %) and 3 of these 64 of D- (5 %)`; any other set of records by its name."""
    names = {"associated": "D+", "unrelated": "D-"}
    return " and ".join(
        flips.of_these(FlipCount(flips=total.flips, n=total.n), names.get(total.slice, f"the {total.slice}"))
        for total in certificate.totals
    )


def example_data(row: ExampleRow) -> dict[str, fact.FactValue]:
    """One example before and after."""
    before, after = plain_text.plain(row.before.text), plain_text.plain(row.after.text)
    texts = {"prompt": plain_text.last_line(row.prompt), "before": before, "after": after}
    return {"example": row.example, **texts, "flipped": row.flipped}


def controls_facts(
    controls: AgonistControls | None, main: FlipEstimate, tau: float, of: About
) -> Iterator[fact.Fact]:
    """What each control counted; that none ran."""
    if controls is None:
        yield of("controls.counts", "No second baseline and no split was counted beside it")
        return
    parts, verdict = control_facts.control_parts(controls, main, tau), control_facts.selective_words(controls)
    value: dict[str, Any] = {
        "flips": controls.flips and codec.encode(controls.flips),
        "random_units": controls.basis and _below(controls.basis),
        "random_units_of_layer": controls.layer and _below(controls.layer),
        "selective": controls.selective.value,
        "selective_p": controls.selective_p,
        "split": _counts(controls.split),
        "second_baseline": controls.second_baseline and str(controls.second_baseline.value),
        "second": _counts(controls.second),
        "depends_on_baseline": controls.depends_on_baseline(main, tau),
        "out_of_range": controls.out_of_range and finite(controls.out_of_range.rate),
    }
    yield of("controls.counts", f"Controls ({verdict}): {'; '.join(parts)}", value)


def _counts(estimate: FlipEstimate | None) -> dict[str, fact.FactValue] | None:
    parts = codec.encode(estimate) if estimate else {}
    return {f"{side}_{name}": n for side, part in parts.items() for name, n in part.items()} or None


def _below(share: Share) -> dict[str, fact.FactValue]:
    """Of the random units those that flip fewer records."""
    return {"count": share.n - share.count, "n": share.n}


def finite(value: float) -> float | None:
    """None for NaN, which JSON has not."""
    return value if value == value else None


def flips_fact(certificate: Certificate, of: About, baseline: str | None = None) -> fact.Fact:
    """What the certified units flip."""
    units = " and ".join(certificate.units) + (" alone" if len(certificate.units) == 1 else " together")
    told = replace(of, unit=certificate.units[0] if len(certificate.units) == 1 else None)
    name, by = (f"flips.{baseline}", f", by the baseline {baseline}") if baseline else ("flips", "")
    value, counts = slices_data(certificate), slices_words(certificate)
    return told.told(name, "flips.certified", value, f"c:{certificate.id}", units=units, counts=counts, by=by)


def flipped_fact(certificate: Certificate, show_text: bool, of: About) -> fact.Fact:
    """The first few flipped examples, and how many more there are; texts of a task that conceals them only if asked."""
    flipped = [(asked, row) for asked, row in examples.asked_of(certificate, show_text) if row.flipped]
    said = [f"{asked} {examples.change_words(row)}" for asked, row in flipped]
    count = max(1, min(_MOST, bisect(list(accumulate(map(len, said))), _ROOM)))
    more = f" … {len(said) - count} more" if len(said) > count else ""
    told = f"Flipped: {' · '.join(said[:count]) or 'none'}{more}"
    return of("flipped", told, [example_data(row) for _, row in flipped], f"c:{certificate.id}")


def certificate_of(run: live_run.Run, unit: Neuron, regime: Regime) -> Certificate:
    """That of a unit alone on both slices, stored or made now."""
    stored = opening.find_certificate(run, (unit,), regime)
    return stored or opening.keep(run, next(certify(run, [(unit,)], regime)))


def flips_of(*certificates: Certificate) -> tuple[list[set[int]], int]:
    """(examples that each flips, of those that all were tested on; how many these are)."""
    tested = set.intersection(*(set(one.example_ids) for one in certificates))
    return [{row.example for row in one.rows if row.flipped} & tested for one in certificates], len(tested)
