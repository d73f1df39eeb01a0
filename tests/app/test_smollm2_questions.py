"""The committed questions on SmolLM2-135M: offline and by a scripted model, from facts alone."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

import pytest
from bundled_run import finished, opened
from committed_questions import QUESTIONS, asked_of_a_model, units_of, worded

from agent.answering import conversation
from mecharule_ops.errors import ClaimNotSupported
from mecharule_ops.saying.unit_rules import told_rule
from mecharule_ops.types import Neuron
from tools.registry import call

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

SETTINGS: Mapping[str, object] = {
    "model": "smollm2-135m",
    "task_settings": {"high": 19},
    "bases": ("attn_head",),
    "regimes": (1,),
    "records": 200,
    "slice_size": 24,
    "max_pairs": 8,
    "ig_steps": 2,
    "proposals": 0,
    "refinements": 10,
    "controls": 1,
    "controls_for": 2,
    "anchor_for": 2,
    "accounts_for": 1,
    "audit": 0,
}
"""Small sums, which the model mostly gets right, and the heads, which are its agonists."""


ABOUT_A_RULE = "what else does the rule of {unit} cover?"
"""The one committed question that may have no answer here: so few records hardly support a rule."""


@pytest.fixture(scope="module")
def smollm2_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, alone in its folder."""
    return finished(tmp_path_factory.mktemp("smollm2") / "5301.mecharule", SETTINGS)


@pytest.fixture(scope="module")
def units(smollm2_run: Path) -> tuple[str, str]:
    with opened(smollm2_run, read_only=True) as run:
        return units_of(run.findings)


@pytest.fixture(autouse=True)
def _its_folder(smollm2_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MECHARULE_RUNS", str(smollm2_run.parent))


@pytest.mark.parametrize("question", QUESTIONS)
def test_offline_answers_are_made_of_facts(smollm2_run: Path, units: tuple[str, str], question: str) -> None:
    """A flip is asked on a sum of the model's own range."""
    asked = worded(question.replace("120 - 7", "12 + 7"), *units)
    data = conversation.ask(str(smollm2_run), asked).data
    assert "put in from" in str(data["checked"]), data["answer"]


@pytest.mark.parametrize("question", [one for one in QUESTIONS if one != ABOUT_A_RULE])
def test_a_model_that_names_its_facts_is_never_marked(
    smollm2_run: Path, units: tuple[str, str], tmp_path: Path, question: str
) -> None:
    """The same questions through the graph."""
    asked = worded(question.replace("120 - 7", "12 + 7"), *units)
    said, result = asked_of_a_model(smollm2_run, tmp_path, asked, units[0])
    assert result.data["verified"], result.data["checked"]
    assert all(" ".join(sentence.split()) in str(result.data["answer"]) for sentence in said)


def test_what_a_rule_covers_is_told_of_one_that_predicts(
    smollm2_run: Path, units: tuple[str, str], tmp_path: Path
) -> None:
    """Whether so few records support a rule depends on the processor; without one there is nothing to cite."""
    assert ABOUT_A_RULE in QUESTIONS
    with opened(smollm2_run, read_only=True) as run:
        unit = run.findings.unit(Neuron.parse(units[0]), run.findings.searches[0].regime)
    assert unit is not None
    told = told_rule(unit.account, unit.rule)
    with nullcontext() if told and told.shown else pytest.raises(ClaimNotSupported, match="covers nothing"):
        said, result = asked_of_a_model(smollm2_run, tmp_path, worded(ABOUT_A_RULE, *units), units[0])
        assert said
        assert result.data["verified"], result.data["checked"]


def test_what_they_cite_runs_again(smollm2_run: Path) -> None:
    """Every certificate of the run, those that the questions added among them, on the reference path."""
    verdict = call("verify", {"what": "last", "run": str(smollm2_run), "all": True})
    assert verdict.exit_code == 0, verdict.text
    assert verdict.data["matched"] == verdict.data["of"]
