"""The verb `repair`: kept, registered before its test, certified, verified, exported; no gate helping is said too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bundled_run import opened

from mecharule_ops.certificates.verification import inconsistencies
from mecharule_ops.errors import UsageError
from mecharule_ops.events import CertificateWritten, HypothesisDecided, HypothesisRegistered
from mecharule_ops.findings.repair import ControlKind, Repair, RepairStatus, Split
from mecharule_ops.pipeline.kept_repairs import repair_forwards
from mecharule_ops.pipeline.repair_alternatives import with_examples
from mecharule_ops.pipeline.repair_material import Material, RepairRequest, fresh_examples, material
from mecharule_ops.pipeline.repair_pairs import pair_effects
from mecharule_ops.pipeline.repair_testing import always_ablated, opened_test, other_policy
from mecharule_ops.pipeline.repairing import choose
from mecharule_ops.pipeline.repairing import repair as repaired
from mecharule_ops.pipeline.run import Run
from mecharule_ops.repair import load_gate
from mecharule_ops.repair.folder import GATE, VALUES
from mecharule_ops.repair.gates import Gate, Policy, units_of
from mecharule_ops.repair.learning import GateSettings
from mecharule_ops.repair.readings import firing
from mecharule_ops.rules.families import Family
from tools import repair as tool
from tools.arguments import Repair as Arguments
from tools.registry import call

SMALL = {"records": 900, "tried": 6, "units": 3, "yes": True, "solution": True}


@pytest.fixture(autouse=True)
def _its_folder(copied_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MECHARULE_RUNS", str(copied_run.parent))


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gates are learned without caution, so that a small table gives some."""
    plain = tool.request_of

    def asked(run: Run, given: Arguments) -> RepairRequest:
        learning = GateSettings(caution=0.0, harm=1.0, least_fixed=2)
        return replace(plain(run, given), learning=learning)

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
        ControlKind.ALWAYS,
        ControlKind.RANDOM_UNITS,
        ControlKind.SHUFFLED,
        ControlKind.LEAD_ONLY,
        ControlKind.TOGETHER if found.policy is Policy.ONE else ControlKind.LARGEST,
        ControlKind.RETRY,
        ControlKind.EXAMPLES,
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
        learning=GateSettings(caution=0.0, harm=1.0, least_fixed=2),
    )
    good = found.good.copy()
    good[found.test] = ~good[found.test]
    assert choose(found, asked).gates == choose(replace(found, good=good, _read={}), asked).gates


def test_the_test_result_is_that_of_the_units_alone(found: Material) -> None:
    """Where a gate acts the outcome is its unit's, elsewhere the record's own."""
    asked = RepairRequest(
        records=900,
        tried=6,
        units=3,
        solution=True,
        learning=GateSettings(caution=0.0, harm=1.0, least_fixed=2),
    )
    made = repaired(found, asked)
    assert made.test is not None
    assert made.hindsight is not None
    assert made.test.after <= made.hindsight.after or made.policy is Policy.ALL
    split = made.of(Split.CHOOSE)
    assert split is not None
    assert split.fixed > split.broken
    shuffled = next(one.result for one in made.controls if one.kind is ControlKind.SHUFFLED)
    assert shuffled.acted == made.test.acted


@pytest.mark.slow
def test_pairs_and_both_policies_are_what_ablating_them_does(found: Material) -> None:
    """Counts of a pair are those of groups asked one record at a time, where gates of both units fire."""
    asked = RepairRequest(records=900, tried=6)
    rules = ("a >= 50", "op == '-'", "b >= 20")
    gates = [
        Gate(unit=unit, family=Family.INPUT, rule=rule, gain=gain, fixed=1, broken=0, fired=2)
        for unit, rule, gain in zip(found.units, rules, (0.1, 0.3, 0.2), strict=False)
    ]
    readings, wrong = found.readings(asked, found.choose), asked.regime.value
    fires = firing(gates, readings)
    pairs = pair_effects(found, asked, gates)
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
    alone = always_ablated(found, asked, units_of(gates))
    together = opened_test(found, asked, gates, Policy.ALL).result
    assert other_policy(found, asked, gates, Policy.ONE, alone).result == together
    assert (
        other_policy(found, asked, gates, Policy.ALL, alone).result
        == opened_test(found, asked, gates, Policy.ONE).result
    )
    fires = firing(gates, found.readings(asked, found.test))
    outcomes = []
    for place, record in enumerate(found.test.tolist()):
        group = tuple(dict.fromkeys(one.unit for gate, one in enumerate(gates) if fires[gate, place]))
        outcome = (
            found.engine.evaluate([group], [record]).labels[0, 0] if group else found.records[record].label
        )
        outcomes.append(bool(outcome) != bool(wrong))
    assert (together.after, together.acted) == (sum(outcomes), int(fires.any(0).sum()))


def test_solved_examples_are_shown_as_far_as_the_context_goes(found: Material) -> None:
    """Of forty lines a model with 64 positions reads a few; asked for none it reads none."""
    asked = RepairRequest(records=900, tried=6)
    shown = with_examples(found, asked, 40)
    assert shown is not None
    assert 0 < int(shown.name) < 10
    assert shown.result.before == int(found.good[found.test].sum())
    assert with_examples(found, asked, 0) is None


def test_gates_are_blind_to_the_right_answer_unless_told(found: Material) -> None:
    """No rule reads `expected` or `remainder`; told to, the columns are there."""
    blind = found.readings(RepairRequest(records=900), found.learn)
    seeing = found.readings(RepairRequest(records=900, solution=True), found.learn)
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
