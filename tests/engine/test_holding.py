"""Units held at their clean values beside an ablation: both engines against a whole forward a token."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest
import torch
from tiny_models import crossed
from toy_behaviour import Toy, toy, turning

from mecharule_ops.engine.chunks import Chunk
from mecharule_ops.engine.reference import ReferenceEngine
from mecharule_ops.engine.speculation import Speculation
from mecharule_ops.errors import UsageError
from mecharule_ops.loading.model import Subject
from mecharule_ops.mechanism.holds import Above, LayerSizes, is_above, parse_hold
from mecharule_ops.mechanism.mediation import first_change
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.types import Baseline, Basis, BehaviourRecord, Intervention, Neuron, Phase


class Slow:
    """Decoding by a whole forward a token: no cache, no batch, no padding; sites are written unit by unit."""

    def __init__(self, bench: Toy, table: ReplacementTable) -> None:
        self.bench, self.table, self.subject = bench, table, bench.subject

    def completion(
        self, group: Collection[Neuron], held: Collection[Neuron], record: BehaviourRecord
    ) -> tuple[int, ...]:
        (prompt,) = self.subject.encode([record.example.prompt])
        stop = self.subject.stop_ids(self.bench.task.stop)
        clean = self.sites([*prompt, *record.tokens], held)
        completion: tuple[int, ...] = ()
        while len(completion) < self.bench.task.max_new_tokens and not set(completion[-1:]) & stop:
            changed = first_change(record.tokens[: len(completion)], completion)
            same = len(prompt) + (len(completion) if changed is None else changed)
            completion = (
                *completion,
                self.next(prompt, completion, group, {u: clean[u][:same] for u in held}),
            )
        return completion

    def next(self, prompt: Any, completion: Any, group: Any, held: dict[Neuron, torch.Tensor]) -> int:
        ids = [*prompt, *completion]
        offsets = torch.arange(len(ids)) - len(prompt) + 1
        first = {Phase.DECODE: 1, Phase.LAST_PROMPT: 0, Phase.WHOLE: -len(prompt)}
        start = int((offsets < first[self.table.intervention.phase]).sum())
        handles = [
            self.written(unit, start, self.table.value(unit.layer, offsets)[start:, unit.channel])
            for unit in group
        ] + [self.written(unit, 0, values) for unit, values in held.items()]
        try:
            with torch.no_grad():
                return int(self.subject.hf(torch.tensor([ids])).logits[0, -1].argmax())
        finally:
            for handle in handles:
                handle.remove()

    def sites(self, ids: list[int], units: Collection[Neuron]) -> dict[Neuron, torch.Tensor]:
        seen: dict[Neuron, torch.Tensor] = {}
        handles = [
            self.hook(unit, lambda part, unit=unit: seen.update({unit: part.clone()})) for unit in units
        ]
        with torch.no_grad():
            self.subject.hf(torch.tensor([ids]))
        for handle in handles:
            handle.remove()
        return seen

    def written(self, unit: Neuron, start: int, values: torch.Tensor) -> Any:
        def write(part: torch.Tensor) -> None:
            if len(values):
                part[start : start + len(values)] = values.reshape(len(values), -1)

        return self.hook(unit, write)

    def hook(self, unit: Neuron, use: Any) -> Any:
        """`use` gets the unit's `[position, scalar]` view of its site."""
        module, in_input = self.subject.wiring.site(
            self.subject.wiring.blocks(self.subject.hf)[unit.layer], unit.basis
        )
        size = self.subject.unit_size(unit.basis)

        def seen(site: torch.Tensor) -> None:
            use(site[0, :, unit.channel * size : (unit.channel + 1) * size])

        if in_input:
            return module.register_forward_pre_hook(lambda module, inputs: seen(inputs[0]))
        return module.register_forward_hook(lambda module, inputs, output: seen(output))


def asked(bench: Toy, basis: Basis) -> tuple[list[tuple[Neuron, ...]], list[tuple[Neuron, ...]]]:
    """Strong groups of layer 0, and what is held beside them: one of each basis, a whole later layer, nothing."""
    width = bench.subject.width(basis)
    group = tuple(Neuron(basis, 0, channel) for channel in range(0, width, 2))
    later = tuple(Neuron(each, 2, bench.subject.width(each) - 1) for each in Basis)
    whole = tuple(Neuron(Basis.ATTN_HEAD, 1, head) for head in range(bench.subject.width(Basis.ATTN_HEAD)))
    return [group, group, group], [later, whole, ()]


