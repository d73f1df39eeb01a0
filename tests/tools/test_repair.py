"""The verb `repair`: kept, registered before its test, certified, verified, exported; no gate helping is said too."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from bundled_run import opened

from mecharule_ops.certificates.verification import inconsistencies
from mecharule_ops.errors import UsageError
from mecharule_ops.events import CertificateWritten, HypothesisDecided, HypothesisRegistered
from mecharule_ops.findings.repair_outcome import (
    ControlKind,
    Gate,
    Policy,
    Repair,
    RepairSplit,
    RepairStatus,
)
from mecharule_ops.repair import load_gate, runner_up
from mecharule_ops.repair.gate_folder import GATE, VALUES
from mecharule_ops.repair.gates import units_of
from mecharule_ops.repair.learning import GateSettings
from mecharule_ops.repair.material import (
    Material,
    RepairRequest,
    fresh_examples,
    material,
    repair_forwards,
)
from mecharule_ops.repair.readings import firing
from mecharule_ops.repair.repairing import choose
from mecharule_ops.repair.repairing import repair as repaired
from mecharule_ops.repair.runner_up import runner_up_controls, runner_up_material, runner_up_written
from mecharule_ops.repair.solver import right_answers, solver
from mecharule_ops.repair.testing import always_ablated, opened_test, pair_effects
from mecharule_ops.rules.families import Family
from mecharule_ops.run.live_run import Run
from mecharule_ops.saying.repair_facts import deciding_sentence
from tools import repair as tool
from tools.arguments import RepairArguments as Arguments
from tools.registry import call

LOOSE = GateSettings(caution=0.0, harm=1.0, least_fixed=2)
"""Gates are learned without caution, so that a small table gives some."""
SMALL = {"records": 900, "tried": 6, "units": 3, "yes": True, "solution": True}


@pytest.fixture(autouse=True)
def _its_folder(copied_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MECHARULE_RUNS", str(copied_run.parent))


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gates are learned without caution, so that a small table gives some."""
    plain = tool.request_of

    def asked(run: Run, given: Arguments) -> RepairRequest:
        return replace(plain(run, given), learning=LOOSE)

    monkeypatch.setattr(tool, "request_of", asked)


def last(path: Path) -> Repair:
    with opened(path, read_only=True) as run:
        return run.repairs[-1]


@pytest.mark.usefixtures("eager")
def test_a_repair_is_registered_tested_certified_and_exported(copied_run: Path, tmp_path: Path) -> None:
    """In this order; its counts are those of its certificates, which run again on the reference path."""
    result = call("repair", {"what": "last", **SMALL})
    found = last(copied_run)
    assert result.exit_code == 0
    assert found.test is not None
    assert found.opened == 1
    assert {one.kind for one in found.controls} == {
        ControlKind.RUNNER_UP,
        ControlKind.RUNNER_UP_RULES,
        ControlKind.SOLVER,
        ControlKind.SOLVER_ALONE,
        ControlKind.RANDOM_REPAIR,
        ControlKind.ALWAYS,
        ControlKind.SHUFFLED,
        ControlKind.LEAD_ONLY,
        ControlKind.TOGETHER if found.policy is Policy.ONE else ControlKind.LARGEST,
    }
    assert "this model cannot read it" in " ".join(result.text.split()), "seventeen characters and no letter"
    with opened(copied_run, read_only=True) as run:
        certificates = [run.store.certificate(one) for one in found.certificates]
        told = [event for _, _, event in run.store.events()]
    flips = {one.regime: sum(row.flipped for row in one.rows) for one in certificates}
    assert flips.get(0, 0) == found.test.fixed
    assert flips.get(1, 0) == found.test.broken
    assert sum(len(one.rows) for one in certificates) == found.test.acted
    assert all(inconsistencies(one) == () for one in certificates)
    kinds = [type(event) for event in told]
    order = [kinds.index(one) for one in (HypothesisRegistered, HypothesisDecided)]
    assert order == sorted(order)
    cited = [place for place, one in enumerate(told) if isinstance(one, CertificateWritten)]
    assert order[0] < cited[-1], "registered before the test's certificates exist"
    checked = call("verify", {"what": found.certificates[0]})
    assert checked.data["matched"] == 1
    folder = tmp_path / "gates"
    call("repair", {"what": "export", "run": "last", "folder": str(folder)})
    assert {file.name for file in folder.iterdir()} == {GATE, VALUES}
    assert load_gate(folder).stated.gates == found.gates
    again = call("repair", {"what": "last", **SMALL})
    assert again.text == result.text, "a repair that the run holds is read"
    call("repair", {"what": "last", **SMALL, "again": True})
    assert last(copied_run).opened == 2


