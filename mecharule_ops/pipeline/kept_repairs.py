"""Repairs that a run keeps: one made now, registered in the ledger before its test, or one that the file holds."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from mecharule_ops.codec import encode
from mecharule_ops.errors import DegenerateBehaviour
from mecharule_ops.events import Event
from mecharule_ops.findings.repair import ControlKind, Repair, RepairStatus
from mecharule_ops.pipeline.opening import keep
from mecharule_ops.pipeline.repair_material import (
    RANKED_ON,
    RepairRequest,
    Tell,
    fresh_examples,
    material,
)
from mecharule_ops.pipeline.repairing import Chosen, repair
from mecharule_ops.pipeline.run import Run
from mecharule_ops.repair.gates import units_of
from mecharule_ops.repair.proposing import GateProposer
from mecharule_ops.store import keys
from mecharule_ops.store.ledger import Ledger, Prediction, TestOutcome
from mecharule_ops.types import Regime


def mended_regime(run: Run) -> Regime:
    """The outcome that is mended unless another is named: failures, or successes where those are harm."""
    return Regime(int(run.task.words.success_is_harm))


def new_repair(
    run: Run,
    request: RepairRequest,
    wanted: str,
    tell: Tell = lambda line: None,
    proposer: GateProposer | None = None,
) -> Repair:
    """A new repair, kept in the run, which is open for writing, with its certificates.

    `wanted` is the task's word for what the gates should make of an answer. Cost: `repair_forwards`, and what the
    proposer asks of a language model.
    """
    from mecharule_ops.pipeline.certify_repair import certify_repair

    try:
        found = material(run, request, tell)
    except DegenerateBehaviour:
        return _nothing(run, request)
    ledger = Ledger(run.store, partial(_told, run))
    made = repair(
        found,
        request,
        register=partial(_registered, run, ledger, wanted),
        certify=lambda found, tested, gates: tuple(
            keep(run, one).id for one in certify_repair(found, tested, gates, request.regime)
        ),
        tell=tell,
        proposer=proposer,
    )
    _decided(ledger, made)
    return _kept(run, made)


def _told(run: Run, event: Event) -> None:
    """Keeps an event of the ledger."""
    run.store.append([event])


def _registered(run: Run, ledger: Ledger, wanted: str, chosen: Chosen) -> str:
    """The ledger's entry of the prediction that these gates help, made before the test records are opened."""
    turn = sum(one.test is not None for one in run.repairs) + 1
    prediction = Prediction(
        subject=",".join(map(str, units_of(chosen.gates))),
        statement=f"ablating these units where their gates fire makes more answers {wanted} than it unmakes",
        condition=" or ".join(f"({gate.rule})" for gate in chosen.gates),
        test=f"lower end of the 95 % interval of the change on the test records, in points (opening {turn})",
        threshold=0.0,
    )
    return ledger.register(prediction).id


def _decided(ledger: Ledger, made: Repair) -> None:
    """Enters the test's outcome."""
    if made.test is None or not made.hypothesis:
        return
    result = made.test
    changed = result.fixed + result.broken
    ledger.decide(
        made.hypothesis, lambda _: TestOutcome(value=result.interval[0], n=result.n, positives=changed)
    )


def _kept(run: Run, made: Repair) -> Repair:
    """The repair with how often the test records were opened, after storing it."""
    before = run.repairs
    opened_before = sum(one.test is not None and one.fresh == made.fresh for one in before)
    made = replace(made, opened=opened_before + (made.test is not None))
    run.store.put(keys.REPAIRS, [*map(encode, before), encode(made)])
    return made


def _nothing(run: Run, request: RepairRequest) -> Repair:
    return Repair(
        run=run.id,
        regime=request.regime,
        basis=request.basis,
        family=request.family,
        status=RepairStatus.NOTHING,
        seed=run.config.seed,
        solution=request.solution,
        tried=0,
        fresh=True,
        most=request.units,
        records=request.records,
        harm=request.learning.harm,
        proposer=request.proposer,
    )


def stored(run: Run, request: RepairRequest) -> Repair | None:
    """The last repair of exactly this request; None where the run holds none.

    One whose gates were not tried on harmless requests does not answer a request that names some, nor one without
    random units a request for them.
    """
    wanted = (
        *(request.regime, request.basis, request.family, request.solution),
        *(request.units, request.records, request.learning.harm, request.proposer),
    )
    fitting = [
        one
        for one in run.repairs
        if (
            *(one.regime, one.basis, one.family, one.solution),
            *(one.most, one.records, one.harm, one.proposer),
        )
        == wanted
        and (one.innocent is not None or not one.gates or not request.harmless)
        and (
            not one.gates
            or not request.random
            or any(beside.kind is ControlKind.RANDOM_REPAIR for beside in one.controls)
        )
    ]
    return fitting[-1] if fitting else None


def repair_forwards(run: Run, request: RepairRequest) -> int:
    """Example-forwards that a repair costs, nearly all of them those of the tried units."""
    records = len(fresh_examples(run, request)) or len(run.observed.records)
    learn = 2 * records // 3
    units = request.tried if request.budget is None else min(request.tried, max(1, request.budget // learn))
    # Each chosen unit, shuffled ones, gates over leads, the other policy, the runner-up everywhere, random units.
    controls = (request.units + 4) * (records - learn) + learn + request.random * units * learn
    # Several units at once, of the gates, of those over leads and of the random repair's.
    policies = 3 * learn
    return units * learn + 2 * request.tried * min(RANKED_ON, learn // 2) + policies + controls
