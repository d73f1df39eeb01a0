"""Gates learned, chosen and tested once: registered before the test records are opened, certified afterwards.

The runner-up, the solver and the random units' gates are fixed before the test records are opened too. A certificate
has the test records on which a gate acts, each with the unit that is ablated on it: one of those that were wrong
before, one of those right. It shows what the ablations do, not where the gates fire: the rules are in its claim.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool

from mecharule_ops.certificates.certificate import Certificate, Completion, ExampleRow
from mecharule_ops.codec import decode, encode
from mecharule_ops.errors import DegenerateBehaviour
from mecharule_ops.gates.choosing import NOTHING, acting
from mecharule_ops.gates.controls import runner_up, solved
from mecharule_ops.gates.learning import GateSettings
from mecharule_ops.gates.material import Material, Tell, chosen, firing, material
from mecharule_ops.gates.outcome import ControlKind, Gate, GatesAsked, GatesControl, GatesStatus, LearnedGates
from mecharule_ops.run.certify import certified, example_row
from mecharule_ops.run.controlling import same_layers
from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import keep
from mecharule_ops.store import keys
from mecharule_ops.store.ledger import Ledger, Prediction, TestOutcome
from mecharule_ops.types import Neuron, Regime


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tested:
    """What gates did on the test records."""

    units: list[Neuron | None]
    """The one ablated on each."""
    labels: Bool[np.ndarray, " test"]
    completions: dict[int, Completion]
    """By position among the test records, what was written where a gate acted."""

    @property
    def acted(self) -> Bool[np.ndarray, " test"]:
        """Where a gate acted."""
        return np.array([unit is not None for unit in self.units], bool)


def opened_test(found: Material, gates: tuple[Gate, ...]) -> Tested:
    """The gates on the test records. Cost: a completion where a gate acts."""
    places = acting([gate.gain for gate in gates], firing(gates, found.columns(found.test), len(found.test)))
    units = [None if place == NOTHING else gates[place].unit for place in places]
    labels, completions = found.good[found.test], dict[int, Completion]()
    for unit in dict.fromkeys(filter(None, units)):
        here = [place for place, one in enumerate(units) if one == unit]
        done = found.engine.completions([(unit,)], found.test[here].tolist())
        labels[here] = found.asked.regime.flipped(done.labels[0])
        for place, tokens, label, margin in zip(
            here, done.tokens[0], done.labels[0].tolist(), done.margins[0].tolist(), strict=True
        ):
            text = found.run.subject.decode(tokens)
            completions[place] = Completion(tokens=tokens, text=text, label=label, margin=margin)
    return Tested(units=units, labels=labels, completions=completions)


def learn_gates(
    run: Run,
    asked: GatesAsked,
    tell: Tell = lambda line: None,
    settings: GateSettings | None = None,
) -> LearnedGates:
    """Gates with their one test, kept in the run, which is open for writing. Cost: `material.forwards`."""
    bare = LearnedGates(run=run.id, asked=asked, status=GatesStatus.NOTHING)
    try:
        found = material(run, asked, settings or GateSettings(), tell)
    except DegenerateBehaviour:
        return bare
    bare = replace(bare, fresh=found.fresh, status=GatesStatus.NO_UNIT)
    if not found.units:
        return _kept(run, bare)
    gates, chose = chosen(found)
    tell(f"{len(gates)} gates chosen")
    if not gates:
        return _kept(run, replace(bare, status=GatesStatus.NO_GATE))
    strangers = found.on(same_layers(run, found.units, of="gates")) if asked.random else None
    beside = chosen(strangers)[0] if strangers is not None and strangers.units else ()
    ledger = Ledger(run.store, lambda event: run.store.append([event]))
    entry = ledger.register(_prediction(run, gates)).id
    tested = opened_test(found, gates)
    result = found.paired(found.test, tested.labels, tested.acted)
    low, high = result.interval
    outcome = TestOutcome(value=low, n=result.n, positives=result.fixed + result.broken)
    ledger.decide(entry, lambda prediction: outcome)
    tell(f"{len(found.test):,} test records opened")
    status = GatesStatus.HELPS if low > 0 else GatesStatus.HARMS if high < 0 else GatesStatus.OPEN
    made = replace(
        bare,
        status=status,
        gates=gates,
        chose=chose,
        test=result,
        controls=tuple(_controls(found, tested, strangers, beside)),
        certificates=tuple(keep(run, one).id for one in certificates(found, tested)),
        hypothesis=entry,
    )
    return _kept(run, made)


def _controls(
    found: Material, tested: Tested, strangers: Material | None, beside: tuple[Gate, ...]
) -> Iterator[GatesControl]:
    written, acted = found.good[found.test], tested.acted
    written[acted] = runner_up(found, found.test[acted])
    lines = [(ControlKind.RUNNER_UP, written, acted), (ControlKind.SOLVER, *solved(found))]
    if strangers is not None:
        other = opened_test(strangers, beside)
        lines.append((ControlKind.RANDOM, other.labels, other.acted))
    for kind, labels, where in lines:
        yield GatesControl(
            kind=kind,
            result=found.paired(found.test, labels, where),
            ahead=found.paired(found.test, tested.labels, before=labels),
        )


def _prediction(run: Run, gates: tuple[Gate, ...]) -> Prediction:
    """That these gates help, as a prediction made before the test records are opened."""
    turn = sum(one.test is not None for one in stored(run)) + 1
    return Prediction(
        subject=",".join(dict.fromkeys(str(gate.unit) for gate in gates)),
        statement="ablating these units where their gates fire mends more answers than it breaks",
        condition=" or ".join(f"({gate.rule})" for gate in gates),
        test=f"lower end of the 95 % interval of the change on the test records, in points (opening {turn})",
        threshold=0.0,
    )


def stored(run: Run) -> tuple[LearnedGates, ...]:
    """All gates that the run holds, in order."""
    return tuple(decode(LearnedGates, row) for row in run.store.find(keys.GATES) or ())


def _kept(run: Run, made: LearnedGates) -> LearnedGates:
    """The gates with how often the test records were opened, after storing them."""
    before = stored(run)
    made = replace(made, opened=sum(one.test is not None for one in (*before, made)))
    run.store.put(keys.GATES, [*map(encode, before), encode(made)])
    return made


def certificates(found: Material, tested: Tested) -> Iterator[Certificate]:
    """One of the records acted on that were wrong before, one of those right, without one that would have no rows."""
    run, words = found.run, found.run.task.words
    rows: dict[bool, list[ExampleRow]] = {}
    for place, completion in tested.completions.items():
        record = found.records[found.test[place]]
        row = example_row(record, completion, "test", unit=str(tested.units[place]))
        rows.setdefault(record.label, []).append(row)
    units = tuple(dict.fromkeys(unit for unit in tested.units if unit is not None))
    for label, some in sorted(rows.items(), key=lambda one: one[0] != bool(found.asked.regime.value)):
        flips = sum(row.flipped for row in some)
        claim = (
            f"gates of {', '.join(map(str, units))} act on {len(some)} test records that were {words.of(label)}; "
            f"{flips} of them become {words.of(not label)}"
        )
        how, regime = run.intervention(found.asked.basis), Regime(int(label))
        yield certified(run, how, units, tuple(some), regime=regime, kind="repair", claim=claim)
