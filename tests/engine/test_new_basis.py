"""A basis is one row: one made up here, the channels that attention writes, is ablated and guarded."""

import pytest
from toy_behaviour import toy

from mecharule_ops.bases import ROWS, Basis, BasisRow
from mecharule_ops.engine.guard import check_intervention
from mecharule_ops.types import Intervention, Neuron, Phase

ROW = BasisRow(letter="o", site="attention_projection", in_input=False, noun="output", hook="hook_attn_out")


@pytest.fixture
def attn_out(monkeypatch: pytest.MonkeyPatch) -> Basis:
    """The member and the row that `bases` would have; no other module is touched."""
    member = str.__new__(Basis, "attn_out")
    member._name_, member._value_ = "ATTN_OUT", "attn_out"
    monkeypatch.setitem(Basis._member_map_, "ATTN_OUT", member)
    monkeypatch.setitem(Basis._value2member_map_, "attn_out", member)
    monkeypatch.setattr(Basis, "_member_names_", [*Basis._member_names_, "ATTN_OUT"])
    monkeypatch.setitem(ROWS, member, ROW)
    return member


@pytest.mark.parametrize(("family", "phase"), [*zip(("llama", "gpt2", "qwen2"), Phase, strict=True)])
def test_both_engines_ablate_it_alike(attn_out: Basis, family: str, phase: Phase) -> None:
    """The fast path against one hooked forward a token on TransformerLens; the guard sees the hook fire."""
    bench = toy(family)
    intervention = Intervention(basis=attn_out, phase=phase)
    table = bench.table(intervention)
    assert Neuron.parse("o2.12").basis is attn_out
    groups, examples = bench.groups(attn_out, 3, seed=2), [7, 0, 4, 2]
    fast = bench.engine(table).completions(groups, examples)
    assert fast.tokens == bench.reference(table).completions(groups, examples).tokens
    before = [bench.records[example].tokens for example in examples]
    assert any(list(row) != before for row in fast.tokens)
    check_intervention(bench.subject, bench.task, bench.records, intervention, table)
