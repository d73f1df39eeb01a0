"""Which certified units flip the same examples, read off the certificates alone."""

from __future__ import annotations

from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.errors import ClaimNotSupported
from mecharule_ops.numbers import plural
from mecharule_ops.pipeline.opening import check_unit, opened
from mecharule_ops.types import Neuron
from tools.arguments import Shared
from tools.registry import Tell
from tools.result import ToolResult

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
    lines = [f"{neuron} [c:{own.id}] beside {plural(len(others), 'certified unit')} of run {identifier}"]
    lines += [
        f"  {row['unit']}: {row['both']} of {row['either']} examples that either flips [c:{row['certificate']}]"
        for row in listed[:SHOWN]
    ] or ["  no other certified unit flips any of the same examples"]
    if len(listed) > SHOWN:
        lines.append(f"  {len(listed) - SHOWN} more left out")
    return ToolResult(data=data, text="\n".join(lines))


def _row(own: Certificate, other: Certificate) -> tuple[float, dict[str, object]]:
    """(Jaccard index, the row)."""
    common = set(own.example_ids) & set(other.example_ids)
    left, right = (_flipped(one) & common for one in (own, other))
    both, either = len(left & right), len(left | right)
    row = {"unit": other.units[0], "both": both, "either": either, "certificate": other.id}
    return (both / either if either else 0.0), row


def _flipped(certificate: Certificate) -> set[int]:
    return {row.example for row in certificate.rows if row.flipped}
