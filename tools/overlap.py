"""Which units flip the same examples: two beside each other, and all that share flips with one, off certificates."""

from __future__ import annotations

from collections.abc import Iterator

from mecharule_ops.certificates.certificate import Certificate, shown_rows
from mecharule_ops.errors import ClaimNotSupported, UsageError
from mecharule_ops.mcnemar import mcnemar_p
from mecharule_ops.plain_text import last_line
from mecharule_ops.run.opening import (
    check_unit,
    find_certificate,
    findings_of,
    opened,
    outcome_for,
    regime_of,
)
from mecharule_ops.saying.fact import Fact, fact
from mecharule_ops.types import Neuron
from tools._ablations import accepted, price_words
from tools._accounts import flips_fact, slices_data
from tools.arguments import SharedArguments, VersusArguments
from tools.registry import Tell, ToolResult, stated

SHOWN = 10


def versus(given: VersusArguments, tell: Tell) -> ToolResult:
    """Both units' certificates beside each other, example by example, with an exact paired test (McNemar) at α.

    Cost: one completion an example of both slices for a unit that has no certificate yet.
    """
    units = Neuron.parse(given.first), Neuron.parse(given.second)
    if units[0] == units[1]:
        raise UsageError(f"expected two units to compare, got {units[0]} twice")
    with opened(given.run) as run:
        findings = findings_of(run)
        for unit in units:
            check_unit(run, unit)
        regime = outcome_for(findings, units[0], regime_of(given.regime)).regime
        outcome_for(findings, units[1], regime)
        missing = [unit for unit in units if find_certificate(run, (unit,), regime) is None]
        price = price_words(run, len(missing) * len(run.slices(regime).positions) if missing else 0)
    if given.estimate:
        return price.stated(run.id)
    if missing:
        accepted(price, given.yes, tell)
    from mecharule_ops.run.certify import certificate_now

    certificates = tuple(certificate_now(given.run, (unit,), regime, tell) for unit in units)
    left, right, n = _flips(*certificates)
    flips = {"both": len(left & right), "first_only": len(left - right), "second_only": len(right - left)}
    p = mcnemar_p(flips["first_only"], flips["second_only"])
    data = {
        "run": findings.run,
        "regime": regime.value,
        "alpha": findings.alpha,
        "units": [
            {"neuron": one.units[0], "slices": slices_data(one), "certificate": one.id}
            for one in certificates
        ],
        **{name: {"flips": count, "n": n} for name, count in flips.items()},
        "p": p,
        "flipped_by_both": (prompts := _both(certificates[0], left & right)),
        "certificates": [one.id for one in certificates],
    }
    sources = (*(f"c:{one.id}" for one in certificates), f"run:{findings.run}")
    apart = f"These examples do not tell which of {units[0]} and {units[1]} flips more"
    if p <= findings.alpha:
        more, fewer = units if flips["first_only"] > flips["second_only"] else units[::-1]
        apart = f"{more} flips more of them than {fewer}"
    facts = [
        fact(f"{apart} (exact paired test p = {p:.3g}, α = {findings.alpha:g})", *sources),
        fact(
            f"Of {n} examples that both were tested on, both flip {flips['both']}, "
            f"{units[0]} alone flips {flips['first_only']} and {units[1]} alone {flips['second_only']}",
            *sources,
        ),
        *(flips_fact(one) for one in certificates),
        *([fact(f"Flipped by both: {' · '.join(prompts)}", sources[0])] if prompts else []),
    ]
    return stated(data, facts)


def _both(certificate: Certificate, flipped: set[int]) -> list[str]:
    """The first prompts that both units flip; none of a task that conceals them."""
    rows = shown_rows(certificate, False)
    return list(dict.fromkeys(last_line(row.prompt) for row in rows if row.example in flipped))[:SHOWN]


def shared(given: SharedArguments, tell: Tell) -> ToolResult:
    """For every other certified unit: examples that both flip, of those that either flips (Jaccard).

    Only examples that both certificates tested count. Raises `ClaimNotSupported` without a certificate.
    """
    neuron = Neuron.parse(given.neuron)
    with opened(given.run) as run:
        check_unit(run, neuron)
        certificates = [
            one
            for one in run.store.certificates()
            if len(one.units) == 1
            and one.kind in ("ablate", "why")
            and given.regime in (None, str(one.regime))
        ]
        identifier = run.id
    own = next((one for one in certificates if one.units == (str(neuron),)), None)
    if own is None:
        raise ClaimNotSupported(
            f"{neuron} has no certificate in run {identifier}; `mecharule ablate {identifier} {neuron}` makes one"
        )
    others = {
        one.units[0]: one for one in certificates if one.regime == own.regime and one.units != own.units
    }
    rows = sorted((_row(own, other) for other in others.values()), key=lambda row: -row[0])
    listed = [row for _, row in rows if row["both"]]
    data = {
        "run": identifier,
        "neuron": str(neuron),
        "regime": own.regime,
        "certificate": own.id,
        "units": listed[:SHOWN],
        "units_in_all": len(listed),
        "compared": len(others),
    }
    facts = list(_shared_facts(own, listed, len(others), identifier))
    return stated(data, facts)


def _shared_facts(
    own: Certificate, listed: list[dict[str, object]], compared: int, run: str
) -> Iterator[Fact]:
    (neuron,) = own.units
    for row in listed[:SHOWN]:
        yield fact(
            f"On the slices {row['unit']} and {neuron} both flip {row['both']} of the {row['either']} examples that "
            "either flips",
            f"c:{own.id}",
            f"c:{row['certificate']}",
            unit=row["unit"],
        )
    said = f"Only units with a certificate were compared: {compared}"
    if not listed:
        said = f"None of the {compared} other certified units flips any example that {neuron} flips"
    if len(listed) > SHOWN:
        said += f"; {len(listed) - SHOWN} more that share flips are left out"
    yield fact(said, f"c:{own.id}", f"run:{run}")


def _row(own: Certificate, other: Certificate) -> tuple[float, dict[str, object]]:
    """(Jaccard index, the row)."""
    left, right, _ = _flips(own, other)
    both, either = len(left & right), len(left | right)
    row = {"unit": other.units[0], "both": both, "either": either, "certificate": other.id}
    return (both / either if either else 0.0), row


def _flips(first: Certificate, second: Certificate) -> tuple[set[int], set[int], int]:
    """(examples that each flips, of those that both were tested on; how many these are)."""
    tested = set(first.example_ids) & set(second.example_ids)
    left, right = ({row.example for row in one.rows if row.flipped} & tested for one in (first, second))
    return left, right, len(tested)
