"""Replacement baselines: the numbers of every mode, where they come from, and what lies outside the data."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from toy_behaviour import Toy, toy

from mecharule_ops.errors import UsageError
from mecharule_ops.passes.spans import span_of
from mecharule_ops.replacement.baselines import ReplacementTable, replacement_table
from mecharule_ops.replacement.statistics import Observed, UnitStatistics
from mecharule_ops.types import Baseline, Basis, Intervention, Neuron, Phase

DONORS = {Baseline.MEAN_DONOR: Baseline.MEAN, Baseline.MEAN_DONOR_POSITIONAL: Baseline.MEAN_POSITIONAL}


def observed_values(
    bench: Toy, basis: Basis, layer: int, channel: int, phase: Phase
) -> dict[int, list[np.ndarray]]:
    """offset → the unit's values, one prompt at a time without cache or padding."""
    found: dict[int, list[np.ndarray]] = {}
    module, in_input = bench.subject.wiring.site(bench.subject.wiring.blocks(bench.subject.hf)[layer], basis)
    size = bench.subject.unit_size(basis)
    for record in bench.records:
        (prompt,) = bench.subject.encode([record.example.prompt])
        ids = torch.tensor([[*prompt, *record.tokens[:-1]]])
        seen: list[torch.Tensor] = []
        if in_input:
            handle = module.register_forward_pre_hook(
                lambda module, inputs, into=seen: into.append(inputs[0])
            )
        else:
            handle = module.register_forward_hook(lambda module, inputs, out, into=seen: into.append(out))
        with torch.no_grad():
            bench.subject.hf(ids, attention_mask=torch.ones_like(ids))
        handle.remove()
        first = {Phase.DECODE: 1, Phase.LAST_PROMPT: 0, Phase.WHOLE: 1 - len(prompt)}[phase]
        for position in range(ids.shape[1]):
            offset = position - len(prompt) + 1
            if offset >= first:
                value = seen[0][0, position, channel * size : (channel + 1) * size].numpy()
                found.setdefault(offset, []).append(value)
    return found


@pytest.mark.parametrize("family", ["llama", "gpt2", "gemma2"])
@pytest.mark.parametrize("basis", Basis)
def test_means_equal_those_of_single_unpadded_runs(family: str, basis: Basis) -> None:
    """Mean, minimum, maximum and count by offset, and the mean over all positions; padding never enters."""
    bench, phase = toy(family), tuple(Phase)[list(Basis).index(basis)]
    values = observed_values(bench, basis, 1, 2, phase)
    table = bench.table(Intervention(basis=basis, baseline=Baseline.MEAN_POSITIONAL, phase=phase))
    assert table.observed.offsets.tolist() == sorted(values)
    assert table.observed.counts.tolist() == [len(values[offset]) for offset in sorted(values)]
    offsets = torch.tensor(sorted(values))
    wanted = np.array([np.mean(values[offset], 0) for offset in sorted(values)])
    found = table.value(1, offsets)[:, 2].numpy().reshape(wanted.shape)
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    statistics = table.observed.layers[1]
    for field, reduce in ((statistics.low, np.min), (statistics.high, np.max)):
        extreme = np.array([reduce(values[offset], 0) for offset in sorted(values)])
        np.testing.assert_allclose(field[:, 2].numpy().reshape(extreme.shape), extreme, atol=1e-5)
    overall = np.mean([value for offset in values for value in values[offset]], 0)
    mean = bench.table(Intervention(basis=basis, baseline=Baseline.MEAN, phase=phase))
    np.testing.assert_allclose(mean.value(1, offsets)[0, 2].numpy().reshape(-1), overall, atol=1e-5)
    assert (mean.value(1, offsets) == mean.value(1, offsets)[:1]).all()


@pytest.mark.parametrize("baseline", DONORS)
@pytest.mark.parametrize("basis", [Basis.MLP_HIDDEN, Basis.ATTN_HEAD])
def test_a_donor_is_the_observed_value_closest_to_the_mean(basis: Basis, baseline: Baseline) -> None:
    """Coordinate by coordinate; positional donors come from their own offset only."""
    bench = toy("llama")
    values = observed_values(bench, basis, 2, 1, Phase.DECODE)
    donors = bench.table(Intervention(basis=basis, baseline=baseline))
    means = bench.table(Intervention(basis=basis, baseline=DONORS[baseline]))
    for offset in values:
        everywhere = [value for found in values.values() for value in found]
        pool = values[offset] if baseline is Baseline.MEAN_DONOR_POSITIONAL else everywhere
        target = means.value(2, torch.tensor(offset))[1].numpy().reshape(-1)
        wanted = [
            min(column, key=lambda v: abs(v - t)) for column, t in zip(np.array(pool).T, target, strict=True)
        ]
        found = donors.value(2, torch.tensor(offset))[1].numpy().reshape(-1)
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert donors.out_of_range(Neuron(basis, 2, 1))[0] == 0 or baseline is Baseline.MEAN_DONOR
    assert donors.hash != means.hash


def test_slot0_is_the_mean_at_the_first_prompt_token() -> None:
    """What the published code writes everywhere: it does not depend on offset or completion."""
    bench = toy("gptj")
    table = bench.table(Intervention(basis=Basis.MLP_OUT, baseline=Baseline.SLOT0))
    single = mean_at_first_token(bench)
    assert table.value(0, torch.tensor([1, 4]))[:, 5].tolist() == pytest.approx([single, single], abs=1e-5)


