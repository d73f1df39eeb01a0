"""A model on several cards, simulated on the processor, is the model; what would mix cards is refused."""

from pathlib import Path

import pytest
import torch
from rounded import allowed, same
from simulated_cards import on_cards, simulated_cards
from tiny_models import crossed, save_tiny

from mecharule_ops.loading import model_names, products
from mecharule_ops.passes.greedy import unembedding_of

PROMPTS = [(1, 5, 6, 7), (1, 9, 8), (1, 12, 30, 4, 4, 11)]


def test_tensors_of_two_cards_do_not_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulation refuses what torch refuses of real cards, and nothing else."""
    with simulated_cards(monkeypatch, 2):
        one, other = torch.ones(3, device="cuda:0"), torch.ones(3).to("cuda:1")
        with pytest.raises(RuntimeError, match="on one device, found cuda:0, cuda:1"):
            one + other
        with pytest.raises(RuntimeError, match="on one device, found cpu, cuda:0"):
            one * torch.ones(3)
        with pytest.raises(RuntimeError, match="on one device"):
            one[torch.tensor([0], device="cuda:1")]
        with pytest.raises(TypeError, match="cuda:0"):
            one.numpy()
        moved = one.requires_grad_().to("cuda:1")
        (moved * other * torch.tensor(2.0))[torch.tensor([0, 2])].sum().backward()
        assert moved.device == other.device
        assert one.grad.device == one.device
        assert one.grad.tolist() == [2.0, 0.0, 2.0]


@pytest.mark.parametrize(("family", "dtype"), crossed(["float32", "bfloat16"], whole=["llama"]))
def test_a_spread_model_is_the_model(
    family: str, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loaded by transformers and accelerate to two cards: its hash and what is tied, to the bit; what it writes.

    Its leads and what is unembedded are the model's to a rounding: a copy of a weight lies elsewhere in memory.
    """
    monkeypatch.setattr(products, "_ONEDNN", False)
    directory = str(save_tiny(tmp_path, family))
    plain = model_names.load(directory, "cpu", dtype)
    plain.hf.set_attn_implementation("eager")
    with simulated_cards(monkeypatch, 2):
        found = on_cards(monkeypatch, directory, (0.75, 0.8), dtype)
        assert found.device_name == "cuda:1 and cuda:0"
        _, head = found.wiring.head(found.hf)
        assert head.get_parameter("weight").device == found.device
        beside = (*found.hf.named_parameters(), *found.hf.named_buffers())
        stem = f"{found.wiring.layers}."
        assert {tensor.device for name, tensor in beside if not name.startswith(stem)} == {found.device}
        assert [
            {tensor.device.index for tensor in block.parameters()} for block in found.wiring.blocks(found.hf)
        ] in ([{1}, {0}, {0}], [{1}, {1}, {0}])
        assert len(list(found.hf.parameters())) == len(list(plain.hf.parameters()))
        assert found.dtype == plain.dtype
        assert found.model_hash == plain.model_hash
        one, other = (each.generate(PROMPTS, 5, frozenset({2})) for each in (found, plain))
        assert one.tokens == other.tokens
        bound = allowed(plain, PROMPTS, other.tokens)
        logits = [
            unembedding_of(plain).logits(torch.tensor(each.representation)).numpy() for each in (one, other)
        ]
        assert same(one.margins, other.margins, bound)
        assert same(logits[0], logits[1], bound)