def test_that_no_gate_helps_is_a_report(copied_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 0, the reason, and the test records stay closed."""
    monkeypatch.setattr(tool, "request_of", lambda run, given: harsh(given))
    result = call("repair", {"what": "last", **SMALL})
    found = last(copied_run)
    assert result.exit_code == 0
    assert found.status is RepairStatus.NO_RULE
    assert found.test is None
    assert found.opened == 0
    assert "no rule was found" in " ".join(result.text.split())
    assert "The test records were not opened" in " ".join(result.text.split())


def harsh(given: object) -> RepairRequest:
    """A broken answer weighs a thousand fixed ones, and many fixed ones are asked of a clause."""
    return RepairRequest(records=900, tried=6, units=3, learning=GateSettings(harm=1000.0, least_fixed=200))


@pytest.fixture(scope="module")
def found(finished_run: Path) -> Iterator[Material]:
    """Records in three splits and what six units do."""
    with opened(finished_run, read_only=True) as run:
        yield material(run, RepairRequest(records=900, tried=6))


def test_splits_are_disjoint_and_fresh(found: Material) -> None:
    """No record is in two splits, and none is the run's own."""
    parts = [set(part.tolist()) for part in (found.find, found.choose, found.test)]
    assert sum(map(len, parts)) == len(set.union(*parts)) == len(found.records) == 900
    assert found.fresh
    own = {record.example.id for record in found.run.records}
    assert own.isdisjoint(record.example.id for record in found.records)


def test_outcomes_of_the_test_records_are_not_measured_before(found: Material) -> None:
    """The table of outcomes has a column for each find and choose record and no more."""
    assert found.alone.shape == (len(found.units), len(found.find) + len(found.choose))


@pytest.mark.parametrize("family", list(Family), ids=str)
def test_what_chooses_never_sees_the_test_records(found: Material, family: Family) -> None:
    """With the test records' labels turned round the same gates come out."""
    asked = RepairRequest(
        records=900,
        tried=6,
        units=3,
        family=family,
        learning=LOOSE,
    )
    good = found.good.copy()
    good[found.test] = ~good[found.test]
    here = found.under(asked)
    turned = replace(here, good=good, _read={}, _random=[])
    for own, other in ((here, turned), (here.on_random_units(), turned.on_random_units())):
        assert choose(own).gates == choose(other).gates
    own, other = solver(here), solver(turned)
    assert own is not None
    assert other is not None
    assert (own.least, own.texts) == (other.least, other.texts)
    one, another = (choose(runner_up_material(each)) for each in (here, turned))
    assert one.gates == another.gates


def test_the_test_result_is_that_of_the_units_alone(found: Material) -> None:
    """Where a gate acts the outcome is its unit's, elsewhere the record's own."""
    asked = RepairRequest(
        records=900,
        tried=6,
        units=3,
        solution=True,
        learning=LOOSE,
    )
    made = repaired(found.under(asked))
    assert made.test is not None
    assert made.hindsight is not None
    assert made.test.after <= made.hindsight.after or made.policy is Policy.ALL
    split = made.of(RepairSplit.CHOOSE)
    assert split is not None
    assert split.fixed > split.broken
    shuffled = next(one.result for one in made.controls if one.kind is ControlKind.SHUFFLED)
    assert shuffled.acted == made.test.acted


@pytest.mark.slow
def test_pairs_and_both_policies_are_what_ablating_them_does(found: Material) -> None:
    """Counts of a pair are those of groups asked one record at a time, where gates of both units fire."""
    rules = ("a >= 50", "op == '-'", "b >= 20")
    gates = [
        Gate(unit=unit, family=Family.INPUT, rule=rule, gain=gain, fixed=1, broken=0, fired=2)
        for unit, rule, gain in zip(found.units, rules, (0.1, 0.3, 0.2), strict=False)
    ]
    readings, wrong = found.readings(found.choose), found.request.regime.value
    fires = firing(gates, readings)
    pairs = pair_effects(found, gates)
    assert len(pairs) == 3
    for pair in pairs:
        own = [
            [gate for gate, one in enumerate(gates) if one.unit == unit] for unit in (pair.first, pair.second)
        ]
        places = [place for place in range(len(found.choose)) if all(fires[one, place].any() for one in own)]
        records = [int(found.choose[place]) for place in places]
        group = (pair.first, pair.second)
        both = [
            bool(found.engine.evaluate([group], [record]).labels[0, 0]) != bool(wrong) for record in records
        ]
        alone = [
            bool(found.engine.evaluate([group[:1]], [record]).labels[0, 0]) != bool(wrong)
            for record in records
        ]
        before = found.good[records]
        assert (pair.both.before, pair.both.after) == (before.sum(), sum(both))
        assert (pair.alone.before, pair.alone.after) == (before.sum(), sum(alone))
        assert (pair.added.before, pair.added.after) == (sum(alone), sum(both))
    alone = always_ablated(found, units_of(gates))
    tested, largest = opened_test(found, gates, Policy.ALL), opened_test(found, gates, Policy.ONE)
    together = tested.result
    assert largest.other_policy(alone).result == together
    assert tested.other_policy(alone).result == largest.result
    fires = firing(gates, found.readings(found.test))
    outcomes = []
    for place, record in enumerate(found.test.tolist()):
        group = tuple(dict.fromkeys(one.unit for gate, one in enumerate(gates) if fires[gate, place]))
        outcome = (
            found.engine.evaluate([group], [record]).labels[0, 0] if group else found.records[record].label
        )
        outcomes.append(bool(outcome) != bool(wrong))
    assert (together.after, together.acted) == (sum(outcomes), int(fires.any(0).sum()))


def test_the_runner_up_is_what_the_model_writes_without_its_best_token(found: Material) -> None:
    """Record by record, from logits alone: at the least lead in reach the second token, then greedily to the end."""
    task, subject = found.run.task, found.run.subject
    positions, stop = found.test[:40], subject.stop_ids(task.stop)
    written = runner_up_written(found, positions)
    changed = 0
    for place, record in enumerate(found.at(positions)):
        (prompt,) = subject.encode([record.example.prompt])
        steps = []
        with torch.no_grad():
            for at in range(1, len(record.tokens)):  # the first token follows a clean prefill: out of reach
                logits = subject.hf(torch.tensor([prompt + record.tokens[:at]])).logits[0, -1]
                best = logits.topk(2)
                steps.append((float(best.values[0] - best.values[1]), at, int(best.indices[1])))
            _, at, second = min(steps)
            tokens = [*record.tokens[:at], second]
            while tokens[-1] not in stop and len(tokens) < task.max_new_tokens:
                tokens.append(int(subject.hf(torch.tensor([[*prompt, *tokens]])).logits[0, -1].argmax()))
        right = task.label(record.example, subject.decode(tokens))
        assert written[place] == right
        changed += right != record.label
    assert changed > 20


def test_a_find_records_right_answer_is_its_own_or_anothers(found: Material) -> None:
    """Each is right by the task; in sums it is the result, which nobody told."""
    answers, records = right_answers(found), found.at(found.find)
    expected = found.run.task.columns(records)["expected"].tolist()
    there = [(answer, result) for answer, result in zip(answers, expected, strict=True) if answer is not None]
    assert len(there) > 0.85 * len(records)
    assert all(answer == str(result) for answer, result in there)
    assert sum(answer is not None for answer in answers) > found.good[found.find].sum()


def gate_where(found: Material, rule: str) -> Gate:
    """Written by hand, of the unit that fixes most."""
    return Gate(unit=found.units[0], family=Family.INPUT, rule=rule, gain=0.5, fixed=1, broken=0, fired=2)


def test_gates_that_must_beat_the_runner_up_and_others_that_do_not(
    found: Material, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A runner-up that is always wrong is beaten, one that does what the gates do is not; the report says which."""
    everywhere = gate_where(found, "a >= 0")
    tested = opened_test(found, [everywhere], Policy.ONE)
    base = repaired(found.under(replace(found.request, solution=True, learning=LOOSE)))
    for written, words in (
        (np.zeros(len(found.test), bool), "better than"),
        (tested.after, "not told apart from"),
    ):
        monkeypatch.setattr(runner_up, "runner_up_written", lambda *of, written=written: written)
        where_gates, by_rules = runner_up_controls(tested, ())
        assert where_gates.ahead is not None
        assert where_gates.ahead.before == written.sum()
        assert where_gates.ahead.after == tested.result.after
        assert (by_rules.result.acted, by_rules.result.fixed) == (0, 0)
        said = deciding_sentence(replace(base, controls=(where_gates,)))
        assert f"the gates are {words}: the runner-up where they act" in said
        assert ("speaks against them" in said) == (words != "better than")


def test_a_solver_that_reads_the_right_answer_needs_no_model(found: Material) -> None:
    """With `expected` among its columns it mends far more than without; it never answers where it is not sure."""
    right = {}
    for solution in (False, True):
        asked = found.under(RepairRequest(records=900, tried=6, solution=solution))
        ready = solver(asked)
        assert ready is not None
        outcome, sure = ready.outcomes(found.test)
        right[solution] = outcome.mean()
        tested = opened_test(asked, [gate_where(found, "a >= 100")], Policy.ONE)
        there, anywhere = ready.controls(tested)
        assert there.result.acted <= min(anywhere.result.acted, tested.result.acted)
        assert anywhere.result.acted == (sure >= ready.least).sum()
        kept = np.where(sure >= ready.least, outcome, found.good[found.test])
        assert anywhere.result.after == kept.sum()
    assert right[True] > right[False] + 0.2


def test_random_units_go_the_whole_way(found: Material) -> None:
    """As many of each layer, found ones not left out, drawn once; outcomes are those of asking one by one."""
    asked = found.request
    random = found.on_random_units()
    assert Counter(unit.layer for unit in random.units) == Counter(unit.layer for unit in found.units)
    assert found.on_random_units().alone is random.alone
    labels = found.engine.evaluate([(random.units[2],)], found.learn.tolist()).labels[0]
    assert (random.alone[2] == asked.regime.flipped(labels)).all()
    made = repaired(found.under(replace(found.request, solution=True, learning=LOOSE)))
    bare = repaired(found.under(replace(asked, solution=True, learning=LOOSE, random=False)))
    (control,) = [one for one in made.controls if one.kind is ControlKind.RANDOM_REPAIR]
    assert bare.controls == tuple(one for one in made.controls if one is not control)
    chosen = choose(random.under(replace(asked, solution=True, learning=LOOSE)))
    seeing = random.under(replace(asked, solution=True))
    result = opened_test(seeing, chosen.gates, chosen.policy).result
    assert control.result == result


def test_gates_are_blind_to_the_right_answer_unless_told(found: Material) -> None:
    """No rule reads `expected` or `remainder`; told to, the columns are there."""
    blind = found.under(RepairRequest(records=900)).readings(found.learn)
    seeing = found.under(RepairRequest(records=900, solution=True)).readings(found.learn)
    assert set(seeing.prompt) - set(blind.prompt) == {"expected", "remainder"}


def test_the_price_counts_the_records_that_there_are(
    copied_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that has no fresh records is priced by the run's own, not by those that were asked for."""
    request = RepairRequest(records=9000, tried=6)
    with opened(copied_run, read_only=True) as run:
        plenty = repair_forwards(run, request)
        monkeypatch.setattr(type(run.task), "examples", lambda task, *of: [])
        assert fresh_examples(run, request) == []
        assert repair_forwards(run, request) < plenty * len(run.observed.records) / 2000


def test_the_price_is_said_and_wrong_words_are_refused(copied_run: Path) -> None:
    """Without work."""
    said = call("repair", {"what": "last", "estimate": True})
    assert "price" in said.text
    with pytest.raises(UsageError, match="export RUN DIR"):
        call("repair", {"what": "last", "run": "last"})
    with pytest.raises(UsageError, match="holds none"):
        call("repair", {"what": "export", "run": "last", "folder": "x"})
    assert json.loads(json.dumps(said.data))["run"]
    assert np.isfinite(float(said.data["price"]["seconds"]))  # type: ignore[index]
