"""A language model that proposes gates: told find-split numbers alone, judged by a program, never able to do harm."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from bundled_run import opened
from llm_scripted import Recorder, asker

import app
from agent.proposing.gate_proposer import LlmGateProposer
from mecharule_ops.errors import UsageError
from mecharule_ops.events import LlmMessage
from mecharule_ops.findings.repair_outcome import ControlKind
from mecharule_ops.repair.learning import GateSettings
from mecharule_ops.repair.material import Material, RepairRequest, material
from mecharule_ops.repair.proposing import Sheet
from mecharule_ops.repair.repairing import choose
from mecharule_ops.repair.repairing import repair as repaired
from mecharule_ops.rules.families import Family
from tools import repair as tool
from tools.registry import call

ATOMS = ("a >= b", "op == '-'", "a % 10 >= 5", "b % 10 >= 5", "a >= 100", "b >= 100")
RULES = [f"{left} and {right}" for left in ATOMS for right in (*ATOMS, *(f"not ({one})" for one in ATOMS))]
UNLEARNED = GateSettings(caution=50.0, harm=1.0, least_fixed=2)
"""So cautious that nothing is learned; what is proposed is not held to it."""
REQUEST = RepairRequest(records=900, tried=6, units=3, learning=UNLEARNED, proposer="mock:script")


@dataclass
class Written:
    """A proposer of the same texts for every unit, which keeps what it was shown."""

    texts: Sequence[str]
    name: str = "written"
    ended: str = ""
    shown: list[Sheet] = field(default_factory=list)

    def propose(self, sheet: Sheet) -> Sequence[str]:
        self.shown.append(sheet)
        return self.texts


@pytest.fixture(scope="module")
def found(finished_run: Path) -> Iterator[Material]:
    """Records in three splits and what six units do."""
    with opened(finished_run, read_only=True) as run:
        yield material(run, RepairRequest(records=900, tried=6))


@pytest.mark.parametrize(
    "family",
    [
        Family.CLEAN_RUN,
        pytest.param(Family.INPUT, marks=pytest.mark.slow),
        pytest.param(Family.MECHANISM, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_proposer_is_shown_the_find_records_alone(found: Material, family: Family) -> None:
    """As many rows as find records, the units asked for, and nothing changes with what the other splits came to."""
    asked = replace(REQUEST, family=family)
    first, second = Written(RULES), Written(RULES)
    choose(found.under(asked), proposer=first)
    alone, good = found.alone.copy(), found.good.copy()
    alone[:, len(found.find) :] ^= True
    good[np.concatenate([found.choose, found.test])] ^= True
    choose(replace(found, request=asked, alone=alone, good=good, _read={}), proposer=second)
    assert [sheet.unit for sheet in first.shown] == list(found.units[:3])
    for one, other in zip(first.shown, second.shown, strict=True):
        assert len(one.value) == len(found.find)
        assert all(len(column) == len(found.find) for column in one.columns.values())
        assert "expected" not in one.columns, "the right answer is hidden from gates"
        np.testing.assert_array_equal(one.value, other.value)
        assert one.columns["prompt"].tolist() == [record.example.prompt for record in found.at(found.find)]


def test_proposed_gates_compete_and_are_counted(found: Material) -> None:
    """Where nothing is learned they are the gates; what the learned ones alone come to stands beside."""
    bare = choose(found.under(REQUEST))
    assert not bare.gates
    with_them = choose(found.under(REQUEST), proposer=Written(["no rule", *RULES]))
    assert with_them.gates
    assert with_them.proposed is not None
    assert with_them.proposed.chosen == tuple(range(len(with_them.gates)))
    assert with_them.proposed.proposed == 3 * (1 + len(RULES))
    assert 0 < with_them.proposed.competing <= with_them.proposed.read < with_them.proposed.proposed
    made = repaired(found.under(REQUEST), proposer=Written(RULES))
    control = next(one for one in made.controls if one.kind is ControlKind.LEARNED)
    assert (control.name, control.result.acted) == ("0 clauses", 0)


def test_what_nobody_reads_changes_nothing(found: Material) -> None:
    """Gates and controls are those of no proposer at all."""
    eager = replace(REQUEST, learning=GateSettings(caution=0.0, harm=1.0, least_fixed=2), solution=True)
    bare, idle = (
        repaired(found.under(eager)),
        repaired(found.under(eager), proposer=Written(["import os", "zzz > 1"])),
    )
    assert bare.gates
    assert idle.proposed is not None
    assert (idle.proposed.read, idle.proposed.chosen) == (0, ())
    assert replace(idle, proposed=None) == bare


def test_the_model_reads_find_records_and_why_it_was_refused(found: Material, tmp_path: Path) -> None:
    """Its second prompt, where all was refused, has the reasons; no prompt has a record of another split."""
    model = Recorder(
        tmp_path,
        {"unless": ["zzz > 1"], "json": {"rules": ["zzz > 1"]}},
        {"json": {"rules": ["zzz > 1", "a >= 0"]}},
    )
    proposer = LlmGateProposer(asker=asker(model), seed=0, wanted="right")
    chosen = choose(found.under(REQUEST), proposer=proposer)
    assert chosen.proposed is not None
    assert (chosen.proposed.units, chosen.proposed.proposed, chosen.proposed.read) == (3, 6, 3)
    assert len(model.sent) == 6
    assert '"zzz > 1": ' in model.sent[1]
    own = {record.example.prompt for record in found.at(found.find)}
    others = {record.example.prompt for record in found.at(np.concatenate([found.choose, found.test]))} - own
    told = "\n".join(model.sent)
    assert any(json.dumps(prompt) in told for prompt in own)
    assert not any(json.dumps(prompt) in told for prompt in others)


@pytest.mark.parametrize(("fault", "requests"), [("key", 1), ("server", 3), ("unusable", 9)])
def test_a_model_that_fails_leaves_the_learned_gates(
    found: Material, tmp_path: Path, fault: str, requests: int
) -> None:
    """A provider's fault ends the asking, with its reason; a reply that does not read ends it for one unit."""
    model = Recorder(tmp_path, {"fault": fault})
    eager = replace(REQUEST, learning=GateSettings(caution=0.0, harm=1.0, least_fixed=2), solution=True)
    bare = choose(found.under(eager))
    chosen = choose(found.under(eager), proposer=LlmGateProposer(asker=asker(model), seed=0, wanted="right"))
    assert chosen.gates == bare.gates
    assert chosen.proposed is not None
    assert bool(chosen.proposed.ended) is (fault != "unusable")
    assert len(model.sent) == requests


