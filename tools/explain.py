"""What is known of a unit beyond the search: when it flips, how its flips come about, and what stands beside it.

Read from the run; what is missing is measured at one price, certified and kept.
"""

from collections.abc import Iterator
from functools import partial
from typing import get_args

from mecharule_ops.errors import UsageError
from mecharule_ops.facts.account_facts import comparison_facts, drive_facts
from mecharule_ops.facts.chain_facts import chain_facts
from mecharule_ops.facts.fact import Fact
from mecharule_ops.findings.controls import decided
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import findings_of, keep
from mecharule_ops.store import keys
from mecharule_ops.thresholds import RANDOM_UNITS
from mecharule_ops.types import Neuron, Regime
from tools._asked import unit_and_regime, units_of
from tools._counts import controls_facts
from tools.arguments import ExplainArguments, Explained
from tools.result import About, Priced, Tell, of_facts

DRIVE, COMPARISON, CHAIN, CONTROLS = get_args(Explained)


def explain(run: Run, given: ExplainArguments, tell: Tell) -> Priced:
    """The verdict of each part, then its numbers link by link.

    Cost: about as many ablated completions as each part takes that is asked for and missing.
    """
    unit, regime = unit_and_regime(run, given.neuron, given.regime)
    parts, price = (given.parts or ",".join(get_args(Explained))).replace(" ", "").split(","), 0
    if unknown := [part for part in parts if part not in get_args(Explained)]:
        raise UsageError(f"expected parts of {', '.join(get_args(Explained))}; got {unknown[0]!r}")
    drive, chain, plan = run.account(unit, regime), run.chain(unit, regime), None
    wanted = {DRIVE: drive_facts, COMPARISON: comparison_facts}
    account_asked = [made for part, made in wanted.items() if part in parts]
    if account_asked and drive is None:
        from mecharule_ops.run.accounting import account_forwards

        price += account_forwards(run, regime)
    if CHAIN in parts:
        held = None if given.hold is None else units_of(run, given.hold)
        if held and unit in held:
            raise UsageError(f"expected other units than {unit} to hold, got it itself")
        unheld = {*map(str, held or ())}
        if chain is not None:
            unheld -= {one.held for one in chain.mediation.through} | {one.other for one in chain.pairs}
        if chain is None or unheld:
            from mecharule_ops.run import chains

            plan = chains.chain_plan(run, findings_of(run), unit, regime, held=held)
            price += plan.example_forwards
    if CONTROLS in parts and run.controls(unit, regime) is None:
        from mecharule_ops.run.controlling import OF_LAYER, control_records

        units = _drawn(run) + OF_LAYER + 1
        price += units * len(control_records(run, regime)) + 2 * len(run.slices(regime).positions)
    yield price
    facts: list[Fact] = []
    if account_asked and drive is None:
        from mecharule_ops.run.accounting import kept_accounts, observe_further

        observe_further(run)
        (drive,) = kept_accounts(run, [unit], regime, lambda event: run.store.append([event]))
    for made in account_asked:
        assert drive is not None
        facts += made(drive, run.id)
    if CHAIN in parts:
        if plan is not None:
            chain = chains.kept_chain(run, plan, partial(keep, run))
        assert chain is not None
        facts += chain_facts(chain, run.id)
    if CONTROLS in parts:
        facts += _controls_facts(run, unit, regime)
    return of_facts(facts)


def _controls_facts(run: Run, unit: Neuron, regime: Regime) -> Iterator[Fact]:
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
    yield from controls_facts(controls, main, run.config.tau, About.of_unit(run, unit))


def _drawn(run: Run) -> int:
    """Random units to draw: as many as a run does unasked, whatever fewer this one asked for."""
    return max(run.config.controls, RANDOM_UNITS)
