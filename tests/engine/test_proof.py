"""The proof on a model holds for every family and every type, and fails where a hook lies."""

from __future__ import annotations

import pytest
import torch
from tiny_models import FAMILIES
from toy_behaviour import toy

from mecharule_ops.engine import proof as proving
from mecharule_ops.engine.proof import Proof, prove
from mecharule_ops.types import Basis, Intervention, Phase


def proved(family: str, basis: Basis = Basis.MLP_OUT) -> Proof:
    made = toy(family)
    table = made.table(Intervention(basis=basis, phase=Phase.LAST_PROMPT))
    return prove(made.subject, made.task, made.records, table)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_passes(family: str) -> None:
    """Differences are rounding, and what a batch took is measured."""
    found = proved(family)
    assert found.passed
    assert found.rows > 0 < found.seconds
    assert f"in all 3 layers the {Basis.MLP_OUT} hook fires" in found.guard


@pytest.mark.parametrize("basis", list(Basis))
def test_every_basis_passes(basis: Basis) -> None:
    assert proved("llama", basis).passed


def test_a_pass_that_is_off_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Either difference by itself is enough."""
    real = proving.ablated_copies

    def off(*args: object, **named: object) -> torch.Tensor:
        return real(*args, **named) + 0.1  # type: ignore[arg-type]

    monkeypatch.setattr(proving, "ablated_copies", off)
    found = proved("llama")
    assert found.hooked <= 1e-4 * found.largest < found.restored
    assert not found.passed
