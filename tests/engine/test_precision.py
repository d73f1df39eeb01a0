"""Weights in bfloat16, outcomes of float32: every product, every label, and what is decided again."""

import copy
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from lead_oracles import effects
from tiny_models import FAMILIES, crossed, tiny_model
from toy_behaviour import Toy, ToyTask, toy

from mecharule_ops import errors, types
from mecharule_ops.engine import behaviour, precision, speculation
from mecharule_ops.loading.model import Subject
from mecharule_ops.mechanism.effects import Effect
from mecharule_ops.mechanism.writes import writes


@cache
def twins(family: str) -> tuple[Toy, Toy]:
    """The same rounded weights, held in bfloat16 and in float32, with the records of the latter."""
    model, tokenizer = tiny_model(family)
    low = model.bfloat16()
    wide = copy.deepcopy(low).float()
    one, other = (
        Subject(name=family, directory=Path(), hf=hf.eval(), tokenizer=tokenizer) for hf in (low, wide)
    )
    examples = [record.example for record in toy(family).records]
    records = behaviour.behaviour_on(ToyTask(), other, examples).records
    return tuple(Toy(subject=subject, task=ToyTask(), records=records) for subject in (one, other))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_with_low_weights_is_the_float32_one_on_them(family: str) -> None:
    """Logits of a whole forward, the hash, greedy completions; only matrices inside the blocks stay narrow."""
    low, wide = twins(family)
    assert (low.subject.dtype, wide.subject.dtype) == (torch.bfloat16, torch.float32)
    ids = torch.tensor([[1, 5, 9, 12, 7]])
    with torch.no_grad():
        assert torch.allclose(low.subject.hf(ids).logits, wide.subject.hf(ids).logits, atol=1e-4)
    assert low.subject.model_hash == wide.subject.model_hash
    prompts = low.subject.encode([record.example.prompt for record in low.records])
    stop = low.subject.stop_ids(low.task.stop)
    assert low.subject.generate(prompts, 6, stop).tokens == tuple(record.tokens for record in wide.records)
    narrow = {name for name, weight in low.subject.hf.named_parameters() if weight.dtype is torch.bfloat16}
    assert narrow
    assert all(any(part.isdecimal() for part in name.split(".")) for name in narrow)


@pytest.mark.parametrize(("family", "basis"), crossed(types.Basis, whole=["llama"]))
def test_outcomes_are_those_of_float32(family: str, basis: types.Basis) -> None:
    """Labels and completions, of both twins, under the calibrated slope, and with every row decided again."""
    low, wide = twins(family)
    table = wide.table(types.Intervention(basis=basis, phase=types.Phase.LAST_PROMPT))
    groups = wide.groups(basis, 12, seed=5)
    examples = range(len(wide.records))
    true = wide.engine(table).evaluate(groups, examples)
    completions = wide.engine(table).completions(groups, examples).tokens
    asked = np.isfinite(true.margins).sum()
    for one in (low, wide):
        calibrated = precision.calibrate(one.subject, one.task, one.records, table)
        assert calibrated > 0
        for slope in (calibrated, np.inf):
            engine = one.engine(table, slope=slope)
            assert (engine.evaluate(groups, examples).labels == true.labels).all()
            assert engine.completions(groups, examples).tokens == completions
        assert one.engine(table, slope=np.inf).evaluate(groups, examples).decided_again == asked
        assert one.engine(table).evaluate(groups, examples).decided_again == 0


def test_what_is_in_doubt_is_decided_again_and_nothing_else() -> None:
    """Without a slope to speak of, leads are off; rows below the line carry the exact lead, the others do not."""
    low, wide = twins("llama")
    table = wide.table(types.Intervention(basis=types.Basis.MLP_HIDDEN, phase=types.Phase.LAST_PROMPT))
    groups, examples = wide.groups(types.Basis.MLP_HIDDEN, 12, seed=5), range(len(wide.records))
    true = wide.engine(table).evaluate(groups, examples).margins
    rough = low.engine(table, slope=0.0).evaluate(groups, examples)
    some = low.engine(table, slope=0.3).evaluate(groups, examples)
    assert rough.decided_again == 0 < some.decided_again < true.size
    off = ~np.isclose(rough.margins, true, atol=1e-5)
    assert 0 < (~np.isclose(some.margins, true, atol=1e-5)).sum() < off.sum()


def test_the_largest_error_by_hand() -> None:
    """Errors .1 at movement 2, a turned token with leads .2 and .3 at movement 1, nothing moved at all."""
    tokens, moved = np.array([[4, 4, 4]]), np.array([[2.0, 1.0, 0.0]], np.float32)
    true = speculation.GroupLeads(tokens=tokens, margins=np.array([[1.0, 0.2, 3.0]], np.float32), moved=moved)
    found = speculation.GroupLeads(
        tokens=np.array([[4, 7, 4]]),
        margins=np.array([[1.1, 0.3, 3.0 + precision.STILL / 10]], np.float32),
        moved=moved,
    )
    assert precision.largest_error(true, found) == pytest.approx(0.5)
    assert precision.largest_error(true, true) == 0


@pytest.mark.parametrize("family", ["llama", "gpt2"])
@pytest.mark.parametrize("basis", list(types.Basis))
def test_mechanism_reads_low_weights_as_float32(family: str, basis: types.Basis) -> None:
    """Direct pushes, first-order drops and what a unit writes: both twins give the same."""
    low, wide = twins(family)
    table = wide.table(types.Intervention(basis=basis, phase=types.Phase.LAST_PROMPT))
    unit, flipped = types.Neuron(basis, 1, 1), np.arange(len(wide.records)) % 2 == 0
    for effect in (Effect.DIRECT, Effect.FIRST_ORDER):
        one, other = (effects(b.subject, b.records, table, [unit], effect=effect) for b in (low, wide))
        assert np.allclose(one.effect, other.effect, atol=1e-3, equal_nan=True)
    one, other = (writes(b.subject, b.records, table, unit, flipped) for b in (low, wide))
    assert (one.fixed, len(one.groups)) == (other.fixed, len(other.groups))


def test_the_reference_path_agrees_and_refuses_to_widen_without_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """TransformerLens over the same weights in float32 gives the same completions; without room it says the numbers,
    before anything is allocated. Float32 weights are shared and need none."""
    low, wide = twins("llama")
    table = wide.table(types.Intervention(basis=types.Basis.ATTN_HEAD, phase=types.Phase.LAST_PROMPT))
    groups, examples = wide.groups(types.Basis.ATTN_HEAD, 4, seed=2), range(len(wide.records))

    fast = low.engine(table, slope=0.05).completions(groups, examples)
    assert low.reference(table).completions(groups, examples).tokens == fast.tokens
    monkeypatch.setattr("mecharule_ops.loading.placement.free_bytes", lambda device: 10)
    assert wide.reference(table).bridge is not None
    with pytest.raises(errors.ModelUnavailable, match=r"GB free on cpu to widen .* got 0\.00 GB"):
        _ = low.reference(table).bridge
