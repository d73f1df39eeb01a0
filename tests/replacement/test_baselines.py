"""Replacement baselines: the numbers of every mode, where they come from, and what lies outside the data."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from toy_behaviour import Toy, at_sites, first_offset, forward, toy

from mecharule_ops import errors, subsets
from mecharule_ops.passes.spans import span_of
from mecharule_ops.replacement.baselines import ReplacementTable, replacement_table
from mecharule_ops.replacement.statistics import Observed, UnitStatistics, observe_values
from mecharule_ops.replacement.table_files import arrays_of, table_from
from mecharule_ops.types import Baseline, Basis, BehaviourRecord, Intervention, Neuron, Phase

DONORS = {Baseline.MEAN_DONOR: Baseline.MEAN, Baseline.MEAN_DONOR_POSITIONAL: Baseline.MEAN_POSITIONAL}


def split(bench: Toy) -> tuple[list[BehaviourRecord], list[BehaviourRecord]]:
    """The 8 of the 10 records that make the values, and the others, which say the range."""
    drawn = subsets.some_records(bench.records, of="replacement")
    return drawn[:8], drawn[8:]


def observed_values(
    bench: Toy, unit: Neuron, phase: Phase, records: list[BehaviourRecord]
) -> dict[int, list[np.ndarray]]:
    """offset → the unit's values, one prompt at a time without cache or padding."""
    found: dict[int, list[np.ndarray]] = {}
    for record in records:
        (prompt,) = bench.subject.encode([record.example.prompt])
        seen: list[torch.Tensor] = []
        with at_sites(bench.subject, [unit], lambda _, part, into=seen: into.append(part.clone())):
            forward(bench.subject, [*prompt, *record.tokens[:-1]])
        for offset, value in enumerate(seen[0].numpy(), 1 - len(prompt)):
            if offset >= first_offset(phase, len(prompt)):
                found.setdefault(offset, []).append(value)
    return found


