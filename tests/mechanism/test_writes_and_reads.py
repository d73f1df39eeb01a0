"""What a unit writes and reads adds up: pushes to the direct push, sources to the first-order drop, shares to 1."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from lead_oracles import effects
from tiny_models import crossed
from toy_behaviour import Toy, toy, turning

from mecharule_ops.errors import UsageError
from mecharule_ops.mechanism import forced, links
from mecharule_ops.mechanism import reads as reading
from mecharule_ops.mechanism.effects import Effect
from mecharule_ops.mechanism.reads import head_positions, reads
from mecharule_ops.mechanism.token_sources import token_name, token_sources
from mecharule_ops.mechanism.writes import LISTED, answer_tokens, moved_by, writes
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.types import Baseline, Basis, Intervention, Neuron, Phase

HEAD = Neuron(Basis.ATTN_HEAD, 1, 2)


def table_of(bench: Toy, basis: Basis, phase: Phase = Phase.LAST_PROMPT, baseline: Baseline = Baseline.MEAN):
    return bench.table(Intervention(basis=basis, baseline=baseline, phase=phase))


def named(bench: Toy) -> list[tuple[str, ...]]:
    return [token_sources(bench.subject, bench.task, record) for record in bench.records]


def alternating(bench: Toy) -> np.ndarray:
    return np.arange(len(bench.records)) % 2 == 0


def moves(bench: Toy, table: ReplacementTable, unit: Neuron) -> Iterator[tuple[int, int, int, Any, Any]]:
    """Record, position, the model's own token, what the unit writes less its replacement, and the sign of its value."""
    forcing = forced.Forcing(bench.subject, bench.records, table.intervention.phase)
    for batch in forcing.batches():
        with torch.no_grad():
            fed = forcing.feed_units(batch, table, [1], traced=False)
            moved, sign = moved_by(bench.subject, fed, unit)
        at = fed.forced.predicted
        places = zip(at.row.tolist(), at.position.tolist(), at.generated.tolist(), moved, sign, strict=True)
        yield from ((batch[row], *rest) for row, *rest in places)