def test_the_verb_asks_the_model_and_says_what_came_of_it(
    copied_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report has the counts and the bill, the run the model's words; the same request is read, another is made."""
    monkeypatch.setenv("MECHARULE_RUNS", str(copied_run.parent))
    plain = tool.request_of
    monkeypatch.setattr(tool, "request_of", lambda run, given: replace(plain(run, given), learning=UNLEARNED))
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"replies": [{"json": {"rules": RULES[:18]}}]}))
    words = ["repair", "last", "--records", "900", "--tried", "6", "--units", "3", "--yes"]
    asked = [*words, "--llm", f"mock:{script}"]
    assert app.main(asked) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "shown the find records of 3 units, proposed 54 rules:" in said
    assert "became a gate" in said
    assert " requests, " in said
    with opened(copied_run, read_only=True) as run:
        made = run.repairs[-1]
        told = [event for _, _, event in run.store.events() if isinstance(event, LlmMessage)]
    assert made.proposed is not None
    assert made.proposed.chosen
    assert ControlKind.LEARNED in {one.kind for one in made.controls}
    assert len({event.purpose for event in told}) == 3
    assert app.main(asked) == 0
    assert "requests" not in capsys.readouterr().out, "what the run holds is read, and no model asked"
    assert app.main(words) == 0
    with opened(copied_run, read_only=True) as run:
        assert [bool(one.proposer) for one in run.repairs] == [True, False]


def test_only_the_verb_asks_a_model(copied_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tools know none; `none` names none."""
    monkeypatch.setenv("MECHARULE_RUNS", str(copied_run.parent))
    with pytest.raises(UsageError, match="without a model here, got mock:x"):
        call("repair", {"what": "last", "records": 900, "tried": 2, "yes": True, "llm": "mock:x"})
