"""The self-test says that everything is exact where it is, and fails where a weight, a verdict or a rule is not."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from agent.verbs.options import SelftestOptions
from agent.verbs.selftest import selftest
from app import main
from mecharule_ops.errors import UsageError
from mecharule_ops.findings.records import Findings
from mecharule_ops.loading.model_names import KNOWN_DIRECTORY
from mecharule_ops.rules.algebra import Rule
from mecharule_ops.run import analyse as stage
from tools.registry import ToolResult


def _one(case: str = "hist", models: Path = KNOWN_DIRECTORY) -> ToolResult:
    return selftest(SelftestOptions(case=case), lambda line: None, models)


def test_everything_is_exact(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By its command in an empty home, which is left empty."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert main(["selftest"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "Exact: on 6 models whose circuit is known, the search found all 31 units that flip" in printed
    assert not [file for file in tmp_path.rglob("*") if file.suffix == ".mecharule"]


def test_one_weight_changed_fails(tmp_path: Path) -> None:
    """The run and the oracle read the same changed file and agree; its digest does not."""
    models = Path(shutil.copytree(KNOWN_DIRECTORY, tmp_path / "models"))
    file = models / "hist" / "model.safetensors"
    weights = load_file(file)
    name = max(weights, key=lambda one: weights[one].size)
    weights[name] = weights[name].copy()
    weights[name].flat[0] += np.float32(1e-3)
    save_file(weights, file, {"format": "pt"})
    result = _one(models=models)
    assert result.exit_code == 1
    assert "NOT exact. hist/model.safetensors is not the package's." in result.text


def a_verdict(findings: Findings) -> Findings:
    """A unit that flips is left out, and one more flip is claimed of another."""
    (search,) = findings.searches
    first, second = search.tau_agonists[:2]
    part = first.estimate.associated
    estimate = replace(first.estimate, associated=replace(part, flips=part.flips - 1))
    left = tuple(one for one in search.agonists if one not in (first, second))
    return replace(findings, searches=(replace(search, agonists=(replace(first, estimate=estimate), *left)),))


def a_rule_shortened(findings: Findings) -> Findings:
    """The first condition of one rule is dropped."""
    (search,) = findings.searches
    rules = [str(one.rule or "") for one in search.anchored]
    place = next(place for place, rule in enumerate(rules) if " and " in rule)
    anchored = list(search.anchored)
    anchored[place] = replace(anchored[place], rule=Rule.parse(rules[place].split(" and ", 1)[1]))
    return replace(findings, searches=(replace(search, anchored=tuple(anchored)),))


@pytest.mark.parametrize(
    ("case", "forge", "said"),
    [("hist", a_verdict, ("missed: ", "only 8 of 9")), ("either", a_rule_shortened, ("only 2 of 3 rules",))],
)
def test_what_is_forged_fails(
    monkeypatch: pytest.MonkeyPatch, case: str, forge: Callable[[Findings], Findings], said: tuple[str, ...]
) -> None:
    true = stage.analyse_run
    monkeypatch.setattr(stage, "analyse_run", lambda *given, **named: forge(true(*given, **named)))
    result = _one(case)
    assert result.exit_code == 1
    assert all(each in " ".join(result.text.split()) for each in said)


def test_a_case_that_is_none_of_the_six_is_refused() -> None:
    with pytest.raises(UsageError, match=r"expected a case of: hist, mod4, .*; got 'nothing'"):
        _one("nothing")