@pytest.mark.parametrize(("family", "basis"), crossed(Basis))
def test_what_is_written_is_the_direct_push(
    family: str, basis: Basis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two routes: W_U applied to the write, and the lead's direction applied to the unit; no soft cap in either."""
    bench, unit = toy(family), Neuron(basis, 1, 1)
    monkeypatch.setattr(bench.subject.hf.config, "final_logit_softcapping", None, raising=False)
    table = table_of(bench, basis, turning(family, basis))
    direct = effects(bench.subject, bench.records, table, [unit], competitors=1, effect=Effect.DIRECT)
    weight = bench.subject.wiring.head(bench.subject.hf)[1].get_parameter("weight").detach()
    for record, position, own, moved, _ in moves(bench, table, unit):
        push = float(moved @ (weight[own] - weight[int(direct.leads.token[record, position, 0])]))
        assert push == pytest.approx(float(direct.effect[record, position, 0, 0]), rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("basis", list(Basis))
def test_lists_are_means_over_positions_of_each_group(basis: Basis) -> None:
    """Against a loop over positions: token order, pushes, the model's own token, and the direction of a fixed unit."""
    bench, unit = toy("gpt2"), Neuron(basis, 1, 1)
    table, flipped = table_of(bench, basis, baseline=Baseline.ZERO), alternating(bench)
    found = writes(bench.subject, bench.records, table, unit, flipped)
    answer = answer_tokens(forced.Forcing(bench.subject, bench.records, Phase.LAST_PROMPT)).tolist()
    weight = bench.subject.hf.get_output_embeddings().weight.detach()
    sums: dict[str, list[tuple[torch.Tensor, bool]]] = {"all": [], "flipped": [], "unflipped": []}
    for record, _, own, moved, sign in moves(bench, table, unit):
        pushes = weight @ moved
        first = answer[int(pushes[answer].argmax())] == own
        for name in ("all", "flipped" if flipped[record] else "unflipped"):
            sums[name].append((pushes * sign if basis is not Basis.ATTN_HEAD else pushes, first))
    assert [group.group for group in found.groups] == list(sums)
    assert found.fixed is (basis is not Basis.ATTN_HEAD)
    for group in found.groups:
        pushed, first = zip(*sums[group.group], strict=True)
        mean = torch.stack(pushed).mean(0)
        among = mean[answer] - mean[answer].mean()
        best = among.argsort(descending=True)[:LISTED]
        raised = [(token_name(bench.subject, answer[place]), float(among[place])) for place in best.tolist()]
        names, values = zip(*[pair for pair in raised if pair[1] > 0], strict=True)
        assert [push.token for push in group.answer.raised] == list(names)
        assert [push.push for push in group.answer.raised] == pytest.approx(values, abs=1e-5)
        assert group.vocabulary.lowered[0].push == pytest.approx(float((mean - mean.mean()).min()), abs=1e-5)
        assert group.positions == len(pushed)
        assert group.answer.size == len(answer) < group.vocabulary.size == len(weight)


@pytest.mark.parametrize(("family", "phase"), crossed(Phase))
def test_sources_sum_to_the_whole(family: str, phase: Phase) -> None:
    """Attention shares to 1; what the values carry, less what the replacement would, to the first-order drop."""
    bench = toy(family)
    before = bench.subject.hf.config._attn_implementation
    table = table_of(bench, Basis.ATTN_HEAD, phase)
    found = head_positions(bench.subject, bench.records, table, HEAD, named(bench))
    assert bench.subject.hf.config._attn_implementation == before
    np.testing.assert_allclose(found.attention.sum(1), 1.0, atol=1e-5)
    drops = effects(bench.subject, bench.records, table, [HEAD], competitors=1, effect=Effect.FIRST_ORDER)
    whole = found.toward.sum(1) - found.replacement
    for record in range(len(bench.records)):
        wanted = drops.effect[record, drops.leads.token[record, :, 0] >= 0, 0, 0]
        assert sorted(whole[found.record == record]) == pytest.approx(sorted(wanted), rel=2e-3, abs=2e-4)


def test_shares_by_group_and_the_check_that_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each group's shares sum to 1, the largest first; with a slot too many they do not."""
    bench = toy("llama")
    table = table_of(bench, Basis.ATTN_HEAD)
    found = reads(bench.subject, bench.records, table, HEAD, alternating(bench), named(bench))
    assert [group.group for group in found.heads] == ["all", "flipped", "unflipped"]
    for group in found.heads:
        assert sum(source.attention for source in group.sources) == pytest.approx(1.0, abs=1e-5)
        shares = [source.attention for source in group.sources]
        assert shares == sorted(shares, reverse=True)
    placed = reading._placed
    monkeypatch.setattr(reading, "_placed", lambda *given: placed(*given).roll(1, 1))
    wrong = head_positions(bench.subject, bench.records, table, HEAD, named(bench))
    assert np.abs(wrong.attention.sum(1) - 1.0).max() > 1e-3


def test_a_neuron_reads_as_its_activation() -> None:
    """Its value and its replacement's at positions in reach."""
    bench, unit = toy("llama"), Neuron(Basis.MLP_HIDDEN, 2, 5)
    table = table_of(bench, Basis.MLP_HIDDEN, baseline=Baseline.ZERO)
    found = reads(bench.subject, bench.records, table, unit, alternating(bench), named(bench))
    every, *parts = found.activations
    assert found.heads == ()
    assert every.positions == sum(part.positions for part in parts)
    assert every.replacement == 0.0
    assert every.mean != 0
    assert every.above.flips == sum(part.above.flips for part in parts)


def test_without_a_token_in_reach_nothing_can_be_said() -> None:
    """No record, no position, no mean: a usage error that says so."""
    bench = toy("llama")
    table = table_of(bench, Basis.ATTN_HEAD)
    none = np.zeros(0, bool)
    with pytest.raises(UsageError, match="in reach"):
        writes(bench.subject, [], table, HEAD, none)
    with pytest.raises(UsageError, match="in reach"):
        reads(bench.subject, [], table, HEAD, none, [])


def test_the_direct_share_needs_a_positive_drop() -> None:
    """p / d; where the unit does not support the lead there is nothing to share out."""
    assert links.DirectShare(group="all", positions=3, push=0.2, drop=0.8).share == pytest.approx(0.25)
    assert links.DirectShare(group="all", positions=3, push=0.2, drop=-0.8).share is None
