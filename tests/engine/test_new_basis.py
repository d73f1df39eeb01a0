"""A basis is one row: one made up here, the channels that attention writes, is named, ablated and certified."""

from __future__ import annotations

from pathlib import Path

import pytest
from bundled_run import QUICK, new_run, opened
from toy_behaviour import toy

from mecharule_ops.bases import ROWS, Basis, BasisRow
from mecharule_ops.certificates.verification import VerificationStatus, verify
from mecharule_ops.engine.guard import check_intervention
from mecharule_ops.errors import UsageError
from mecharule_ops.run.journal import Journal
from mecharule_ops.run.preparation import prepare
from mecharule_ops.run.second_run import Bench, rerun
from mecharule_ops.types import Intervention, Neuron, Phase
from tools.registry import call

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


def test_its_units_print_and_parse(attn_out: Basis, monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand; without its row there is no such unit."""
    unit = Neuron.parse("o4.12")
    assert (unit.basis, unit.layer, unit.channel, str(unit)) == (attn_out, 4, 12, "o4.12")
    monkeypatch.undo()
    with pytest.raises(UsageError, match="expected a unit"):
        Neuron.parse("o4.12")


@pytest.mark.parametrize(("family", "phase"), [*zip(("llama", "gpt2", "qwen2"), Phase, strict=True)])
def test_both_engines_ablate_it_alike(attn_out: Basis, family: str, phase: Phase) -> None:
    """The fast path against one hooked forward a token on TransformerLens; the guard sees the hook fire."""
    bench = toy(family)
    intervention = Intervention(basis=attn_out, phase=phase)
    table = bench.table(intervention)
    groups, examples = bench.groups(attn_out, 3, seed=2), [7, 0, 4, 2]
    fast = bench.engine(table).completions(groups, examples)
    slow = bench.reference(table)
    assert fast.tokens == slow.completions(groups, examples).tokens
    before = [bench.records[example].tokens for example in examples]
    assert any(list(row) != before for row in fast.tokens)
    check_intervention(bench.subject, bench.task, bench.records, intervention, table)


def test_a_run_ablates_and_certifies_it(
    attn_out: Basis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`mecharule ablate RUN o1.12`: the certificate names the hook and runs again on the reference path."""
    monkeypatch.setenv("MECHARULE_RUNS", str(tmp_path))
    path = tmp_path / "0b45.mecharule"
    with new_run(path, QUICK) as run:
        prepare(run, Journal(run.store, lambda event: None, lambda: 0.0))
    made = call("ablate", {"run": "last", "units": "o1.12,o1.40", "yes": True})
    with opened(path) as run:
        certificate = run.store.certificate(made.facts[0].sources[0].removeprefix("c:"))
        assert certificate.intervention.hook == "blocks.1.hook_attn_out"
        assert certificate.intervention.basis == "attn_out"
        bench = Bench(subject=run.subject, table=lambda how, wanted: run.replacement(how), task=run.task)
        verdict = verify(certificate, lambda one: rerun(bench, one))
    assert verdict.status is VerificationStatus.MATCH
