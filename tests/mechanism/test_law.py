"""The law and its drops against a slow obvious version, finite differences, and real ablations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_models import FAMILIES
from toy_behaviour import Toy, toy

from mecharule_ops.errors import UsageError
from mecharule_ops.mechanism.law import effects, prediction
from mecharule_ops.types import Baseline, Basis, Intervention, Neuron, Phase

K = 2
HEADS = Intervention(basis=Basis.ATTN_HEAD, baseline=Baseline.ZERO)


def some_units(bench: Toy, basis: Basis) -> list[Neuron]:
    """Three units of three layers, highest layer first, so that the order of a call is kept."""
    width = bench.subject.width(basis)
    return [Neuron(basis, 2, 0), Neuron(basis, 0, width - 1), Neuron(basis, 1, 1)]


def slow_leads(bench: Toy, record: int, phase: Phase) -> dict[int, list[tuple[int, float]]]:
    """By generated position in reach the K best other tokens and their leads, from one plain forward."""
    one = bench.records[record]
    (prompt,) = bench.subject.encode([one.example.prompt])
    with torch.no_grad():
        ids = torch.tensor([[*prompt, *one.tokens]])
        logits = bench.subject.hf(ids, attention_mask=torch.ones_like(ids)).logits[0]
    found = {}
    for position in range(1 if phase is Phase.DECODE else 0, len(one.tokens)):
        row = logits[len(prompt) - 1 + position]
        own = one.tokens[position]
        others = sorted((token for token in range(len(row)) if token != own), key=lambda token: -row[token])
        found[position] = [(token, float(row[own] - row[token])) for token in others[:K]]
    return found


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("family", FAMILIES)
def test_leads_are_those_of_a_plain_forward(family: str, phase: Phase) -> None:
    """Every family and phase; positions out of reach and past the end hold nothing."""
    bench = toy(family)
    table = bench.table(Intervention(basis=Basis.ATTN_HEAD, baseline=Baseline.ZERO, phase=phase))
    leads = prediction(bench.subject, bench.records, table, competitors=K).leads
    for record in range(len(bench.records)):
        slow = slow_leads(bench, record, phase)
        assert np.flatnonzero(leads.in_reach[record]).tolist() == list(slow)
        for position, best in slow.items():
            assert leads.token[record, position].tolist() == [token for token, _ in best]
            assert leads.lead[record, position] == pytest.approx([lead for _, lead in best], abs=1e-4)
        outside = ~leads.in_reach[record]
        assert np.isnan(leads.lead[record, outside]).all()


@pytest.mark.parametrize("basis", list(Basis))
def test_the_law_is_the_excess_of_the_drops_in_full(basis: Basis) -> None:
    """The reduced pass over all units agrees with the full arrays of some, in the order they were asked for."""
    bench = toy("llama")
    table = bench.table(Intervention(basis=basis, baseline=Baseline.MEAN, phase=Phase.LAST_PROMPT))
    every = prediction(bench.subject, bench.records, table, competitors=K)
    units = some_units(bench, basis)
    full = effects(bench.subject, bench.records, table, units, competitors=K)
    assert full.units == tuple(units)
    assert len(every.units) == 3 * bench.subject.width(basis)
    for index, unit in enumerate(units):
        assert every.flips(unit).tolist() == full.flips[:, index].tolist()
        assert every.counts[every.place[unit]] == full.flips[:, index].sum()
        excess = every.excess[:, every.place[unit]]
        assert excess == pytest.approx(full.excess[:, index], rel=2e-3, abs=1e-4)
    assert 0 < every.counts.sum() < every.counts.size * len(bench.records)


def test_a_unit_that_the_model_does_not_have_is_refused() -> None:
    """So are no units and more competitors than tokens."""
    bench = toy("llama")
    table = bench.table(HEADS)
    for units in ([Neuron(Basis.ATTN_HEAD, 3, 0)], [Neuron(Basis.MLP_OUT, 0, 0)], []):
        with pytest.raises(UsageError, match="choose units that this model has"):
            prediction(bench.subject, bench.records, table, units=units)
    with pytest.raises(UsageError, match="expected 1 to 39 competitors"):
        prediction(bench.subject, bench.records, table, competitors=40)