@pytest.mark.parametrize("family", ["llama", "gpt2", "gemma2"])
@pytest.mark.parametrize("basis", Basis)
def test_means_equal_those_of_single_unpadded_runs(family: str, basis: Basis) -> None:
    """Mean by offset, and over all positions; of the other records minimum, maximum and count; no padding enters."""
    bench, phase = toy(family), tuple(Phase)[list(Basis).index(basis)]
    made, others = split(bench)
    values, ranges = (observed_values(bench, Neuron(basis, 1, 2), phase, some) for some in (made, others))
    table = bench.table(Intervention(basis=basis, baseline=Baseline.MEAN_POSITIONAL, phase=phase))
    assert table.records == tuple(record.example.id for record in made)
    assert table.offsets.tolist() == sorted(values)
    assert table.others.offsets.tolist() == sorted(ranges)
    assert table.others.counts.tolist() == [len(ranges[offset]) for offset in sorted(ranges)]
    offsets, statistics = torch.tensor(sorted(values)), table.others.layers[1]
    mean = bench.table(Intervention(basis=basis, baseline=Baseline.MEAN, phase=phase)).value(1, offsets)
    assert (mean == mean[:1]).all()
    for found, wanted in (
        (table.value(1, offsets), [np.mean(values[offset], 0) for offset in sorted(values)]),
        (statistics.low, [np.min(ranges[offset], 0) for offset in sorted(ranges)]),
        (statistics.high, [np.max(ranges[offset], 0) for offset in sorted(ranges)]),
        (mean[:1], [np.mean([value for seen in values.values() for value in seen], 0)]),
    ):
        shape = np.array(wanted).shape
        np.testing.assert_allclose(found[:, 2].numpy().reshape(shape), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("baseline", DONORS)
@pytest.mark.parametrize("basis", [Basis.MLP_HIDDEN, Basis.ATTN_HEAD])
def test_a_donor_is_the_observed_value_closest_to_the_mean(basis: Basis, baseline: Baseline) -> None:
    """Coordinate by coordinate; positional donors come from their own offset only."""
    bench = toy("llama")
    values = observed_values(bench, Neuron(basis, 2, 1), Phase.DECODE, split(bench)[0])
    donors = bench.table(Intervention(basis=basis, baseline=baseline))
    means = bench.table(Intervention(basis=basis, baseline=DONORS[baseline]))
    everywhere = [value for found in values.values() for value in found]
    for offset in values:
        pool = values[offset] if baseline is Baseline.MEAN_DONOR_POSITIONAL else everywhere
        target = means.value(2, torch.tensor(offset))[1].numpy().reshape(-1)
        wanted = [
            min(column, key=lambda v: abs(v - t)) for column, t in zip(np.array(pool).T, target, strict=True)
        ]
        found = donors.value(2, torch.tensor(offset))[1].numpy().reshape(-1)
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert donors.hash != means.hash


def test_slot0_is_the_mean_at_the_first_prompt_token() -> None:
    """What the published code writes everywhere: it does not depend on offset or completion."""
    bench = toy("gptj")
    table = bench.table(Intervention(basis=Basis.MLP_OUT, baseline=Baseline.SLOT0))
    seen: list[float] = []
    with at_sites(
        bench.subject, [Neuron(Basis.MLP_OUT, 0, 5)], lambda _, part: seen.append(float(part[0, 0]))
    ):
        for record in split(bench)[0]:
            forward(bench.subject, bench.subject.encode([record.example.prompt])[0][:1])
    assert table.value(0, torch.tensor([1, 4]))[:, 5].tolist() == pytest.approx([np.mean(seen)] * 2, abs=1e-5)


def by_hand(
    baseline: Baseline, values: list[list[float]], low: list[list[float]], high: list[list[float]]
) -> ReplacementTable:
    """A table of one layer with two channels and data at offsets 1, 2 and 5, seen 4, 2 and 2 times."""
    statistics = UnitStatistics(mean=torch.tensor(low), low=torch.tensor(low), high=torch.tensor(high))
    offsets = torch.tensor([1, 2, 5])
    return ReplacementTable(
        intervention=Intervention(basis=Basis.MLP_OUT, baseline=baseline),
        values=(torch.tensor(values),),
        offsets=offsets,
        records=(3, 1, 2),
        others=Observed(offsets=offsets, counts=torch.tensor([4, 2, 2]), layers=(statistics,)),
    )


def test_an_offset_without_data_takes_the_nearest_one_that_has_some() -> None:
    """Offset 3 is nearer to 2 than to 5, 4 nearer to 5; beyond the data the last one holds."""
    rows = [[1.0, 10.0], [2.0, 20.0], [5.0, 50.0]]
    table = by_hand(Baseline.MEAN_POSITIONAL, rows, rows, rows)
    asked = torch.tensor([[1, 2, 3], [4, 5, 9]])
    assert table.value(0, asked)[..., 0].tolist() == [[1.0, 2.0, 2.0], [5.0, 5.0, 5.0]]
    assert (table.value(0, asked, torch.tensor([1])) == 10 * table.value(0, asked)[..., :1]).all()


def test_the_count_out_of_range_weighs_offsets_by_how_often_they_occur() -> None:
    """Zero lies in [−1, 1] at offset 1 (4 of 8 positions) and below [1, 2] at offsets 2 and 5: 4 of 8."""
    low, high = [[-1.0, -1.0], [1.0, -1.0], [1.0, -1.0]], [[1.0, 1.0], [2.0, 1.0], [2.0, 1.0]]
    table = by_hand(Baseline.ZERO, [[0.0, 0.0]], low, high)
    assert table.out_of_range(Neuron(Basis.MLP_OUT, 0, 0)) == (4, 8)
    assert table.out_of_range(Neuron(Basis.MLP_OUT, 0, 1)) == (0, 8)


def test_the_guard_sees_values_of_another_distribution() -> None:
    """The records that made a positional mean hold none of it out of range, whatever records they are.

    Against records of the kind that is ablated, the means of the shortest prompts alone do lie outside; those of a
    draw do not; the first slot's value does in either case.
    """
    bench, intervention = toy("llama", 60), Intervention(basis=Basis.ATTN_HEAD)
    units = [Neuron(Basis.ATTN_HEAD, layer, head) for layer in range(3) for head in range(4)]

    def outside(table: ReplacementTable) -> float:
        counts = np.array([table.out_of_range(unit) for unit in units]).sum(0)
        return counts[0] / counts[1]

    shortest = sorted(bench.records, key=lambda record: len(record.example.prompt))
    wrong = replacement_table(bench.subject, shortest[:20], intervention)
    made = [bench.records[place] for place in wrong.records]
    prompts = bench.subject.encode([record.example.prompt for record in made])
    spans = [span_of(prompt, one.tokens, Phase.DECODE) for prompt, one in zip(prompts, made, strict=True)]
    own = observe_values(bench.subject, spans, [Basis.ATTN_HEAD])[Basis.ATTN_HEAD]
    assert outside(replace(wrong, others=own)) == 0.0
    others = replacement_table(bench.subject, shortest[20:], intervention).others
    assert outside(replace(wrong, others=others)) > 0.004
    assert outside(bench.table(intervention)) == 0.0
    assert outside(bench.table(Intervention(basis=Basis.ATTN_HEAD, baseline=Baseline.SLOT0))) > 0.1


@pytest.mark.parametrize("baseline", Baseline)
def test_the_order_of_the_records_changes_nothing(baseline: Baseline) -> None:
    """Values, range and hash are those of the same ids, to the bit; the first records in file order are no sample."""
    bench, intervention = toy("qwen2"), Intervention(basis=Basis.MLP_OUT, baseline=baseline)
    table = bench.table(intervention)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(bench.records))
        other = replacement_table(bench.subject, [bench.records[place] for place in order], intervention)
        assert (other.hash, other.records) == (table.hash, table.records)
        assert all(map(torch.equal, *([each.low for each in one.others.layers] for one in (table, other))))
    assert replacement_table(bench.subject, bench.records, intervention, seed=1).records != table.records


def test_as_many_records_enter_as_the_paper_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many others say the range; of few records three quarters make the values."""
    bench, intervention = toy("qwen2"), Intervention(basis=Basis.MLP_OUT, baseline=Baseline.MEAN)
    drawn = [record.example.id for record in subsets.some_records(bench.records, of="replacement")]
    assert bench.table(intervention).records == tuple(drawn[:8])
    monkeypatch.setattr("mecharule_ops.replacement.baselines.RECORDS", 3)
    few = bench.table(intervention)
    assert few.records == tuple(drawn[:3])
    assert few.others.counts.max() == 3
    assert replacement_table(bench.subject, bench.records[:1], intervention).others.counts.max() == 1


def test_a_table_is_read_as_it_was_written() -> None:
    """To the hash of every value."""
    table = toy("llama").table(Intervention(basis=Basis.ATTN_HEAD))
    assert table_from(arrays_of(table), table.intervention).hash == table.hash


def test_completions_of_one_token_leave_nothing_to_replace_while_decoding() -> None:
    """An error that says which phases would work."""
    bench = toy("qwen2")
    short = replace(bench.records[0], tokens=(2,), completion="", label=False)
    with pytest.raises(errors.UsageError, match="last-prompt or whole"):
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
