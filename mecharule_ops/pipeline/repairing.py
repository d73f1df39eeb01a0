"""Repair: gates are learned on the find records, chosen on the choose records, and the test records score them once.

Every record is in one split. What is compared on the test records beside the gates (the same units always ablated,
random units, shuffled gates, gates over leads alone, a free-form gate) is fixed before they are opened too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Bool

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
from mecharule_ops.pipeline.repair_alternatives import tried_again, with_examples
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
    random_units,
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
    by_policy = {policy: _under(policy, found, request, gates, fires[chosen]) for policy in Policy}
    harm = request.learning.harm
    # The first on a tie: where nothing is gained by several units at once, one is ablated.
    best = max(Policy, key=lambda one: gained(by_policy[one].after[split:], good[split:], harm))
    return Chosen(
        gates=gates,
        policy=best,
        policies=tuple(
            PolicyResult(policy=policy, result=one.of(slice(split, None)))
            for policy, one in by_policy.items()
        ),
        splits=(
            SplitResult(split=Split.FIND, result=by_policy[best].of(slice(split))),
            SplitResult(split=Split.CHOOSE, result=by_policy[best].of(slice(split, None))),
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
    entry = register(chosen)
    tested = opened_test(found, request, chosen.gates, chosen.policy)
    tell(f"{len(found.test):,} test records opened")
    units = units_of(chosen.gates)
    alone = always_ablated(found, request, units)
    controls = (
        *always_controls(tested, alone),
        random_units(found, request, chosen.gates, tested),
        shuffled(found, request, tested, alone),
        other_gates(
            *(found, request, ControlKind.LEAD_ONLY, leads.gates, leads.policy),
            lambda: found.readings(request, found.test, Family.CLEAN_RUN).leads_alone,
        ),
        *([] if learned is None else [_without_proposed(found, request, learned)]),
        *([] if free is None else [free.control(found, request)]),
        other_policy(found, request, chosen.gates, chosen.policy, alone),
        tried_again(found, request, tested),
        *([] if (shown := with_examples(found, request, len(chosen.gates))) is None else [shown]),
    )
    tell(f"{len(controls)} controls on the test records")
    low, high = tested.result.interval
    status = RepairStatus.HELPS if low > 0 else RepairStatus.HARMS if high < 0 else RepairStatus.OPEN
    everything = np.ones(len(tested.before), bool)
    return replace(
        bare,
        status=status,
        splits=(*chosen.splits, SplitResult(split=Split.TEST, result=tested.result)),
        hindsight=Paired.of(tested.before, tested.before | np.array(list(alone.values())).any(0), everything),
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


def _without_proposed(found: Material, request: RepairRequest, learned: Chosen) -> Control:
    """What the learned clauses alone would have come to."""
    return other_gates(
        *(found, request, ControlKind.LEARNED, learned.gates, learned.policy),
        lambda: found.readings(request, found.test),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Under:
    """The find and choose records under one policy."""

    before: Bool[np.ndarray, " learn"]
    after: Bool[np.ndarray, " learn"]
    acted: Bool[np.ndarray, " learn"]

    def of(self, part: slice) -> Paired:
        """Of some of them."""
        return Paired.of(self.before[part], self.after[part], self.acted[part])


def _under(
    policy: Policy, found: Material, request: RepairRequest, gates: Sequence[Gate], fires: np.ndarray
) -> _Under:
    acts = acting_units(gates, fires, policy)
    known = dict(zip(found.units, found.alone, strict=True))
    after = labels_under(found, request, found.learn, acts, known)
    return _Under(before=found.good[found.learn], after=after, acted=acted(acts))


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
    shown = []
    for fixed in (True, False):
        changed = tested.after & ~tested.before if fixed else tested.before & ~tested.after
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
