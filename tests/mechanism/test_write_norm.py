"""Norms of writes: those of a model whose weights are known, the write itself for every architecture, a refusal."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from toy_behaviour import toy
from write_norm import write_norms

from mecharule_ops.errors import UsageError
from mecharule_ops.loading.model_names import load
from mecharule_ops.types import Basis

NORMALISED = ("gemma2", "gemma3_text")


def test_norms_of_known_weights() -> None:
    """By hand: a row of 3s, a column of 2s, a head's block of 5s, everything else 0."""
    subject = load("arith-tiny")
    mlp, attention = subject.hf.model.layers[1].mlp, subject.hf.model.layers[0].self_attn
    with torch.no_grad():
        mlp.down_proj.weight.zero_()
        attention.o_proj.weight.zero_()
        mlp.down_proj.weight[7] = 3.0
        attention.o_proj.weight[:, 32:64] = 5.0
    channels = write_norms(subject, Basis.MLP_OUT)
    assert channels.shape == (2, 128)
    assert np.flatnonzero(channels[1]).tolist() == [7]
    assert channels[1, 7] == pytest.approx(3 * 512**0.5)
    assert write_norms(subject, Basis.MLP_HIDDEN)[1] == pytest.approx(np.full(512, 3.0))
    assert write_norms(subject, Basis.ATTN_HEAD)[0] == pytest.approx([0, 5 * (128 * 32) ** 0.5, 0, 0])


@pytest.mark.parametrize("family", ["llama", "gpt2", "gptj", "gpt_neox"])
@pytest.mark.parametrize("basis", list(Basis))
def test_a_norm_is_that_of_what_the_projection_does_with_each_scalar(family: str, basis: Basis) -> None:
    """The slow way: each scalar of each unit set to 1 alone, the projection's answer less its answer to nothing."""
    subject = toy(family).subject
    norms = write_norms(subject, basis)
    assert norms.shape == (subject.n_layers, subject.width(basis))
    site = basis if basis.row.in_input else Basis.MLP_HIDDEN
    for layer, block in enumerate(subject.wiring.blocks(subject.hf)):
        projection, _ = subject.wiring.site(block, site)
        scalars = subject.width(site) * subject.unit_size(site)
        with torch.no_grad():
            answers = projection(torch.eye(scalars)) - projection(torch.zeros(1, scalars))
        squares = answers.double().square()
        own = squares.sum(1).reshape(subject.width(site), -1).sum(1) if basis.row.in_input else squares.sum(0)
        assert norms[layer] == pytest.approx(own.sqrt().numpy(), rel=1e-4)


@pytest.mark.parametrize("family", NORMALISED)
def test_a_write_behind_a_normalisation_has_no_norm(family: str) -> None:
    """One line: what was expected, got, what to do."""
    with pytest.raises(UsageError, match="which normalises in between; rank by attribution"):
        write_norms(toy(family).subject, Basis.MLP_OUT)
