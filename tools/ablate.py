"""Ablating units now: their flips on both compact slices, or on the train records where a condition holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mecharule_ops.certificates.certificate import Certificate
from mecharule_ops.errors import UsageError
from mecharule_ops.facts.control_facts import p_words
from mecharule_ops.facts.fact import Fact, FactValue, fact
from mecharule_ops.mcnemar import mcnemar_p
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import find_certificate, keep
from mecharule_ops.run.tabulating import Part, drawn
from mecharule_ops.types import Baseline, Neuron, Regime
from tools._asked import condition_of, direction, records_among, units_of
from tools._counts import flipped_fact, flips_fact, flips_of
from tools.arguments import AblateArguments
from tools.result import Priced, Tell, of_facts

Units = tuple[Neuron, ...]
Slices = Mapping[str, Sequence[int]]


def ablate(run: Run, given: AblateArguments, tell: Tell) -> Priced:
    """What the units flip, ablated together, beside what each flips alone; with a certificate, made now or stored.

    Cost: a completion a record; nothing where the certificate is stored.
    """
    units, regime, baseline, slices = _asked(run, given)
    made = find_certificate(run, units, regime, baseline, slices)
    yield 0 if made else sum(map(len, (slices or run.slices(regime).named).values()))
    own = slices is None and baseline in (None, run.config.baseline)
    if made is None:
        from mecharule_ops.run.certify import certify

        kind = "ablate" if own else "flip"
        made = keep(run, certify(run, units, regime, kind=kind, baseline=baseline, slices=slices))
    key = f"unit{'s' if len(units) > 1 else ''}.{'+'.join(made.units)}"
    flips = flips_fact(made, key)
    if given.baseline is not None:
        said = f"{flips.sentence}, by the baseline {given.baseline}"
        flips = replace(flips, sentence=said, key=f"{flips.key}.{given.baseline}")
    facts = [flips]
    alone = [find_certificate(run, (unit,), regime, baseline, slices) for unit in units]
    if len(units) > 1 and (known := [one for one in alone if one]) and len(known) == len(units):
        facts.append(replace(_beside_alone(made, known, run.config.alpha), key=f"{key}.together"))
    return of_facts([*facts, replace(flipped_fact(made, given.show_text), key=f"{key}.flipped")])


def _asked(run: Run, given: AblateArguments) -> tuple[Units, Regime, Baseline | None, Slices | None]:
    """Units of one basis in order, direction, baseline named, and positions by name in place of the slices."""
    if len({Neuron.parse(part).basis for part in given.units.split(",")}) > 1:
        raise UsageError(f"expected units of one basis, got {given.units!r}")
    units = tuple(sorted(units_of(run, given.units)))
    regime = direction(run, given.regime)
    baseline = None if given.baseline is None else Baseline(given.baseline)
    if given.where is None:
        return units, regime, baseline, None
    condition = condition_of(run, given.where)
    if not (places := records_among(run, regime, Part.TRAIN, given.where).tolist()):
        count = len(drawn(run, regime, Part.TRAIN))
        raise UsageError(f"expected a condition that holds on some of {count} train records, got {condition}")
    return units, regime, baseline, {f"train records where {condition}": places}


def _beside_alone(joint: Certificate, alone: list[Certificate], alpha: float) -> Fact:
    """What the units flip together beside what either flips alone, with an exact paired test.

    A record that one alone flips and both together do not, or the other way round, speaks for an interaction.
    """
    (both, *each), n = flips_of(joint, *alone)
    either = set[int]().union(*each)
    p = mcnemar_p(len(both - either), len(either - both))
    counts = {one.units[0]: len(flips) for one, flips in zip(alone, each, strict=True)}
    names = ", ".join(f"{unit} {count}" for unit, count in counts.items())
    word = "an interaction" if p <= alpha else "no interaction shown"
    said = (
        f"Together they flip {len(both)} of these {n} records, against {len(either)} that at least one alone "
        f"flips (alone: {names}): {word} (exact paired test {p_words(p)}, α = {alpha:g})"
    )
    flips: dict[str, FactValue] = {
        name: {"flips": len(of), "n": n} for name, of in (("together", both), ("either_alone", either))
    }
    sources = [f"c:{one.id}" for one in (joint, *alone)]
    value = {**flips, "each_alone": counts, "p": p, "alpha": alpha, "shown": p <= alpha}
    return fact(said, *sources, value=value)
