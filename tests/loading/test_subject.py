"""Greedy generation, representations, sizes and identity of a subject, on every supported architecture."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_models import CHARACTERS, FAMILIES, tiny_model

from mecharule_ops import errors, types
from mecharule_ops.loading.model import Subject

FEW_SHOT = "1 + 1 = 2\n3 + 4 = 7\n"
TEXTS = [FEW_SHOT + text for text in ("1 + 2 =", "abc", "11 * 44444 =", "9", "77 - 7 =", "1 + 3 =", "u / 2")]
UNRELATED = ["1 + 2 =", "abc", "9 * 9 / 123", "7"]


def tiny_subject(family: str, seed: int = 0) -> Subject:
    model, tokenizer = tiny_model(family, seed)
    return Subject(name=family, directory=Path(), hf=model, tokenizer=tokenizer)


def one_by_one(subject: Subject, prompts: list[tuple[int, ...]], count: int, stop: frozenset[int]) -> tuple:
    """The oracle: no cache, no batch, no padding, one whole forward a token."""
    completions = []
    for prompt in prompts:
        ids = list(prompt)
        while len(ids) - len(prompt) < count and (len(ids) == len(prompt) or ids[-1] not in stop):
            with torch.no_grad():
                ids.append(int(subject.hf(torch.tensor([ids]), use_cache=False).logits[0, -1].argmax()))
        completions.append(tuple(ids[len(prompt) :]))
    return tuple(completions)


@pytest.mark.parametrize("family", FAMILIES)
def test_generation_equals_decoding_each_prompt_alone(family: str) -> None:
    """Mixed lengths, with and without a shared prefix, any batch size: the same tokens as the naive route."""
    subject = tiny_subject(family)
    stop = subject.stop_ids(("q", "3"))
    for texts in (TEXTS, UNRELATED):
        prompts = subject.encode(texts)
        expected = one_by_one(subject, prompts, 7, stop)
        for batch in (1, 3, 64):
            assert subject.generate(prompts, 7, stop, batch=batch).tokens == expected


@pytest.mark.parametrize("family", FAMILIES)
def test_representation_is_the_final_normalised_state_before_the_gain(family: str) -> None:
    """Gain and bias applied to it give Hugging Face's last hidden state of the prompt run alone."""
    subject = tiny_subject(family)
    prompts = subject.encode(TEXTS)
    representation = torch.from_numpy(subject.generate(prompts, 1, frozenset(), batch=3).representation)
    norm, _ = subject.wiring.head(subject.hf)
    gain = norm.weight.detach() + (1.0 if family.startswith("gemma") else 0.0)
    bias = norm.bias.detach() if getattr(norm, "bias", None) is not None else torch.zeros_like(gain)
    for prompt, row in zip(prompts, representation, strict=True):
        with torch.no_grad():
            last = subject.hf(torch.tensor([prompt]), output_hidden_states=True).hidden_states[-1][0, -1]
        assert torch.allclose(row * gain + bias, last, atol=2e-5)
        assert not torch.allclose(row, last, atol=1e-2)


@pytest.mark.parametrize("family", FAMILIES)
def test_head_output_is_the_attention_pattern_times_its_values(family: str) -> None:
    """At the first position a head attends to itself alone: heads that share a value head agree there."""
    subject = tiny_subject(family)
    heads = subject.n_heads
    groups = getattr(subject.hf.config, "num_key_value_heads", heads)
    site, in_input = subject.wiring.site(subject.wiring.blocks(subject.hf)[1], types.Basis.ATTN_HEAD)
    seen: list[torch.Tensor] = []
    site.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    with torch.no_grad():
        subject.hf(torch.tensor(subject.encode(["1 + 2 ="])))
    first = seen[0][0, 0].reshape(groups, heads // groups, subject.head_dim)
    assert in_input
    assert torch.allclose(first, first[:, :1].expand_as(first), atol=1e-6)
    assert groups == 1 or not torch.allclose(first[0], first[1])


def test_hashes_name_weights_and_tokenizer() -> None:
    """Equal weights hash equally, one changed weight or one changed token does not."""
    left, right, other = tiny_subject("llama"), tiny_subject("llama"), tiny_subject("llama", seed=1)
    assert left.model_hash == right.model_hash != other.model_hash
    assert len(left.model_hash) == 16
    tokenizer = tiny_model("llama")[1]
    tokenizer.add_tokens(["v"])
    assert left.tokenizer_hash == right.tokenizer_hash != replace(left, tokenizer=tokenizer).tokenizer_hash
    with torch.no_grad():
        right.hf.lm_head.weight[0, 0] += 1
    assert replace(right).model_hash != left.model_hash


def test_text_survives_encoding_and_decoding() -> None:
    """Spaces stay, special tokens go, the beginning token is the tokenizer's own."""
    subject = tiny_subject("llama")
    (row,) = subject.encode(["a  + 1 ="])
    assert row[0] == CHARACTERS.index("<s>")
    assert subject.decode(row) == "a  + 1 ="
    assert subject.encode([]) == []
    with pytest.raises(AssertionError):
        subject.decode([row])  # type: ignore[list-item]


def test_stop_ids_are_ends_and_tokens_containing_the_text() -> None:
    """End of sequence always; others by what they spell."""
    subject = tiny_subject("gpt2")
    end = CHARACTERS.index("\n")
    assert subject.stop_ids(()) == {end}
    assert subject.stop_ids(("a", " ")) == {end, CHARACTERS.index("a"), CHARACTERS.index(" ")}


def test_wrong_prompts_are_named_errors() -> None:
    """Unknown characters, empty prompts, prompts that do not fit, a tokenizer of another model."""
    subject = tiny_subject("gpt2")
    with pytest.raises(errors.UsageError, match="knows, got '×'"):
        subject.encode(["3 × 4"])
    with pytest.raises(errors.UsageError, match="at least one token"):
        subject.generate([()], 1, frozenset())
    with pytest.raises(errors.UsageError, match="at most 60 tokens, got 61 in prompt 0"):
        subject.generate([(3,) * 61], 4, frozenset())
    tokenizer = tiny_model("gpt2")[1]
    tokenizer.add_tokens(["v"])
    with pytest.raises(errors.ModelUnavailable, match="token ids below 40 for gpt2, got 40"):
        replace(subject, tokenizer=tokenizer).encode(["v"])


def test_no_prompts_give_empty_results() -> None:
    """Of the right shape."""
    nothing = tiny_subject("llama").generate([], 3, frozenset())
    assert (nothing.tokens, nothing.representation.shape) == ((), (0, 32))
