"""Units held at their clean values beside an ablation: both engines against a whole forward a token."""

import pytest
import torch
from tiny_models import crossed
from toy_behaviour import Toy, at_sites, forward, hooked, naive_completion, toy, turning

from mecharule_ops.engine.chunks import Chunk
from mecharule_ops.engine.speculation import Speculation
from mecharule_ops.errors import UsageError
from mecharule_ops.loading.model import Subject
from mecharule_ops.mechanism.holds import Above, LayerSizes, held_by, is_above, parse_hold
from mecharule_ops.types import Baseline, Basis, BehaviourRecord, Intervention, Neuron, Phase


def asked(bench: Toy, basis: Basis) -> tuple[list[tuple[Neuron, ...]], list[tuple[Neuron, ...]]]:
    """Strong groups of layer 0, and what is held beside them: one of each basis, a whole later layer, nothing."""
    group = tuple(Neuron(basis, 0, channel) for channel in range(0, bench.subject.width(basis), 2))
    later = tuple(Neuron(each, 2, bench.subject.width(each) - 1) for each in Basis)
    whole = tuple(Neuron(Basis.ATTN_HEAD, 1, head) for head in range(bench.subject.width(Basis.ATTN_HEAD)))
    return [group, group, group], [later, whole, ()]


@pytest.mark.parametrize(("family", "basis"), crossed(Basis))
def test_both_engines_hold_what_a_whole_forward_a_token_holds(family: str, basis: Basis) -> None:
    """Token for token, held units of every basis, in every phase, released at the first changed token."""
    bench = toy(family)
    table = bench.table(Intervention(basis=basis, baseline=Baseline.ZERO, phase=turning(family, basis)))
    groups, held = asked(bench, basis)
    examples = [7, 0, 4, 2]
    wanted = tuple(
        tuple(naive_completion(bench, table, group, bench.records[example], kept) for example in examples)
        for group, kept in zip(groups, held, strict=True)
    )
    assert bench.engine(table).completions(groups, examples, held).tokens == wanted
    if family == "gemma3_text":
        return  # TransformerLens knows no text model of this family, so it has no reference path.
    assert bench.reference(table, rows=3).completions(groups, examples, held).tokens == wanted


@pytest.mark.parametrize(("family", "basis"), crossed(Basis))
def test_every_later_unit_held_leaves_the_direct_effect(family: str, basis: Basis) -> None:
    """The first token behind the prompt is that of the clean residual stream plus what the unit's change writes."""
    bench = toy(family)
    subject = bench.subject
    unit = Neuron(basis, 0, 1)
    table = bench.table(Intervention(basis=basis, baseline=Baseline.ZERO, phase=Phase.LAST_PROMPT))
    shape = LayerSizes(layers=subject.n_layers, heads=subject.n_heads, channels=subject.d_model)
    held = tuple(held_by(Above.EVERYTHING, unit, shape))
    examples = list(range(10))
    found = bench.engine(table).completions([(unit,)], examples, [held])
    for example, tokens in zip(examples, found.tokens[0], strict=True):
        assert tokens[0] == _direct(subject, unit, bench.records[example])


def _direct(subject: Subject, unit: Neuron, record: BehaviourRecord) -> int:
    """The greedy token when what the unit adds to the residual stream at the last prompt position is taken out of it.

    Beside a head the MLP of its block keeps what it wrote.
    """
    (ids,) = subject.encode([record.example.prompt])
    blocks, kept, above = subject.wiring.blocks(subject.hf), [], []
    write, _ = subject.wiring.site(blocks[unit.layer], Basis.MLP_OUT)

    def zero(unit: Neuron, part: torch.Tensor) -> torch.Tensor:
        return torch.cat([part[:-1], torch.zeros_like(part[-1:])])

    def without(hidden: torch.Tensor) -> torch.Tensor:
        return torch.cat([hidden[:, :-1], hidden[:, -1:] + (above[1] - above[0])[:, -1:]], 1)

    with hooked(blocks[unit.layer + 1], True, above.append):
        with hooked(write, False, kept.append):
            forward(subject, ids)
        head = unit.basis is Basis.ATTN_HEAD
        with at_sites(subject, [unit], zero), hooked(write, False, lambda out: kept[0] if head else None):
            forward(subject, ids)
    with hooked(subject.wiring.head(subject.hf)[0], True, without):
        return int(forward(subject, ids)[-1].argmax())


def test_wrong_values_and_a_wrong_release_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values other than the clean ones, or none held in rows that are fed again, give other completions.

    Some completions differ with units held; without any, none does.
    """
    bench = toy("llama")
    table = bench.table(Intervention(basis=Basis.ATTN_HEAD, baseline=Baseline.ZERO, phase=Phase.WHOLE))
    groups, held = asked(bench, Basis.ATTN_HEAD)
    wanted = bench.engine(table).completions(groups, range(10), held).tokens
    assert wanted[2] == bench.engine(table).completions(groups[:1], range(10)).tokens[0] != wanted[1]
    site, kept = Chunk.site, Speculation._held_below_change
    with monkeypatch.context() as patch:
        patch.setattr(Chunk, "site", lambda *arguments: site(*arguments) * 1.5)
        assert bench.engine(table).completions(groups, range(10), held).tokens != wanted
    monkeypatch.setattr(Speculation, "_held_below_change", lambda *arguments: (kept(*arguments)[0], 0))
    assert bench.engine(table).completions(groups, range(10), held).tokens != wanted


def test_what_is_ablated_cannot_be_held() -> None:
    """A unit has one value at a time, and only units that exist are held."""
    bench = toy("llama")
    table = bench.table(Intervention(basis=Basis.ATTN_HEAD, baseline=Baseline.ZERO))
    unit, missing = Neuron(Basis.ATTN_HEAD, 0, 1), Neuron(Basis.MLP_OUT, 9, 0)
    with pytest.raises(UsageError, match=r"held, got a0\.h1"):
        bench.engine(table).completions([(unit,)], [0], [(unit,)])
    with pytest.raises(UsageError, match="3 layers"):
        bench.engine(table).completions([(unit,)], [0], [(missing,)])


def test_what_lies_above_a_unit() -> None:
    """Later layers, and the MLP behind a head; never the heads beside it, nor what a neuron itself writes."""
    head, shape = Neuron(Basis.ATTN_HEAD, 1, 0), LayerSizes(layers=3, heads=1, channels=1)

    def texts(held: str, unit: Neuron) -> str:
        return " ".join(map(str, held_by(parse_hold(held), unit, shape)))

    assert texts("above", head) == "a2.h0 m1.0 m2.0"
    assert texts("heads-above", head) == "a2.h0"
    assert texts("MLPs-above", head) == "m1.0 m2.0"
    assert texts("above", Neuron(Basis.MLP_HIDDEN, 1, 0)) == "a2.h0 m2.0"
    assert texts("m2+a2+n0.7", head) == "m2.0 a2.h0 n0.7"
    with pytest.raises(UsageError):
        parse_hold("m")
    assert all(str(parse_hold(held)) == held for held in ("above", "m2", "a1.h0", "m2+a2+n0.7"))
    assert is_above(head, Neuron(Basis.MLP_HIDDEN, 1, 5))
    assert not is_above(head, Neuron(Basis.ATTN_HEAD, 1, 5))
    assert not is_above(head, Neuron(Basis.MLP_OUT, 0, 5))
