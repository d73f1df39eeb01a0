"""Repairs that a run keeps: one made now, or one that the file holds.

One is registered in the ledger before its test, and certified after it: one certificate of the test records that were
wrong before, one of those right. Their rows are the records on which a gate acted, each with the units that are
ablated on it; on the others nothing changes. A certificate shows what the ablations do, not where the gates fire: the
rules are in its claim.
"""

from __future__ import annotations

from dataclasses import replace

from mecharule_ops.certificates.certificate import Certificate, Completion, ExampleRow
from mecharule_ops.codec import encode
from mecharule_ops.errors import DegenerateBehaviour
from mecharule_ops.findings.repair_outcome import ControlKind, Repair, RepairStatus
from mecharule_ops.repair.gates import units_of
from mecharule_ops.repair.material import RepairRequest, Tell, material
from mecharule_ops.repair.proposing import GateProposer
from mecharule_ops.repair.repairing import Chosen, bare_repair, repair
from mecharule_ops.repair.testing import Tested
from mecharule_ops.run.certify import certified, example_row
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import keep
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
    try:
        found = material(run, request, tell)
    except DegenerateBehaviour:
        return bare_repair(run, request, RepairStatus.NOTHING)
    ledger = Ledger(run.store, lambda event: run.store.append([event]))
    made = repair(
        found,
        register=lambda chosen: ledger.register(_prediction(run, wanted, chosen)).id,
        certify=lambda tested: tuple(keep(run, one).id for one in certify_repair(tested)),
        tell=tell,
        proposer=proposer,
    )
    if made.test is not None and made.hypothesis:
        low, _ = made.test.interval
        changed = made.test.fixed + made.test.broken
        outcome = TestOutcome(value=low, n=made.test.n, positives=changed)
        ledger.decide(made.hypothesis, lambda prediction: outcome)
    return _kept(run, made)


def _prediction(run: Run, wanted: str, chosen: Chosen) -> Prediction:
    """That these gates help, as a prediction made before the test records are opened."""
    turn = sum(one.test is not None for one in run.repairs) + 1
    return Prediction(
        subject=",".join(map(str, units_of(chosen.gates))),
        statement=f"ablating these units where their gates fire makes more answers {wanted} than it unmakes",
        condition=" or ".join(f"({gate.rule})" for gate in chosen.gates),
        test=f"lower end of the 95 % interval of the change on the test records, in points (opening {turn})",
        threshold=0.0,
    )


def _kept(run: Run, made: Repair) -> Repair:
    """The repair with how often the test records were opened, after storing it."""
    before = run.repairs
    opened_before = sum(one.test is not None and one.fresh == made.fresh for one in before)
    made = replace(made, opened=opened_before + (made.test is not None))
    run.store.put(keys.REPAIRS, [*map(encode, before), encode(made)])
    return made


def certify_repair(tested: Tested) -> tuple[Certificate, ...]:
    """The certificates, without one that would have no rows. Cost: a completion a row is already there."""
    found = tested.found
    run, units = found.run, units_of(tested.gates)
    rows: dict[bool, list[ExampleRow]] = {}
    for place, ablated in enumerate(tested.acts):
        if not ablated:
            continue
        record, tokens = found.records[found.test[place]], tested.completions[place]
        text = run.subject.decode(tokens)
        label = run.task.label(record.example, text)
        after = Completion(tokens=tokens, text=text, label=label, margin=tested.margins[place])
        row = example_row(record, after, "test", unit="+".join(map(str, ablated)))
        rows.setdefault(record.label, []).append(row)
    made = []
    mended = bool(found.request.regime.value)
    for label in (mended, not mended):
        if label in rows:
            some, words = tuple(rows[label]), run.task.words
            flips = sum(row.flipped for row in some)
            claim = (
                f"gates of {', '.join(map(str, units))} act on {len(some)} test records that were "
                f"{words.of(label)}; {flips} of them become {words.of(not label)}"
            )
            regime = Regime(int(label))
            made.append(
                certified(run, found.intervention, units, some, regime=regime, kind="repair", claim=claim)
            )
    return tuple(made)


def stored(run: Run, request: RepairRequest) -> Repair | None:
    """The last repair of exactly this request; None where the run holds none.

    One whose gates were not tried on harmless requests does not answer a request that names some, nor one without
    random units a request for them.
    """
    wanted = bare_repair(run, request, RepairStatus.NOTHING)
    for one in reversed(run.repairs):
        drawn = any(control.kind is ControlKind.RANDOM_REPAIR for control in one.controls)
        lacks = (request.harmless and one.innocent is None) or (request.random and not drawn)
        if one.asked == wanted.asked and not (one.gates and lacks):
            return one
    return None
