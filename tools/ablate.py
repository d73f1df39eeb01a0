"""Ablating units now, for a price that can be asked first."""

from __future__ import annotations

from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.codec import encode
from mecharule_ops.errors import UsageError
from mecharule_ops.mcnemar import mcnemar_p
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import check_unit, find_certificate, opened
from mecharule_ops.saying.control_facts import p_words
from mecharule_ops.saying.fact import Fact, fact
from mecharule_ops.types import Neuron, Regime
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
        identifier, alpha = run.id, run.config.alpha
        pair = _pair(run, units, regime)
        alone = [find_certificate(run, (unit,), regime) for unit in units] if len(units) > 1 else []
    if given.estimate:
        return price.stated(identifier)
    if stored is None:
        accepted(price, given.yes, tell)
        from mecharule_ops.run.certify import certificate_now

        stored = certificate_now(given.run, units, regime, tell)
    data: dict[str, object] = {
        "run": identifier,
        "units": list(stored.units),
        "regime": regime.value,
        "slices": slices_data(stored),
        "price": price.data,
        **flipped_data(stored, given.show_text),
    }
    together = _beside_alone(stored, [one for one in alone if one is not None], alpha) if all(alone) else None
    together = pair or together
    facts = [flips_fact(stored), *([together[1]] if together else []), flipped_fact(stored, given.show_text)]
    data |= together[0] if together else {}
    return stated(data, facts)


def _pair(run: Run, units: tuple[Neuron, ...], regime: Regime) -> tuple[dict[str, object], Fact] | None:
    """What the chain of either unit measured of both together; None where it did not."""
    for unit, other in (units, units[::-1]) if len(units) == 2 else ():
        chain = run.chain(unit, regime)
        for pair in chain.pairs if chain else ():
            if chain is not None and pair.other == str(other) and chain.pairs_certificate:
                said = (
                    f"Ablated together they flip {pair.together} of these {pair.n} records, against "
                    f"{pair.either} under "
                    f"either alone ({pair.extra.count} new, {pair.lost.count} lost; {p_words(pair.p_value)}): "
                    f"{pair.interaction}"
                )
                return {"pair": {**encode(pair), "p": pair.p_value}}, fact(
                    said, f"c:{chain.pairs_certificate}"
                )
    return None


def _beside_alone(
    joint: Certificate, alone: list[Certificate], alpha: float
) -> tuple[dict[str, object], Fact] | None:
    """What the units flip together beside what either flips alone, with an exact paired test; None without the latter.

    A record that one alone flips and both together do not, or the other way round, speaks for an interaction.
    """
    if not alone:
        return None
    each = [{row.example for row in one.rows if row.flipped} for one in alone]
    tested = set(joint.example_ids).intersection(*(one.example_ids for one in alone))
    both = {row.example for row in joint.rows if row.flipped} & tested
    either = set[int]().union(*each) & tested
    gained, lost = len(both - either), len(either - both)
    p = mcnemar_p(gained, lost)
    names = ", ".join(f"{one.units[0]} {len(flips & tested)}" for one, flips in zip(alone, each, strict=True))
    word = "an interaction" if p <= alpha else "no interaction shown"
    said = (
        f"Together they flip {len(both)} of these {len(tested)} records, against {len(either)} that at least one alone "
        f"flips (alone: {names}): {word} (exact paired test {p_words(p)}, α = {alpha:g})"
    )
    data = {
        "together": {"flips": len(both), "n": len(tested)},
        "either_alone": {"flips": len(either), "n": len(tested)},
        "each_alone": {one.units[0]: len(flips & tested) for one, flips in zip(alone, each, strict=True)},
        "p": p,
        "alpha": alpha,
    }
    return data, fact(said, f"c:{joint.id}", *(f"c:{one.id}" for one in alone))


def _units(text: str) -> tuple[Neuron, ...]:
    """Distinct units of one basis, in order."""
    units = tuple(dict.fromkeys(Neuron.parse(part) for part in text.split(",")))
    if len({unit.basis for unit in units}) > 1:
        raise UsageError(f"expected units of one basis, got {text!r}")
    return tuple(sorted(units))
