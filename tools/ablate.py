"""Ablating units now, for a price that can be asked first."""

from __future__ import annotations

from mecharule_ops.errors import UsageError
from mecharule_ops.run.opening import check_unit, find_certificate, opened
from mecharule_ops.types import Neuron
from tools._ablations import accepted, price_words
from tools._accounts import direction, flipped_data, flipped_fact, flips_fact, slices_data
from tools.arguments import AblateArguments
from tools.registry import Tell, ToolResult, stated


def ablate(given: AblateArguments, tell: Tell) -> ToolResult:
    """Flips of the units, ablated together, on both compact slices, with a certificate; or only the price."""
    units = _units(given.units)
    with opened(given.run) as run:
        for unit in units:
            check_unit(run, unit)
        regime = direction(run, given.regime)
        stored = find_certificate(run, units, regime)
        price = price_words(run, 0 if stored else len(run.slices(regime).positions))
        identifier = run.id
    if given.estimate:
        return price.stated(identifier)
    if stored is None:
        accepted(price, given.yes, tell)
        from mecharule_ops.run.certify import certificate_now

        stored = certificate_now(given.run, units, regime, tell)
    data = {
        "run": identifier,
        "units": list(stored.units),
        "regime": regime.value,
        "slices": slices_data(stored),
        "price": price.data,
        **flipped_data(stored, given.show_text),
    }
    facts = (flips_fact(stored), flipped_fact(stored, given.show_text))
    return stated(data, facts)


def _units(text: str) -> tuple[Neuron, ...]:
    """Distinct units of one basis, in order."""
    units = tuple(dict.fromkeys(Neuron.parse(part) for part in text.split(",")))
    if len({unit.basis for unit in units}) > 1:
        raise UsageError(f"expected units of one basis, got {text!r}")
    return tuple(sorted(units))
