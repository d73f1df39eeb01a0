"""Measured drops against plain forwards: what is left of a lead."""

from __future__ import annotations

import numpy as np
import pytest
from lead_oracles import exact, leads_under
from tiny_models import crossed
from toy_behaviour import Toy, toy

from mecharule_ops.errors import UsageError
from mecharule_ops.mechanism.forced import Forcing
from mecharule_ops.mechanism.measured import measured_drop
from mecharule_ops.types import Baseline, Basis, Intervention, Neuron, Phase


def groups_of(bench: Toy, basis: Basis) -> list[list[Neuron]]:
    """A unit, a group of one layer, a group across layers."""
    width = bench.subject.width(basis)
    return [
        [Neuron(basis, 1, 0)],
        [Neuron(basis, 2, width - 1), Neuron(basis, 2, 1)],
        [Neuron(basis, 2, 2), Neuron(basis, 0, 1)],
    ]


@pytest.mark.parametrize(("family", "basis"), crossed(Basis))
def test_measured_drops_are_those_of_whole_forwards(family: str, basis: Basis) -> None:
    """And the token that is best afterwards is the one that a whole forward puts first."""
    bench, table = exact(family, Intervention(basis=basis, baseline=Baseline.ZERO, phase=Phase.LAST_PROMPT))
    table = toy(family).table(table.intervention)
    groups = groups_of(bench, basis)
    plain = toy(family)
    found = measured_drop(plain.subject, plain.records, table, groups)
    every = np.tile(np.arange(40), (found.left.shape[2], 1))
    for index, group in enumerate(groups):
        for record in (0, 3):
            best = found.best[index, record][:, None]
            fall = leads_under(bench, table, [], record, best) - leads_under(
                bench, table, group, record, best
            )
            assert found.fall[index, record] == pytest.approx(fall[:, 0], abs=2e-3, rel=1e-3, nan_ok=True)
            left = leads_under(bench, table, group, record, every)
            for position, own in enumerate(bench.records[record].tokens):
                row = np.where(every[0] == own, np.inf, left[position])
                assert found.left[index, record, position] == pytest.approx(row.min(), abs=2e-3, rel=1e-3)
                assert row[found.best[index, record, position]] == pytest.approx(row.min(), abs=2e-3)


@pytest.mark.parametrize("phase", list(Phase))
def test_a_measured_change_is_a_change_of_the_completion(phase: Phase) -> None:
    """The smallest lead left is negative exactly for completions that decoding under do(A) changes."""
    bench = toy("llama")
    table = bench.table(Intervention(basis=Basis.MLP_OUT, baseline=Baseline.ZERO, phase=phase))
    groups = bench.groups(Basis.MLP_OUT, 12, seed=1)
    found = measured_drop(bench.subject, bench.records, table, groups)
    real = bench.engine(table).completions(groups, range(len(bench.records)))
    changed = np.array(
        [
            [after != record.tokens for after, record in zip(row, bench.records, strict=True)]
            for row in real.tokens
        ]
    )
    assert (found.changed == changed).all()
    assert changed.any()
    assert not changed.all()


def test_batches_change_no_drop(monkeypatch: pytest.MonkeyPatch) -> None:
    """One column at a time gives the same measured drops."""
    bench = toy("mistral")
    table = bench.table(Intervention(basis=Basis.ATTN_HEAD))
    groups = groups_of(bench, Basis.ATTN_HEAD)
    together = measured_drop(bench.subject, bench.records, table, groups)
    monkeypatch.setattr(Forcing, "_columns", lambda forcing: 1)
    measured = measured_drop(bench.subject, bench.records, table, groups)
    assert measured.fall == pytest.approx(together.fall, abs=2e-4, nan_ok=True)
    assert measured.left == pytest.approx(together.left, abs=2e-4, nan_ok=True)


def test_a_wrong_call_is_refused() -> None:
    """A unit of another basis."""
    bench = toy("llama")
    table = bench.table(Intervention(basis=Basis.ATTN_HEAD))
    with pytest.raises(UsageError, match="choose units"):
        measured_drop(bench.subject, bench.records, table, [[Neuron(Basis.MLP_OUT, 0, 0)]])
