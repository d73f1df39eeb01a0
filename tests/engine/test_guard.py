"""The no-op guard holds on every architecture, and each of its parts can fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from tiny_models import FAMILIES
from toy_behaviour import Toy, toy, turning

from mecharule_ops.engine.behaviour import behaviour_on
from mecharule_ops.engine.guard import GuardFailed, GuardResult, check_intervention
from mecharule_ops.errors import MechaRuleError, UsageError
from mecharule_ops.passes import intervention as intervention_module
from mecharule_ops.replacement.baselines import replacement_table
from mecharule_ops.types import Baseline, Basis, Intervention, Phase

TRUE_APPLY = intervention_module.apply


def guarded(bench: Toy, intervention: Intervention) -> GuardResult:
    table = bench.table(intervention)
    return check_intervention(bench.subject, bench.task, bench.records, intervention, table)


def wrongly(monkeypatch: pytest.MonkeyPatch, apply: Callable[..., None]) -> None:
    """Has every edit written by `apply` instead."""
    monkeypatch.setattr("mecharule_ops.passes.intervention.apply", apply)
    monkeypatch.setattr("mecharule_ops.passes.ablated.apply", apply)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("basis", Basis)
def test_the_guard_holds_on_every_architecture(family: str, basis: Basis) -> None:
    """In a phase each, with a sentence that names basis, layers and records."""
    intervention = Intervention(basis=basis, baseline=Baseline.ZERO, phase=turning(family, basis))
    result = guarded(toy(family), intervention)
    assert result == GuardResult(basis=basis, layers=3, records=2)
    assert result.sentence.startswith(f"in all 3 layers the {basis} hook fires")


@pytest.mark.parametrize("basis", Basis)
def test_a_hook_that_writes_nothing_is_caught(monkeypatch: pytest.MonkeyPatch, basis: Basis) -> None:
    """The probe does not hold what was asked."""
    wrongly(monkeypatch, lambda *arguments: None)
    with pytest.raises(GuardFailed, match="replaced and all others bit-equal"):
        guarded(toy("llama"), Intervention(basis=basis))


def test_a_hook_that_does_not_reach_the_output_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The site is right in the single block that is looked at, but the search's own path writes nothing."""
    monkeypatch.setattr("mecharule_ops.passes.ablated.apply", lambda *arguments: None)
    with pytest.raises(GuardFailed, match="layer 0 to change the output"):
        guarded(toy("llama"), Intervention(basis=Basis.MLP_OUT))


@contextmanager
def written_nothing(bench: Toy, layer: int, channels: Sequence[int]) -> Iterator[GuardResult]:
    """What the guard shows while these hidden neurons of a GPT-2's layer write nothing."""
    weight = bench.subject.hf.transformer.h[layer].mlp.c_proj.weight
    before = weight.detach().clone()
    with torch.no_grad():
        weight[list(channels)] = 0
    try:
        intervention = Intervention(basis=Basis.MLP_HIDDEN, phase=Phase.WHOLE)
        records = behaviour_on(
            bench.task, bench.subject, [record.example for record in bench.records]
        ).records
        table = replacement_table(bench.subject, records, intervention)
        yield check_intervention(bench.subject, bench.task, records, intervention, table)
    finally:
        with torch.no_grad():
            weight.copy_(before)


def test_a_layer_whose_probed_units_write_nothing_is_no_failure() -> None:
    """Its other units are replaced too; a layer that writes nothing at all is counted."""
    bench = toy("gpt2")
    width = bench.subject.width(Basis.MLP_HIDDEN)
    with written_nothing(bench, 1, (0, width // 2)) as result:
        assert result.silent == 0
    with written_nothing(bench, 1, range(width)) as result:
        assert result.silent == 1
    assert result.sentence.startswith(
        "in 2 of 3 layers the mlp_hidden hook fires (units of the other 1 write"
    )


@pytest.mark.parametrize("basis", Basis)
def test_a_hook_that_touches_another_unit_is_caught(monkeypatch: pytest.MonkeyPatch, basis: Basis) -> None:
    """One bit of one untouched unit is enough."""

    def clumsy(site: torch.Tensor, *arguments: Any) -> None:
        TRUE_APPLY(site, *arguments)
        site[0, 0, -1] = torch.nextafter(site[0, 0, -1], torch.tensor(9.0))

    wrongly(monkeypatch, clumsy)
    with pytest.raises(GuardFailed, match="layer 0 replaced and all others bit-equal"):
        guarded(toy("gpt2"), Intervention(basis=basis))


def test_a_hook_that_mixes_positions_is_caught_by_restoring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values written one position late pass the first two checks, whose probe is constant, and fail the third."""

    def late(site: torch.Tensor, edits: Any, copies: int, *shape: Any) -> None:
        for edit in edits:
            edit.units.values.copy_(edit.units.values.roll(1, 1) * 3)
        TRUE_APPLY(site, edits, copies, *shape)

    bench = toy("qwen2")
    with monkeypatch.context() as patch:
        patch.setattr("mecharule_ops.passes.ablated.apply", late)
        with pytest.raises(GuardFailed, match="its own clean values"):
            guarded(bench, Intervention(basis=Basis.MLP_OUT))
    assert guarded(bench, Intervention(basis=Basis.MLP_OUT)).records == 2


def test_a_failed_guard_is_an_error_of_the_run() -> None:
    """It ends a run like every other `MechaRuleError`, with exit code 1."""
    assert issubclass(GuardFailed, MechaRuleError)
    assert GuardFailed.exit_code == 1


def test_records_without_intervened_positions_are_refused() -> None:
    """There is nothing to guard."""
    bench = toy("llama")
    intervention = Intervention(basis=Basis.MLP_OUT)
    table = bench.table(intervention)
    with pytest.raises(UsageError, match="last-prompt or whole"):
        check_intervention(bench.subject, bench.task, [], intervention, table)
