"""Repair: gates are learned on the find records, chosen on the choose records, and the test records score them once.

Every record is in one split. What is compared on the test records beside the gates (the same units always ablated,
random units, shuffled gates, gates over leads alone, a free-form gate) is fixed before they are opened too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from mecharule_ops.findings.repair_outcome import (
    ControlKind,
    Gate,
    Policy,
    PolicyResult,
    ProposedGates,
    Repair,
    RepairControl,
    RepairSplit,
    RepairStatus,
    ShownExample,
    SplitResult,
)
from mecharule_ops.mcnemar import Paired
from mecharule_ops.repair.elsewhere import elsewhere, on_harmless
from mecharule_ops.repair.free_form import free_form
from mecharule_ops.repair.gates import acting_units, chosen_gates, expected_gain, gained, units_of
from mecharule_ops.repair.material import Material, RepairRequest, Tell
from mecharule_ops.repair.proposing import GateProposer, offered
from mecharule_ops.repair.readings import Readings
from mecharule_ops.repair.runner_up import runner_up_controls, runner_up_material
from mecharule_ops.repair.solver import solver
from mecharule_ops.repair.testing import (
    Tested,
    acted,
    always_ablated,
    labels_under,
    opened_test,
    pair_effects,
)
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.rules.families import Family
from mecharule_ops.run.live_run import Run

EACH = 3
"""Clauses a unit, at most."""
SHOWN = 6
"""Examples kept of each kind."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chosen:
    """Gates before the test records are opened."""

    gates: tuple[Gate, ...]
    policy: Policy
    policies: tuple[PolicyResult, ...]
    splits: tuple[SplitResult, ...]
    candidates: int
    """Clauses that were offered."""
    proposed: ProposedGates | None = None


def choose(found: Material, readings: Readings | None = None, proposer: GateProposer | None = None) -> Chosen:
    """Gates from the find and choose records alone; none where none helps.

    Cost: what the family's columns cost on those records, and a forward for each on which gates of several units
    fire. `readings` stand in for the family's. A `proposer` is shown the find records, of the first units that were
    tried, as many as may have gates.
    """
    request, readings = found.request, readings or found.readings(found.learn)
    offer = offered(found, readings, proposer)
    candidates, known, harm = offer.candidates, found.known, request.learning.harm
    split, good = len(found.find), found.good[found.learn]
    fires = np.array([one.fires for one in candidates], bool).reshape(len(candidates), len(good))
    alone = np.array([known[one.unit] for one in candidates], bool).reshape(fires.shape)
    before = good[split:]
    chosen = chosen_gates(
        [one.unit for one in candidates],
        fires[:, split:],
        alone[:, split:],
        before,
        most=request.units,
        each=EACH,
        harm=harm,
    )

    def gate(place: int) -> Gate:
        there, after = fires[place, split:], alone[place, split:]
        return Gate(
            unit=candidates[place].unit,
            family=readings.family,
            rule=str(Rule((candidates[place].clause,))),
            gain=expected_gain(there, after, before, harm),
            fixed=int((there & after & ~before).sum()),
            broken=int((there & before & ~after).sum()),
            fired=int(there.sum()),
        )

    gates = tuple(map(gate, chosen))
    acts = {policy: acting_units(gates, fires[chosen], policy) for policy in Policy}
    after = {policy: labels_under(found, found.learn, acts[policy], known) for policy in Policy}
    # The first on a tie: where nothing is gained by several units at once, one is ablated.
    best = max(Policy, key=lambda one: gained(after[one][split:], before, harm))

    def result(policy: Policy, part: slice) -> Paired:
        return found.paired(found.learn[part], after[policy][part], acted(acts[policy])[part])

    return Chosen(
        gates=gates,
        policy=best,
        policies=tuple(
            PolicyResult(policy=policy, result=result(policy, slice(split, None))) for policy in Policy
        ),
        splits=(
            SplitResult(split=RepairSplit.FIND, result=result(best, slice(split))),
            SplitResult(split=RepairSplit.CHOOSE, result=result(best, slice(split, None))),
        ),
        candidates=len(candidates),
        proposed=None if proposer is None else offer.came_to(proposer, chosen),
    )


def bare_repair(run: Run, request: RepairRequest, status: RepairStatus) -> Repair:
    """A repair that came to nothing but this."""
    return Repair(
        run=run.id,
        regime=request.regime,
        basis=request.basis,
        family=request.family,
        status=status,
        seed=run.config.seed,
        solution=request.solution,
        tried=0,
        fresh=True,
        most=request.units,
        records=request.records,
        harm=request.learning.harm,
        proposer=request.proposer,
    )


