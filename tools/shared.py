"""Which certified units flip the same examples, read off the certificates alone."""

from __future__ import annotations

from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.errors import ClaimNotSupported
from mecharule_ops.pipeline.opening import check_unit, opened
from mecharule_ops.saying.fact import fact
from mecharule_ops.types import Neuron
from tools.arguments import Shared
from tools.registry import Tell
from tools.result import ToolResult, stated

SHOWN = 10


def shared(given: Shared, tell: Tell) -> ToolResult:
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
            f"{neuron} has no certificate in run {identifier}; `mecharule why {identifier} {neuron}` makes one"
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
    facts = [
        fact(
            f"{row['unit']} flips {row['both']} of the {row['either']} examples that it or {neuron} flips",
            f"c:{own.id}",
            f"c:{row['certificate']}",
            unit=row["unit"],
        )
        for row in listed[:SHOWN]
    ]
    compared = f"Only units with a certificate were compared: {len(others)}"
    if not listed:
        compared = f"None of the {len(others)} other certified units flips any example that {neuron} flips"
    if len(listed) > SHOWN:
        compared += f"; {len(listed) - SHOWN} more that share flips are left out"
    facts.append(fact(compared, f"c:{own.id}", f"run:{identifier}"))
    return stated(data, facts, head=f"{neuron} beside other certified units of run {identifier}")


def _row(own: Certificate, other: Certificate) -> tuple[float, dict[str, object]]:
    """(Jaccard index, the row)."""
    common = set(own.example_ids) & set(other.example_ids)
    left, right = (_flipped(one) & common for one in (own, other))
    both, either = len(left & right), len(left | right)
    row = {"unit": other.units[0], "both": both, "either": either, "certificate": other.id}
    return (both / either if either else 0.0), row


def _flipped(certificate: Certificate) -> set[int]:
    return {row.example for row in certificate.rows if row.flipped}
