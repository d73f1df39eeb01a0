"""Ablating units now: their flips on both compact slices, or on the train records where a condition holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mecharule_ops.certificates.certificate import Certificate, shown_rows
from mecharule_ops.codec import encode
from mecharule_ops.errors import UsageError
from mecharule_ops.facts.control_facts import p_words
from mecharule_ops.facts.fact import Fact, FactValue, fact
from mecharule_ops.mcnemar import mcnemar_p
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import check_unit, find_certificate, keep
from mecharule_ops.run.tabulating import Part, drawn, fires
from mecharule_ops.types import Baseline, Neuron, Regime
from tools._accounts import direction, example_data, flipped_fact, flips_fact, slices_data
from tools._conditions import condition_of
from tools.arguments import AblateArguments
from tools.result import Tell, ToolResult, of_facts

Units = tuple[Neuron, ...]
Slices = Mapping[str, Sequence[int]]


def ablate_price(run: Run, given: AblateArguments) -> int:
    """A completion a record; nothing where the certificate is stored."""
    units, regime, baseline, slices = _asked(run, given)
    if find_certificate(run, units, regime, baseline, slices):
        return 0
    return sum(map(len, (slices or run.slices(regime).named).values()))


def ablate(run: Run, given: AblateArguments, tell: Tell) -> ToolResult:
    """What the units flip, ablated together, beside what each flips alone; with a certificate, made now or stored."""
    units, regime, baseline, slices = _asked(run, given)
    made = find_certificate(run, units, regime, baseline, slices)
    own = slices is None and baseline in (None, run.config.baseline)
    if made is None:
        from mecharule_ops.run.certify import certify

        kind = "ablate" if own else "flip"
        made = keep(run, certify(run, units, regime, kind=kind, baseline=baseline, slices=slices))
    key = f"unit{'s' if len(units) > 1 else ''}.{'+'.join(made.units)}"
    flips = flips_fact(made, key=f"{key}.flips", value=slices_data(made))
    if given.baseline is not None:
        said = f"{flips.sentence}, by the baseline {given.baseline}"
        flips = replace(flips, sentence=said, key=f"{flips.key}.{given.baseline}")
    together = _pair(run, units, regime) if own else None
    if together is None and len(units) > 1:
        alone = [find_certificate(run, (unit,), regime, baseline, slices) for unit in units]
        together = _beside_alone(made, [one for one in alone if one is not None], run.config.alpha)
    rows: list[FactValue] = [example_data(row) for row in shown_rows(made, given.show_text) if row.flipped]
    flipped = replace(flipped_fact(made, given.show_text), key=f"{key}.flipped", value=rows)
    beside = [replace(together, key=f"{key}.together")] if together else []
    return of_facts([flips, *beside, flipped])


def _asked(run: Run, given: AblateArguments) -> tuple[Units, Regime, Baseline | None, Slices | None]:
    """Units of one basis in order, direction, baseline named, and positions by name in place of the slices."""
    units = tuple(sorted({Neuron.parse(part) for part in given.units.split(",")}))
    if len({unit.basis for unit in units}) > 1:
        raise UsageError(f"expected units of one basis, got {given.units!r}")
    for unit in units:
        check_unit(run, unit)
    regime = direction(run, given.regime)
    baseline = None if given.baseline is None else Baseline(given.baseline)
    if given.where is None:
        return units, regime, baseline, None
    condition, train = condition_of(run, given.where), drawn(run, regime, Part.TRAIN)
    places = train[fires(run, condition)[train]].tolist()
    if not places:
        raise UsageError(
            f"expected a condition that holds on some of {len(train)} train records, got {condition}"
        )
    return units, regime, baseline, {f"train records where {condition}": places}


def _pair(run: Run, units: Units, regime: Regime) -> Fact | None:
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
                value = {**encode(pair), "p": pair.p_value}
                return fact(said, f"c:{chain.pairs_certificate}", value=value)
    return None


def _beside_alone(joint: Certificate, alone: list[Certificate], alpha: float) -> Fact | None:
    """What the units flip together beside what either flips alone, with an exact paired test; None without.

    A record that one alone flips and both together do not, or the other way round, speaks for an interaction.
    """
    if len(alone) < len(joint.units):
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
    value: FactValue = {
        "together": {"flips": len(both), "n": len(tested)},
        "either_alone": {"flips": len(either), "n": len(tested)},
        "each_alone": {one.units[0]: len(flips & tested) for one, flips in zip(alone, each, strict=True)},
        "p": p,
        "alpha": alpha,
    }
    return fact(said, f"c:{joint.id}", *(f"c:{one.id}" for one in alone), value=value)
