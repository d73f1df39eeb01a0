"""What a finished run still needs the model for: nothing that its file holds."""

from pathlib import Path

import pytest
import torch
from bundled_run import opened

from mecharule_ops import errors, types
from mecharule_ops.loading import model_names
from mecharule_ops.run.live_run import Run


@pytest.fixture
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading a model fails."""

    def refuse(name: str, *where: object) -> None:
        raise errors.ModelUnavailable(f"expected no model to be loaded, got {name}")

    monkeypatch.setattr(model_names, "load", refuse)


def _labels(run: Run, unit: str, count: int) -> list[bool]:
    neuron = types.Neuron.parse(unit)
    positions = run.eligible(types.Regime.BASELINE_POSITIVE)[:count].tolist()
    return run.engine(run.intervention(neuron.basis)).labels([(neuron,)], positions)[0].tolist()


@pytest.mark.usefixtures("no_model")
def test_stored_outcomes_are_read_without_the_model(run: Run) -> None:
    """The context under which they lie is in the file; an outcome that is not stored asks for the model."""
    engine = run.engine(run.intervention(types.Basis.MLP_OUT))
    assert len(set(_labels(run, str(run.findings.searches[0].agonists[0].neuron), 60))) == 2
    assert run.cost.example_forwards == 0
    with pytest.raises(errors.ModelUnavailable, match="expected no model to be loaded"):
        engine.labels([(types.Neuron.parse("m0.1"), types.Neuron.parse("m1.2"))], [0])


@pytest.mark.usefixtures("no_model")
def test_replacement_values_are_read_from_the_file(run: Run) -> None:
    """Certificates name the hash of exactly these values, and the ranges in the data came with them."""
    stored = run.replacement(run.intervention(types.Basis.MLP_OUT))
    assert {one.intervention.baseline_hash for one in run.store.certificates()} == {stored.hash}
    outside, replaced = stored.out_of_range(types.Neuron.parse("m1.14"))
    assert 0 <= outside < replaced


def test_they_are_the_values_that_the_model_gives(run: Run) -> None:
    """Measured again: bit for bit the same, statistics included."""
    intervention = run.intervention(types.Basis.MLP_OUT)
    stored, fresh = run.replacement(intervention), run.measured_replacement(intervention)
    assert stored.hash == fresh.hash
    assert all(torch.equal(left, right) for left, right in zip(stored.values, fresh.values, strict=True))


def test_another_model_adds_no_outcome_to_a_run(copied_run: Path) -> None:
    """Weights that changed since are found out before anything is ablated, and nothing is stored."""
    with opened(copied_run) as run:
        with torch.no_grad():
            next(run.subject.hf.parameters()).add_(0.5)
        run.subject.__dict__.pop("model_hash", None)
        with pytest.raises(errors.ModelUnavailable, match="have changed; go on with what it began with"):
            _labels(run, "m0.77", 300)
        assert run.cost.group_evaluations == 0
