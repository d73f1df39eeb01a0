"""Which units flip the same examples as one, off certificates."""

from __future__ import annotations

from collections.abc import Iterator

from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.errors import ClaimNotSupported
from mecharule_ops.run.opening import check_unit, opened
from mecharule_ops.saying.fact import Fact, fact
from mecharule_ops.types import Neuron
from tools.arguments import SharedArguments
from tools.registry import Tell, ToolResult, stated

SHOWN = 10


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
    left, right, _ = flips_of(own, other)
    both, either = len(left & right), len(left | right)
    row = {"unit": other.units[0], "both": both, "either": either, "certificate": other.id}
    return (both / either if either else 0.0), row


def flips_of(first: Certificate, second: Certificate) -> tuple[set[int], set[int], int]:
    """(examples that each flips, of those that both were tested on; how many these are)."""
    tested = set(first.example_ids) & set(second.example_ids)
    left, right = ({row.example for row in one.rows if row.flipped} & tested for one in (first, second))
    return left, right, len(tested)
