"""Runs of models that are right, or wrong, on everything: what is missing is the contrast, not the flips."""

from __future__ import annotations

from pathlib import Path

import pytest
from bundled_run import new_run

from agent.verbs.runner import report_of
from mecharule_ops.findings.records import Findings
from mecharule_ops.run.analyse import analyse
from mecharule_ops.types import Regime

HIST = {
    "model": "known/hist",
    "task": "program",
    "bases": ("attn_head",),
    "controls": 1,
    "chains_for": 0,
    "accounts_for": 0,
}


def _findings(path: Path, **settings: object) -> Findings:
    with new_run(path, {**HIST, **settings}) as run:
        return analyse(run, lambda event: None, clock=lambda: 0.0)


def test_a_model_that_is_right_on_everything_is_searched_without_a_splitter(tmp_path: Path) -> None:
    """1→0 finds the one head, its rule tells which inputs flip, and it is said what split in the rule's place."""
    found = _findings(tmp_path / "a.mecharule", regimes=(1,))
    (search,) = found.searches
    assert found.task_score.count == found.task_score.n == 729
    assert [str(agonist.neuron) for agonist in search.tau_agonists] == ["a0.h0"]
    assert [rule.held_out.mcc for rule in search.anchored if rule.held_out] == [1.0]
    assert search.splitter is None
    assert search.split_note == (
        "every answer is right, so no rule tells right from wrong; the spectral split stands in"
    )
    assert report_of(found).exit_code == 0


def test_a_direction_that_no_record_starts_from_is_said_to_be_unsearched(tmp_path: Path) -> None:
    """Beside a direction that was searched it is no failure."""
    found = _findings(tmp_path / "b.mecharule", regimes=(1, 0))
    searched, other = found.searches
    assert (searched.nothing_searched, other.nothing_searched) == (False, True)
    assert other.regime is Regime.BASELINE_NEGATIVE
    report = report_of(found)
    assert "(0→1): nothing was searched: no train record has this baseline outcome." in " ".join(
        report.text.split()
    )
    assert report.exit_code == 0


@pytest.mark.parametrize("search", ["guided", "cha"])
def test_slices_without_power_are_said_to_be_unsearched_and_fail(tmp_path: Path, search: str) -> None:
    """At τ = .05 fifty records can rule out nothing: no unit was looked at, and the exit code says so."""
    small = {"model": "known/parity", "task_settings": {"program": "parity"}, "bases": ("mlp_hidden",)}
    found = _findings(tmp_path / "c.mecharule", **small, regimes=(1,), records=50, tau=0.05, search=search)
    report = report_of(found)
    assert "Found. Nothing was searched, so nothing is claimed." in report.text
    assert "Next: Run on more records: 59 examples a slice are needed" in report.text.replace("\n", " ")
    assert "the search found no unit" not in report.text
    assert report.exit_code == 1
