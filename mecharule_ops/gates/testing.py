"""Gates learned, chosen and tested once: registered before the test records are opened, certified afterwards.

Beside them stands what could be done without their units, fixed before the test records are opened too: the runner-up
written where they act, a solver, and the gates of random units. The solver is trees that say what the right answer is,
from the columns that gates read. It is learned from the find records' answers known to be right, character by
character from the last, so that digits of one place stand together. How sure it is of an answer is the product over
characters.

A certificate has the test records on which a gate acts, each with the unit that is ablated on it: one of those that
were wrong before, one of those right. It shows what the ablations do, not where the gates fire: the rules are in its
claim.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import xgboost as xgb
from jaxtyping import Bool, Float, Float32, Int

from mecharule_ops import errors, mcnemar, thresholds, types
from mecharule_ops.certificates.certificate import Certificate, ExampleRow
from mecharule_ops.codec import decode, encode
from mecharule_ops.engine.settling import Reader
from mecharule_ops.gates.learning import gained
from mecharule_ops.gates.material import Material, Tell, acting_units, chosen, material
from mecharule_ops.gates.outcome import ControlKind, Gate, GatesAsked, GatesControl, GatesStatus, LearnedGates
from mecharule_ops.mechanism.first_order import drops
from mecharule_ops.predicates.cuts import evaluated
from mecharule_ops.rules.boosting import parameters
from mecharule_ops.run import certify, controlling, live_run, opening
from mecharule_ops.store import keys
from mecharule_ops.store.ledger import Ledger, Prediction, TestOutcome

LONGEST = 12
"""Characters of a longer answer are not learned."""
SURE = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1.0)
"""How sure it must be to answer; of 1.0 it never is."""
_OWN = {"objective": "multi:softprob", "eta": 0.3, "subsample": 0.8, "colsample_bynode": 0.3, "max_bin": 64}
"""What its trees have beyond all trees here."""
_DEPTH, _ROUNDS = 6, 60


def opened_test(
    found: Material, gates: tuple[Gate, ...]
) -> tuple[Bool[np.ndarray, " test"], Bool[np.ndarray, " test"], list[ExampleRow]]:
    """(outcomes of the test records under the gates, where one acted, what was written there with the unit ablated).

    Cost: a completion where a gate acts.
    """
    labels, rows = found.good[found.test], list[ExampleRow]()
    acted = np.zeros(len(labels), bool)
    for unit, here in acting_units(gates, found.columns(found.test), len(found.test)).items():
        positions = found.test[here].tolist()
        done = found.engine.completions([(unit,)], positions)
        labels[here], acted[here] = found.asked.regime.flipped(done.labels[0]), True
        decode, records = found.run.subject.decode, found.at(positions)
        rows += certify.rows_from(done, 0, decode, records, ["test"] * len(records), unit=str(unit))
    return labels, acted, rows


def learn_gates(run: live_run.Run, asked: GatesAsked, tell: Tell = lambda line: None) -> LearnedGates:
    """Gates with their one test, kept in the run, which is open for writing. Cost: `material.forwards`."""
    bare = LearnedGates(run=run.id, asked=asked, status=GatesStatus.NOTHING)
    try:
        found = material(run, asked, tell)
    except errors.DegenerateBehaviour:
        return bare
    gates = chosen(found)
    tell(f"{len(gates)} gates chosen")
    if not gates:
        status = GatesStatus.NO_GATE if found.units else GatesStatus.NO_UNIT
        return _kept(run, replace(bare, fresh=found.fresh, status=status))
    strangers = found.on(controlling.same_layers(run, found.units, of="gates")) if asked.random else None
    beside = None if strangers is None else chosen(strangers)
    ledger = Ledger(run.store, lambda event: run.store.append([event]))
    entry = ledger.register(_prediction(run, gates)).id
    labels, acted, rows = opened_test(found, gates)
    result = mcnemar.Paired.of(found.good[found.test], labels, acted)
    low, high = result.interval
    outcome = TestOutcome(value=low, n=result.n, positives=result.fixed + result.broken)
    made = replace(
        bare,
        fresh=found.fresh,
        status=GatesStatus.HELPS if low > 0 else GatesStatus.HARMS if high < 0 else GatesStatus.OPEN,
        gates=gates,
        test=result,
        controls=tuple(_controls(found, labels, acted, beside)),
        certificates=tuple(opening.keep(run, one).id for one in certificates(found, rows)),
        hypothesis=entry,
    )
    with run.store.together():
        ledger.decide(entry, lambda prediction: outcome)
        return _kept(run, made)


def _controls(
    found: Material,
    labels: Bool[np.ndarray, " test"],
    acted: Bool[np.ndarray, " test"],
    beside: tuple[Gate, ...] | None,
) -> Iterator[GatesControl]:
    before, written = found.good[found.test], found.good[found.test]
    written[acted] = runner_up(found, found.test[acted])
    lines = [(ControlKind.RUNNER_UP, written, acted), (ControlKind.SOLVER, *solved(found))]
    if beside is not None:
        lines.append((ControlKind.RANDOM, *opened_test(found, beside)[:2]))
    for kind, other, where in lines:
        ahead = mcnemar.Paired.of(other, labels, np.ones(len(labels), bool))
        yield GatesControl(kind=kind, result=mcnemar.Paired.of(before, other, where), ahead=ahead)


def _prediction(run: live_run.Run, gates: tuple[Gate, ...]) -> Prediction:
    """That these gates help, as a prediction made before the test records are opened."""
    turn = sum(one.test is not None for one in stored(run)) + 1
    return Prediction(
        subject=",".join(dict.fromkeys(str(gate.unit) for gate in gates)),
        statement="ablating these units where their gates fire mends more answers than it breaks",
        condition=" or ".join(f"({gate.rule})" for gate in gates),
        test=f"lower end of the 95 % interval of the change on the test records, in points (opening {turn})",
        threshold=0.0,
    )


def stored(run: live_run.Run) -> tuple[LearnedGates, ...]:
    """All gates that the run holds, in order."""
    return tuple(decode(LearnedGates, row) for row in run.store.find(keys.GATES) or ())


def _kept(run: live_run.Run, made: LearnedGates) -> LearnedGates:
    run.store.put(keys.GATES, [*map(encode, stored(run)), encode(made)])
    return made


def certificates(found: Material, rows: list[ExampleRow]) -> Iterator[Certificate]:
    """One of the records acted on that were wrong before, one of those right, without one that would have no rows."""
    run, words = found.run, found.run.task.words
    units = tuple(dict.fromkeys(types.Neuron.parse(str(row.unit)) for row in rows))
    for label in (bool(found.asked.regime.value), not found.asked.regime.value):
        some = tuple(row for row in rows if row.before.label == label)
        claim = (
            f"gates of {', '.join(map(str, units))} act on {len(some)} test records that were {words.of(label)}; "
            f"{sum(row.flipped for row in some)} of them become {words.of(not label)}"
        )
        if some:
            how, regime = run.intervention(found.asked.basis), types.Regime(int(label))
            yield certify.certified(run, how, units, some, regime=regime, kind="repair", claim=claim)


def runner_up(found: Material, positions: Int[np.ndarray, " some"]) -> Bool[np.ndarray, " some"]:
    """The wanted outcome where the second-best token is written once, at the position of least lead in reach.

    From there the model goes on greedily; a record without a position in reach stays as it is.
    Cost: the clean run's leads, and a completion a record.
    """
    run, task, subject = found.run, found.run.task, found.run.subject
    records, labels = found.at(positions), found.good[positions]
    if not records:
        return labels
    table = run.replacement(run.intervention(found.asked.basis))
    leads = drops(subject, records, {found.asked.basis: table}, found.units[:1]).leads
    lead = np.where(np.isfinite(leads.lead[:, :, 0]), leads.lead[:, :, 0], np.inf)
    at = np.where(np.isfinite(lead).any(1), lead.argmin(1), -1)
    prompts, stop = subject.encode([record.example.prompt for record in records]), subject.stop_ids(task.stop)
    reader = Reader(subject, task, records)
    for place in np.unique(at[at >= 0]).tolist():
        rows = np.flatnonzero(at == place)
        written = [(*records[row].tokens[:place], int(leads.token[row, place, 0])) for row in rows]
        going_on = [one for one, tokens in enumerate(written) if not reader.ended(rows[one], tokens)]
        if going_on:
            begun = [prompts[rows[one]] + written[one] for one in going_on]
            offers = [reader.offers[rows[one]].behind(written[one]) for one in going_on]
            more = subject.generate(begun, task.max_new_tokens - place - 1, stop, offers=offers).tokens
            for one, rest in zip(going_on, more, strict=True):
                written[one] += rest
        labels[rows] = found.answered(positions[rows], list(map(subject.decode, written)))
    return labels


def solver(
    features: Float32[np.ndarray, "known column"],
    answers: Sequence[str],
    asked: Float32[np.ndarray, "record column"],
    seed: int,
) -> tuple[list[str], Float[np.ndarray, " record"]]:
    """(the answer to each record asked, how sure it is), by trees of each place of an answer, the last place first.

    It learns from the answers to known records, and is never sure where they are too long to be learned.
    """
    longest = max(map(len, answers))
    said, sure = np.full(len(asked), "", object), np.full(len(asked), float(longest <= LONGEST))
    for place in range(longest if longest <= LONGEST else 0):
        texts, labels = np.unique([one[::-1][place : place + 1] for one in answers], return_inverse=True)
        likely = np.ones((len(asked), 1))
        if len(texts) > 1:
            settings = {**parameters(_DEPTH, seed), **_OWN, "num_class": len(texts)}
            booster = xgb.train(settings, xgb.DMatrix(features, label=labels, nthread=1), _ROUNDS)
            likely = booster.predict(xgb.DMatrix(asked, nthread=1))
        said = texts.astype(object)[likely.argmax(1)] + said
        sure = sure * likely.max(1)
    return said.tolist(), sure


def sure_enough(
    sure: Float[np.ndarray, " record"],
    right: Bool[np.ndarray, " record"],
    before: Bool[np.ndarray, " record"],
    harm: float,
) -> float:
    """Of `SURE` the level from which on its answers gain most; the highest on a tie."""
    return max(SURE, key=lambda least: (gained(np.where(sure >= least, right, before), before, harm), least))


def solved(found: Material) -> tuple[Bool[np.ndarray, " test"], Bool[np.ndarray, " test"]]:
    """(the wanted outcome of each test record with a solver's answers, where it answered). Cost: no model call.

    It learns on the find records, and the choose records say how sure it must be. Where answers are free texts, or
    none of another record ever fits, it answers nowhere.
    """
    texts, before = found.texts, found.good[found.test]

    def features(positions: Int[np.ndarray, " some"]) -> Float32[np.ndarray, "some column"]:
        columns = found.columns(positions)
        numbers = [column for column in columns.values() if column.dtype.kind in "if"]
        return np.column_stack([evaluated(texts, columns).matrix, *numbers]).astype(np.float32)

    known = {place: answer for place, answer in enumerate(right_answers(found)) if answer is not None}
    asked = np.concatenate([found.choose, found.test])
    learn, answers = features(found.find)[list(known)], list(known.values())
    said, sure = solver(learn, answers, features(asked), found.run.config.seed)
    right, split = found.answered(asked, said), len(found.choose)
    least = sure_enough(sure[:split], right[:split], found.good[found.choose], thresholds.HARM)
    return np.where(sure[split:] >= least, right[split:], before), sure[split:] >= least


def right_answers(found: Material) -> list[str | None]:
    """An answer of the wanted outcome to each find record: its own, else the commonest of others that fits it too."""
    records, good = found.at(found.find), found.good[found.find]
    said = [record.completion.strip() for record in records]
    common = [text for text, _ in Counter(np.array(said, object)[good].tolist()).most_common()]
    wanted, label = not found.asked.regime.value, found.run.task.label

    def fits(place: int, text: str) -> bool:
        return label(records[place].example, text) == wanted

    return [
        next((text for text in ([said[place]] if good[place] else common) if fits(place, text)), None)
        for place in range(len(records))
    ]
