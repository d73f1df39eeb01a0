"""Flips where a predicate holds and where not: asked of the run once, the score from the same flips."""

from __future__ import annotations

from pathlib import Path

import pytest

from mecharule_ops.run.live_run import Run
from mecharule_ops.run.opening import findings_of, opened
from tools.registry import call


def test_the_flips_are_asked_of_the_run_once(copied_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The counts of both sides sum to the records, and so do those of the score."""
    with opened(str(copied_run)) as run:
        unit = findings_of(run).searches[0].agonists[0].neuron
    asked, flips = [], Run.flips

    def counted(self: Run, *given: object) -> object:
        asked.append(given)
        return flips(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Run, "flips", counted)
    given = {
        "run": str(copied_run),
        "neuron": str(unit),
        "predicate": "a > b",
        "records": "train",
        "yes": True,
    }
    data = call("tabulate", given).data
    assert len(asked) == 1
    where, n = data["where"], data["n"]
    assert where["holds"]["n"] + where["elsewhere"]["n"] == n == data["mcc"]["n"]  # type: ignore[index]
