"""What is known of a unit beyond the search: when it flips, how its flips come about, and what stands beside it.

Read from the run; what is missing is measured at one price, certified and kept.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any, get_args

from mecharule_ops import errors, numbers, thresholds, types
from mecharule_ops.certificates.certificate import Certificate, ablated
from mecharule_ops.facts import fact, unit_facts
from mecharule_ops.findings.controls import decided
from mecharule_ops.run import live_run, opening
from mecharule_ops.store import keys
from tools import _asked, _counts, arguments, result

RANDOM_SETS = 3
"""Random sets beside each set of found units that is kept."""
DRIVE, COMPARISON, CHAIN, CONTROLS = get_args(arguments.Explained)


def explain(run: live_run.Run, given: arguments.ExplainArguments, tell: result.Tell) -> result.Priced:
    """The verdict of each part, then its numbers link by link.

    Cost: about as many ablated completions as each part takes that is asked for and missing.
    """
    if given.suffices:
        if given.parts or given.hold:
            raise errors.UsageError("expected --suffices without --parts and --hold, which are of one unit")
        return (yield from _suffices(run, given))
    if not given.neuron:
        raise errors.UsageError("expected a unit, got none; or --suffices for all that the run found")
    unit, regime = _asked.unit_and_regime(run, given.neuron, given.regime)
    parts, price = (given.parts or ",".join(get_args(arguments.Explained))).replace(" ", "").split(","), 0
    if unknown := [part for part in parts if part not in get_args(arguments.Explained)]:
        raise errors.UsageError(
            f"expected parts of {', '.join(get_args(arguments.Explained))}; got {unknown[0]!r}"
        )
    drive, chain, plan = run.account(unit, regime), run.chain(unit, regime), None
    wanted = {DRIVE: unit_facts.drive_facts, COMPARISON: unit_facts.comparison_facts}
    account_asked = [made for part, made in wanted.items() if part in parts]
    if account_asked and drive is None:
        from mecharule_ops.run import accounting

        price += accounting.account_forwards(run, regime)
    if CHAIN in parts:
        held = None if given.hold is None else _asked.units_of(run, given.hold)
        if held and unit in held:
            raise errors.UsageError(f"expected other units than {unit} to hold, got it itself")
        unheld = {*map(str, held or ())}
        if chain is not None:
            unheld -= {one.held for one in chain.mediation.through} | {one.other for one in chain.pairs}
        if chain is None or unheld:
            from mecharule_ops.run import chains

            plan = chains.chain_plan(run, opening.findings_of(run), unit, regime, held=held)
            price += plan.example_forwards
    if CONTROLS in parts and run.controls(unit, regime) is None:
        from mecharule_ops.run.controlling import OF_LAYER, control_records

        units = _drawn(run) + OF_LAYER + 1
        price += units * len(control_records(run, regime)) + 2 * len(run.slices(regime).positions)
    yield price
    facts: list[fact.Fact] = []
    if account_asked and drive is None:
        accounting.observe_further(run)
        (drive,) = accounting.kept_accounts(run, [unit], regime, lambda event: run.store.append([event]))
    for made in account_asked:
        assert drive is not None
        facts += made(drive, run.id)
    if CHAIN in parts:
        if plan is not None:
            chain = chains.kept_chain(run, plan, partial(opening.keep, run))
        assert chain is not None
        facts += unit_facts.chain_facts(chain, run.id)
    if CONTROLS in parts:
        facts += _controls_facts(run, unit, regime)
    return result.of_facts(facts)


def _suffices(run: live_run.Run, given: arguments.ExplainArguments) -> result.Priced:
    """How many answers kept aside survive with the strongest k found units kept and all others of the basis ablated.

    Beside random sets of the same size and layers, and none: k doubles up to all that were found. Cost: as many
    completions an answer as there are sets.
    """
    from mecharule_ops.run import certify, controlling

    regime = _asked.direction(run, given.regime)
    found: Sequence[types.Neuron] = [unit.neuron for unit in opening.findings_of(run).explained(regime)]
    if given.neuron:
        found = _asked.units_of(run, given.neuron)
    if not found:
        raise errors.ClaimNotSupported(f"run {run.id} found no unit ({regime.arrow}) that could suffice")
    records, plans = controlling.control_records(run, regime).tolist(), []
    for basis in dict.fromkeys(unit.basis for unit in found):
        units = [unit for unit in found if unit.basis is basis]
        sizes = sorted({*(1 << power for power in range(len(units).bit_length())), len(units)})
        sets = [("none", ()), *(("found", tuple(units[:size])) for size in sizes)]
        for draw, size in product(range(RANDOM_SETS), sizes):
            sets.append(("random", tuple(controlling.same_layers(run, units[:size], f"kept {draw}"))))
        distinct = {frozenset(group): (name, group) for name, group in reversed(sets)}
        plans.append((basis, [*reversed(distinct.values())]))
    stored = [one for one in run.store.certificates() if (one.kind, one.regime) == ("suffices", regime.value)]
    known = {tuple((total.slice, total.unit) for total in one.totals): one for one in stored}
    asked = [tuple((name, "+".join(map(str, group))) for name, group in sets) for _, sets in plans]
    yield sum(len(names) for names in asked if names not in known) * len(records)
    facts: list[fact.Fact] = []
    for (basis, sets), names in zip(plans, asked, strict=True):
        made = known.get(names) or opening.keep(run, certify.certify_kept(run, sets, regime, records))
        facts += _kept_facts(made, basis, "" if given.neuron else ", chosen by their flips on these answers,")
    return result.of_facts(facts)


def _kept_facts(made: Certificate, basis: types.Basis, chosen: str) -> Iterator[fact.Fact]:
    """What survives of every set, from the certificate's rows."""
    of = result.About(f"suffices.{basis.value}.{made.regime}", f"c:{made.id}")
    saved: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for total in made.totals:
        saved[total.slice, len(ablated(made.units, total.unit))].append(total.n - total.flips)
    n, most = made.totals[0].n, max(size for _, size in saved)
    curve: list[dict[str, Any]] = [
        {"kept": size, "survive": counts[0], "random": list(saved.get(("random", size), ()))}
        for (name, size), counts in sorted(saved.items())
        if name == "found"
    ]
    (none,), (all_found,) = saved["none", 0], saved["found", most]
    random = ", ".join(map(str, saved.get(("random", most), ()))) or "not drawn, there is no other"
    value: fact.FactValue = {"kept": most, "survive": all_found, "n": n, "none": none, "curve": curve}
    same = "right" if made.regime == types.Regime.BASELINE_POSITIVE.value else "not right"
    parts = {"units": numbers.plural(most, basis.row.noun), "random": random, "chosen": chosen, "same": same}
    yield of.told("all", "suffices.all", value, **parts)
    said = "; ".join(
        f"{one['kept']}: {one['survive']} (random {', '.join(map(str, one['random'])) or 'not drawn'})"
        for one in curve
    )
    yield of.told("curve", "suffices.curve", curve, said=said, n=n)


def _controls_facts(run: live_run.Run, unit: types.Neuron, regime: types.Regime) -> Iterator[fact.Fact]:
    """What the run's report says of units beside it, or the same made now, corrected for no other unit."""
    from mecharule_ops.run.localise import flips_on

    controls = run.controls(unit, regime)
    if controls is None:
        from mecharule_ops.run.controlling import beside

        fresh = beside(run, [unit], regime, _drawn(run))
        (controls,) = decided(fresh, alpha=run.config.alpha, epsilon=run.config.epsilon)
        run.keep_of_unit(keys.of_unit(keys.CONTROLS, unit, regime), controls)
    slices = run.slices(regime).named.values()
    (main,) = flips_on(run, regime, run.intervention(unit.basis), [(unit,)], slices)
    yield from _counts.controls_facts(controls, main, run.config.tau, result.About.of_unit(run, unit))


def _drawn(run: live_run.Run) -> int:
    """Random units to draw: as many as a run does unasked, whatever fewer this one asked for."""
    return max(run.config.controls, thresholds.RANDOM_UNITS)