def repair(
    found: Material,
    *,
    register: Callable[[Chosen], str] = lambda chosen: "",
    certify: Callable[[Tested], tuple[str, ...]] = lambda tested: (),
    tell: Tell = lambda line: None,
    proposer: GateProposer | None = None,
) -> Repair:
    """The whole of it. `register` is told the gates before the test records are opened, and gives the entry's id.

    Cost beside the material's: the family's columns on all records, a completion for each test record that a gate
    acts on, and for the controls each chosen unit and as many random ones on the test records.
    """
    run, request = found.run, found.request
    bare = replace(
        bare_repair(run, request, RepairStatus.NO_UNIT),
        tried=len(found.units),
        fresh=found.fresh,
        clusters=run.task.cluster_column,
    )
    if not found.units:
        return bare
    chosen = choose(found, proposer=proposer)
    tell(f"{chosen.candidates} clauses of {len(found.units)} units, {len(chosen.gates)} gates chosen")
    bare = replace(
        bare,
        splits=chosen.splits,
        gates=chosen.gates,
        policy=chosen.policy,
        policies=chosen.policies,
        proposed=chosen.proposed,
    )
    if not chosen.gates:
        return replace(bare, status=RepairStatus.NO_GATE if chosen.candidates else RepairStatus.NO_RULE)
    leads = choose(found, found.readings(found.learn, Family.CLEAN_RUN).leads_alone)
    learned = choose(found) if chosen.proposed and chosen.proposed.chosen else None
    free = free_form(found) if request.model else None
    runner_up = choose(runner_up_material(found))
    ready = solver(found)
    strangers = found.on_random_units() if request.random else None
    random = choose(strangers) if strangers else None
    entry = register(chosen)
    tested = opened_test(found, chosen.gates, chosen.policy)
    tell(f"{len(found.test):,} test records opened")
    alone = always_ablated(found, units_of(chosen.gates))

    def other(kind: ControlKind, made: Chosen, readings: Callable[[], Readings]) -> RepairControl:
        return tested.other_gates(kind, made.gates, made.policy, readings)

    controls = [*runner_up_controls(tested, runner_up.gates), *(ready.controls(tested) if ready else ())]
    if strangers and random:
        controls.append(other(ControlKind.RANDOM_REPAIR, random, partial(strangers.readings, found.test)))
    controls += [tested.beside(ControlKind.ALWAYS, str(unit), labels) for unit, labels in alone.items()]
    controls.append(tested.shuffled(alone))
    controls.append(
        other(ControlKind.LEAD_ONLY, leads, lambda: found.readings(found.test, Family.CLEAN_RUN).leads_alone)
    )
    if learned:
        controls.append(other(ControlKind.LEARNED, learned, lambda: found.readings(found.test)))
    if free:
        controls.append(free.control(tested))
    controls.append(tested.other_policy(alone))
    tell(f"{len(controls)} controls on the test records")
    low, high = tested.result.interval
    status = RepairStatus.HELPS if low > 0 else RepairStatus.HARMS if high < 0 else RepairStatus.OPEN
    harmless = (
        on_harmless(found, chosen.gates, chosen.policy, Path(request.harmless)) if request.harmless else None
    )
    return replace(
        bare,
        status=status,
        splits=(*chosen.splits, SplitResult(split=RepairSplit.TEST, result=tested.result)),
        hindsight=found.paired(found.test, found.good[found.test] | np.array(list(alone.values())).any(0)),
        controls=tuple(controls),
        pairs=pair_effects(found, chosen.gates),
        elsewhere=elsewhere(found, chosen.gates, chosen.policy),
        innocent=harmless,
        examples=tuple(_examples(tested)),
        certificates=certify(tested),
        hypothesis=entry,
    )


def _examples(tested: Tested) -> list[ShownExample]:
    """The first records that were fixed, then the first that were broken."""
    shown, found = [], tested.found
    before = found.good[found.test]
    for fixed in (True, False):
        changed = tested.after & ~before if fixed else before & ~tested.after
        for place in np.flatnonzero(changed)[:SHOWN].tolist():
            record, (unit, *others) = found.records[found.test[place]], tested.acts[place]
            shown.append(
                ShownExample(
                    prompt=record.example.prompt,
                    unit=unit,
                    others=tuple(others),
                    before=record.completion,
                    after=found.run.subject.decode(tested.completions[place]),
                    fixed=fixed,
                )
            )
    return shown
