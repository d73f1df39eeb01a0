"""Repair: gates are learned on the find records, chosen on the choose records, and the test records score them once.

Every record is in one split. What is compared on the test records beside the gates (the same units always ablated,
random units, shuffled gates, gates over leads alone, a free-form gate) is fixed before they are opened too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mecharule_ops.findings.repair import (
    Control,
    ControlKind,
    PolicyResult,
    ProposedGates,
    Repair,
    RepairStatus,
    ShownExample,
    Split,
    SplitResult,
)
from mecharule_ops.pipeline.repair_alternatives import (
    runner_up_controls,
    runner_up_material,
    solver,
    without_units,
)
from mecharule_ops.pipeline.repair_candidates import Candidate, offered
from mecharule_ops.pipeline.repair_elsewhere import elsewhere, on_harmless
from mecharule_ops.pipeline.repair_free_form import free_form
from mecharule_ops.pipeline.repair_material import Material, RepairRequest, Tell
from mecharule_ops.pipeline.repair_pairs import pair_effects
from mecharule_ops.pipeline.repair_testing import (
    Tested,
    acted,
    always_ablated,
    always_controls,
    labels_under,
    opened_test,
    other_gates,
    other_policy,
    shuffled,
)
from mecharule_ops.repair.choosing import chosen_gates, expected_gain, gained
from mecharule_ops.repair.gates import Gate, Policy, acting_units, units_of
from mecharule_ops.repair.proposing import GateProposer
from mecharule_ops.repair.readings import Readings
from mecharule_ops.repair.statistics import Paired
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.rules.families import Family

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


def choose(
    found: Material,
    request: RepairRequest,
    readings: Readings | None = None,
    proposer: GateProposer | None = None,
) -> Chosen:
    """Gates from the find and choose records alone; none where none helps.

    Cost: what the family's columns cost on those records, and a forward for each on which gates of several units
    fire. `readings` stand in for the family's. A `proposer` is shown the find records, of the first `request.units`
    units that were tried.
    """
    readings = readings or found.readings(request, found.learn)
    offer = offered(found, request, readings, proposer)
    candidates = offer.candidates
    split, good = len(found.find), found.good[found.learn]
    place = {unit: index for index, unit in enumerate(found.units)}
    fires = np.array([one.fires for one in candidates], bool).reshape(len(candidates), len(good))
    alone = np.array([found.alone[place[one.unit]] for one in candidates], bool).reshape(fires.shape)
    chosen = chosen_gates(
        [one.unit for one in candidates],
        fires[:, split:],
        alone[:, split:],
        good[split:],
        most=request.units,
        each=EACH,
        harm=request.learning.harm,
    )
    gates = tuple(
        _gate(candidates[one], readings.family, fires[one, split:], alone[one, split:], good[split:], request)
        for one in chosen
    )
    acts = {policy: acting_units(gates, fires[chosen], policy) for policy in Policy}
    known, harm = dict(zip(found.units, found.alone, strict=True)), request.learning.harm
    after = {policy: labels_under(found, request, found.learn, acts[policy], known) for policy in Policy}
    # The first on a tie: where nothing is gained by several units at once, one is ablated.
    best = max(Policy, key=lambda one: gained(after[one][split:], good[split:], harm))

    def result(policy: Policy, part: slice) -> Paired:
        return found.paired(found.learn[part], after[policy][part], acted(acts[policy])[part])

    return Chosen(
        gates=gates,
        policy=best,
        policies=tuple(
            PolicyResult(policy=policy, result=result(policy, slice(split, None))) for policy in Policy
        ),
        splits=(
            SplitResult(split=Split.FIND, result=result(best, slice(split))),
            SplitResult(split=Split.CHOOSE, result=result(best, slice(split, None))),
        ),
        candidates=len(candidates),
        proposed=None if proposer is None else offer.came_to(proposer, chosen),
    )


def repair(
    found: Material,
    request: RepairRequest,
    *,
    register: Callable[[Chosen], str] = lambda chosen: "",
    certify: Callable[[Material, Tested, Sequence[Gate]], tuple[str, ...]] = lambda *of: (),
    tell: Tell = lambda line: None,
    proposer: GateProposer | None = None,
) -> Repair:
    """The whole of it. `register` is told the gates before the test records are opened, and gives the entry's id.

    Cost beside the material's: the family's columns on all records, a completion for each test record that a gate
    acts on, and for the controls each chosen unit and as many random ones on the test records.
    """
    bare = Repair(
        run=found.run.id,
        regime=request.regime,
        basis=request.basis,
        family=request.family,
        status=RepairStatus.NO_UNIT,
        seed=found.run.config.seed,
        solution=request.solution,
        tried=len(found.units),
        fresh=found.fresh,
        clusters=found.run.task.cluster_column,
        most=request.units,
        records=request.records,
        harm=request.learning.harm,
        proposer=request.proposer,
    )
    if not found.units:
        return bare
    chosen = choose(found, request, proposer=proposer)
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
    leads = choose(found, request, found.readings(request, found.learn, Family.CLEAN_RUN).leads_alone)
    learned = choose(found, request) if chosen.proposed and chosen.proposed.chosen else None
    free = free_form(found, request) if request.model else None
    runner_up = choose(runner_up_material(found, request), without_units(request))
    ready = solver(found, request)
    strangers = found.on_random_units(request) if request.random else None
    random = choose(strangers, request) if strangers else None
    entry = register(chosen)
    tested = opened_test(found, request, chosen.gates, chosen.policy)
    tell(f"{len(found.test):,} test records opened")
    units = units_of(chosen.gates)
    alone = always_ablated(found, request, units)

    def rivals(kind: ControlKind, made: Chosen | None, readings: Callable[[], Readings]) -> list[Control]:
        """Gates that were made otherwise; none where they were not."""
        return (
            []
            if made is None
            else [other_gates(found, request, tested, kind, made.gates, made.policy, readings)]
        )

    controls = (
        *runner_up_controls(found, request, tested, runner_up.gates),
        *(ready.controls(found, request, tested) if ready else ()),
        *rivals(
            ControlKind.RANDOM_REPAIR, random, lambda: (strangers or found).readings(request, found.test)
        ),
        *always_controls(found, tested, alone),
        shuffled(found, request, tested, alone),
        *rivals(
            ControlKind.LEAD_ONLY,
            leads,
            lambda: found.readings(request, found.test, Family.CLEAN_RUN).leads_alone,
        ),
        *rivals(ControlKind.LEARNED, learned, lambda: found.readings(request, found.test)),
        *([] if free is None else [free.control(found, request, tested)]),
        other_policy(found, request, tested, chosen.gates, chosen.policy, alone),
    )
    tell(f"{len(controls)} controls on the test records")
    low, high = tested.result.interval
    status = RepairStatus.HELPS if low > 0 else RepairStatus.HARMS if high < 0 else RepairStatus.OPEN
    return replace(
        bare,
        status=status,
        splits=(*chosen.splits, SplitResult(split=Split.TEST, result=tested.result)),
        hindsight=found.paired(found.test, found.good[found.test] | np.array(list(alone.values())).any(0)),
        controls=controls,
        pairs=pair_effects(found, request, chosen.gates),
        elsewhere=elsewhere(found, chosen.gates, chosen.policy),
        innocent=on_harmless(found, chosen.gates, chosen.policy, Path(request.harmless))
        if request.harmless
        else None,
        examples=tuple(_examples(found, tested)),
        certificates=certify(found, tested, chosen.gates),
        hypothesis=entry,
    )


def _gate(
    one: Candidate,
    family: Family,
    fires: np.ndarray,
    alone: np.ndarray,
    good: np.ndarray,
    request: RepairRequest,
) -> Gate:
    return Gate(
        unit=one.unit,
        family=family,
        rule=str(Rule((one.clause,))),
        gain=expected_gain(fires, alone, good, request.learning.harm),
        fixed=int((fires & alone & ~good).sum()),
        broken=int((fires & good & ~alone).sum()),
        fired=int(fires.sum()),
    )


def _examples(found: Material, tested: Tested) -> list[ShownExample]:
    """The first records that were fixed, then the first that were broken."""
    shown, before = [], found.good[found.test]
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