@pytest.mark.parametrize(("family", "basis"), crossed(Basis))
def test_both_engines_hold_what_a_whole_forward_a_token_holds(family: str, basis: Basis) -> None:
    """Token for token, held units of every basis, in every phase, released at the first changed token."""
    bench = toy(family)
    table = bench.table(Intervention(basis=basis, baseline=Baseline.ZERO, phase=turning(family, basis)))
    groups, held = asked(bench, basis)
    examples, slow = [7, 0, 4, 2], Slow(bench, table)
    wanted = tuple(
        tuple(slow.completion(group, kept, bench.records[example]) for example in examples)
        for group, kept in zip(groups, held, strict=True)
    )
    assert bench.engine(table).completions(groups, examples, held).tokens == wanted
    if family == "gemma3_text":
        return  # TransformerLens knows no text model of this family, so it has no reference path.
    plain = ReferenceEngine(bench.subject, bench.task, bench.records, table.intervention, table, rows=3)
    assert plain.completions(groups, examples, held).tokens == wanted


def test_holding_changes_what_happens_and_nothing_held_changes_nothing() -> None:
    """The equality above can fail: some completions differ with units held. Without any, none does."""
    bench = toy("llama")
    table = bench.table(Intervention(basis=Basis.ATTN_HEAD, baseline=Baseline.ZERO, phase=Phase.WHOLE))
    groups, held = asked(bench, Basis.ATTN_HEAD)
    found = bench.engine(table).completions(groups, range(10), held).tokens
    alone = bench.engine(table).completions(groups[:1], range(10)).tokens
    assert found[2] == alone[0]
    assert found[1] != alone[0]


@pytest.mark.parametrize(("family", "basis"), crossed(Basis))
def test_every_later_unit_held_leaves_the_direct_effect(family: str, basis: Basis) -> None:
    """The first token behind the prompt is that of the clean residual stream plus what the unit's change writes."""
    bench = toy(family)
    subject = bench.subject
    unit = Neuron(basis, 0, 1)
    table = bench.table(Intervention(basis=basis, baseline=Baseline.ZERO, phase=Phase.LAST_PROMPT))
    shape = LayerSizes(layers=subject.n_layers, heads=subject.n_heads, channels=subject.d_model)
    held = tuple(Above.EVERYTHING.units(unit, shape))
    examples = list(range(10))
    found = bench.engine(table).completions([(unit,)], examples, [held])
    for example, tokens in zip(examples, found.tokens[0], strict=True):
        assert tokens[0] == _direct(subject, unit, bench.records[example])


def _direct(subject: Subject, unit: Neuron, record: BehaviourRecord) -> int:
    """The greedy token when the unit's write at the last prompt position is taken out of the final residual."""
    (ids,) = subject.encode([record.example.prompt])
    norm, _ = subject.wiring.head(subject.hf)
    before, after = (_block_output(subject, unit, list(ids), ablated) for ablated in (False, True))
    change = after - before

    def add(module: Any, inputs: Any) -> Any:
        moved = inputs[0].clone()
        moved[0, -1] += change
        return (moved,)

    handle = norm.register_forward_pre_hook(add)
    try:
        with torch.no_grad():
            return int(subject.hf(torch.tensor([ids])).logits[0, -1].argmax())
    finally:
        handle.remove()


def _block_output(subject: Subject, unit: Neuron, ids: list[int], ablated: bool) -> torch.Tensor:
    """What the unit's block writes at the last position when its MLP is held, with and without the unit."""
    block = subject.wiring.blocks(subject.hf)[unit.layer]
    module, in_input = subject.wiring.site(block, unit.basis)
    size, kept, seen = subject.unit_size(unit.basis), [], []

    def zero(site: torch.Tensor) -> None:
        site[0, -1, unit.channel * size : (unit.channel + 1) * size] = 0.0

    write, _ = subject.wiring.site(block, Basis.MLP_OUT)
    noted = write.register_forward_hook(lambda module, inputs, output: kept.append(output.clone()))
    with torch.no_grad():
        subject.hf(torch.tensor([ids]))
    noted.remove()
    handles = []
    if ablated and in_input:
        handles.append(module.register_forward_pre_hook(lambda module, inputs: zero(inputs[0])))
    elif ablated:
        handles.append(module.register_forward_hook(lambda module, inputs, output: zero(output)))
    if unit.basis is Basis.ATTN_HEAD:
        handles.append(write.register_forward_hook(lambda module, inputs, output: kept[0]))
    handles.append(
        block.register_forward_hook(
            lambda module, inputs, output: seen.append(output[0] if isinstance(output, tuple) else output)
        )
    )
    with torch.no_grad():
        subject.hf(torch.tensor([ids]))
    for handle in handles:
        handle.remove()
    return seen[0][0, -1]


def test_wrong_values_and_a_wrong_release_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values other than the clean ones, or none held in rows that are fed again, give other completions."""
    bench = toy("llama")
    table = bench.table(Intervention(basis=Basis.ATTN_HEAD, baseline=Baseline.ZERO, phase=Phase.WHOLE))
    groups, held = asked(bench, Basis.ATTN_HEAD)
    wanted = bench.engine(table).completions(groups, range(10), held).tokens
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
        return " ".join(map(str, parse_hold(held).units(unit, shape)))

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
