"""Every family's writes sum to its residual stream and padding changes no answer; each check can fail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_models import FAMILIES, tiny_model
from toy_behaviour import Toy, toy

from mecharule_ops.engine.behaviour import behaviour_on
from mecharule_ops.engine.guard import GuardFailed
from mecharule_ops.engine.soundness import Soundness, check_soundness
from mecharule_ops.errors import ModelUnavailable
from mecharule_ops.loading import generation
from mecharule_ops.loading.model import Subject
from mecharule_ops.loading.wiring import wiring_for


def checked(bench: Toy, subject: Subject | None = None) -> Soundness:
    prompts = bench.subject.encode([record.example.prompt for record in bench.records])
    return check_soundness(subject or bench.subject, prompts, [record.tokens for record in bench.records])


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_sound(family: str) -> None:
    """Differences are rounding."""
    found = checked(toy(family))
    assert 0 <= found.sums < 1e-5
    assert 0 <= found.padding < 1e-4


@pytest.mark.parametrize("family", FAMILIES)
def test_a_layer_that_scales_what_is_written_is_named(family: str) -> None:
    """As families with a multiplier on the residual stream do."""
    bench = toy(family)
    block = bench.subject.wiring.blocks(bench.subject.hf)[1]

    def scaled(module: object, inputs: object, output: Any) -> Any:
        return (output[0] * 0.9, *output[1:]) if isinstance(output, tuple) else output * 0.9

    handle = block.register_forward_hook(scaled)
    try:
        with pytest.raises(GuardFailed, match=r"attention and MLP of layer 1 .* a difference of \d\.\de-0\d"):
            checked(bench)
    finally:
        handle.remove()


def test_a_write_that_is_taken_before_its_normalisation_is_seen() -> None:
    """Gemma 2 under the wiring of Llama: the norms behind the projections are left out."""
    bench = toy("gemma2")
    subject = replace(bench.subject)
    subject.__dict__["wiring"] = wiring_for("llama")
    with pytest.raises(GuardFailed, match="layer 0"):
        checked(bench, subject)


def test_padding_that_is_attended_to_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mask that leaves it open."""
    real = generation._aligned

    def open_mask(*given: object) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        ids, mask, positions = real(*given)  # type: ignore[arg-type]
        return ids, torch.ones_like(mask), positions

    monkeypatch.setattr(generation, "_aligned", open_mask)
    with pytest.raises(GuardFailed, match=r"padding to change no answer of .*a difference of"):
        checked(toy("llama"))


@pytest.mark.parametrize(
    ("weight", "where"),
    [
        ("model.embed_tokens.weight", "the embedding"),
        ("model.layers.1.mlp.up_proj.weight", "layer 1"),
        ("model.layers.2.self_attn.o_proj.weight", "layer 2"),
        ("lm_head.weight", "the unembedding"),
    ],
)
@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_logits_that_are_no_numbers_name_example_and_layer(weight: str, where: str, value: float) -> None:
    """Instead of answers that a wrong argmax made."""
    bench, (model, tokenizer) = toy("llama"), tiny_model("llama")
    with torch.no_grad():
        model.get_parameter(weight)[:] = value
    subject = Subject(name="ill", directory=Path("ill"), hf=model, tokenizer=tokenizer)
    examples = [record.example for record in bench.records]
    with pytest.raises(ModelUnavailable, match=rf"example {examples[0].id}, first in {where}; ") as caught:
        behaviour_on(bench.task, subject, examples)
    assert "\n" not in str(caught.value)