def mean_at_first_token(bench: Toy) -> float:
    """Mean of m0.5 over prompts cut to their first token."""
    module, _ = bench.subject.wiring.site(bench.subject.wiring.blocks(bench.subject.hf)[0], Basis.MLP_OUT)
    seen: list[float] = []
    handle = module.register_forward_hook(lambda module, inputs, out: seen.append(float(out[0, 0, 5])))
    with torch.no_grad():
        for prompt in bench.subject.encode([record.example.prompt for record in bench.records]):
            ids = torch.tensor([prompt[:1]])
            bench.subject.hf(ids, attention_mask=torch.ones_like(ids))
    handle.remove()
    return float(np.mean(seen))


def by_hand(
    baseline: Baseline, values: list[list[float]], low: list[list[float]], high: list[list[float]]
) -> ReplacementTable:
    """A table of one layer with two channels and data at offsets 1, 2 and 5, seen 4, 2 and 2 times."""
    statistics = UnitStatistics(mean=torch.tensor(low), low=torch.tensor(low), high=torch.tensor(high))
    observed = Observed(offsets=torch.tensor([1, 2, 5]), counts=torch.tensor([4, 2, 2]), layers=(statistics,))
    intervention = Intervention(basis=Basis.MLP_OUT, baseline=baseline)
    return ReplacementTable(intervention=intervention, values=(torch.tensor(values),), observed=observed)


def test_an_offset_without_data_takes_the_nearest_one_that_has_some() -> None:
    """Offset 3 is nearer to 2 than to 5, 4 nearer to 5; beyond the data the last one holds."""
    rows = [[1.0, 10.0], [2.0, 20.0], [5.0, 50.0]]
    table = by_hand(Baseline.MEAN_POSITIONAL, rows, rows, rows)
    asked = torch.tensor([[1, 2, 3], [4, 5, 9]])
    assert table.value(0, asked)[..., 0].tolist() == [[1.0, 2.0, 2.0], [5.0, 5.0, 5.0]]
    assert table.value(0, asked, torch.tensor([1]))[..., 0].tolist() == [
        [10.0, 20.0, 20.0],
        [50.0, 50.0, 50.0],
    ]


def test_the_count_out_of_range_weighs_offsets_by_how_often_they_occur() -> None:
    """Zero lies in [−1, 1] at offset 1 (4 of 8 positions) and below [1, 2] at offsets 2 and 5: 4 of 8."""
    low, high = [[-1.0, -1.0], [1.0, -1.0], [1.0, -1.0]], [[1.0, 1.0], [2.0, 1.0], [2.0, 1.0]]
    table = by_hand(Baseline.ZERO, [[0.0, 0.0]], low, high)
    assert table.out_of_range(Neuron(Basis.MLP_OUT, 0, 0)) == (4, 8)
    assert table.out_of_range(Neuron(Basis.MLP_OUT, 0, 1)) == (0, 8)


def test_a_true_mean_never_lies_out_of_range() -> None:
    """The positional mean is between minimum and maximum everywhere; the first slot's value is not."""
    bench = toy("llama")
    units = [Neuron(Basis.ATTN_HEAD, layer, head) for layer in range(3) for head in range(4)]
    mean = bench.table(Intervention(basis=Basis.ATTN_HEAD, baseline=Baseline.MEAN_POSITIONAL))
    slot = bench.table(Intervention(basis=Basis.ATTN_HEAD, baseline=Baseline.SLOT0))
    positions, head_dim = int(mean.observed.counts.sum()), bench.subject.head_dim
    assert {mean.out_of_range(unit) for unit in units} == {(0, positions * head_dim)}
    assert any(slot.out_of_range(unit)[0] > 0 for unit in units)


def test_only_the_first_256_records_enter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Further records change nothing; the same data gives the same hash."""
    bench, intervention = toy("qwen2"), Intervention(basis=Basis.MLP_OUT, baseline=Baseline.MEAN)
    monkeypatch.setattr("mecharule_ops.replacement.baselines.RECORDS", 6)
    few = replacement_table(bench.subject, bench.records[:6], intervention)
    assert replacement_table(bench.subject, bench.records, intervention).hash == few.hash
    assert replacement_table(bench.subject, bench.records[:5], intervention).hash != few.hash


def test_completions_of_one_token_leave_nothing_to_replace_while_decoding() -> None:
    """An error that says which phases would work."""
    bench = toy("qwen2")
    first = bench.records[0]
    short = type(first)(example=first.example, tokens=(2,), completion="", parsed={}, label=False)
    with pytest.raises(UsageError, match="last-prompt or whole"):
        replacement_table(bench.subject, [short], Intervention(basis=Basis.MLP_OUT))


@pytest.mark.parametrize(
    ("phase", "prefix", "fed", "predicted"),
    [
        (Phase.DECODE, (1, 2, 3), (7, 8), (8, 9)),
        (Phase.LAST_PROMPT, (1, 2), (3, 7, 8), (7, 8, 9)),
        (Phase.WHOLE, (), (1, 2, 3, 7, 8), (7, 8, 9)),
    ],
)
def test_a_span_starts_at_the_first_intervened_position(
    phase: Phase, prefix: tuple[int, ...], fed: tuple[int, ...], predicted: tuple[int, ...]
) -> None:
    """Prompt 1 2 3, completion 7 8 9: the last token is never fed."""
    span = span_of((1, 2, 3), (7, 8, 9), phase)
    assert (span.prefix, span.fed) == (prefix, fed)
    assert (7, 8, 9)[span.first_predicted :] == predicted
    assert len(span.fed) - span.prompt_part == len(predicted)
    assert span_of((1, 2, 3), (7,), Phase.DECODE).fed == ()
