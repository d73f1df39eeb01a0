"""Tiny random models of every supported architecture, for tests that need a real forward pass but no weights.

Three layers, width 32, a character vocabulary. Matrices are scaled up so that greedy completions vary with
the prompt, and gains and biases are moved off 1 and 0 so that an ignored one changes the numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors
from tokenizers.decoders import Fuse
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    Gemma3TextConfig,
    GemmaConfig,
    GPT2Config,
    GPTJConfig,
    GPTNeoXConfig,
    LlamaConfig,
    MistralConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen3Config,
)

CHARACTERS = ["<pad>", "<s>", "\n", " ", "+", "-", "*", "/", "=", *"0123456789", *"abcdefghijklmnopqrstu"]
"""40 tokens; id 0 pads, 1 begins, 2 (the newline) ends."""

_SPECIAL: dict[str, Any] = {
    "vocab_size": len(CHARACTERS),
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_LLAMA_LIKE: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    **_SPECIAL,
}
_GPT_LIKE: dict[str, Any] = {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 64, **_SPECIAL}
_GEMMA_3: dict[str, Any] = {"sliding_window": 8, "query_pre_attn_scalar": 12, "sliding_window_pattern": 2}
_WIDE_HEADS: dict[str, Any] = {"head_dim": 12}
"""Gemma's head size is its own field, so that heads × head_dim need not equal the width."""
_CONFIGS = {
    "llama": lambda: LlamaConfig(**_LLAMA_LIKE, tie_word_embeddings=False),
    "qwen2": lambda: Qwen2Config(**_LLAMA_LIKE),
    "gptj": lambda: GPTJConfig(**_GPT_LIKE, rotary_dim=4),
    "gpt2": lambda: GPT2Config(**_GPT_LIKE),
    "gpt_neox": lambda: GPTNeoXConfig(**{k: v for k, v in _LLAMA_LIKE.items() if k != "num_key_value_heads"}),
    "gemma": lambda: GemmaConfig(**{**_LLAMA_LIKE, "num_key_value_heads": 1}, **_WIDE_HEADS),
    "mistral": lambda: MistralConfig(**_LLAMA_LIKE, sliding_window=8),
    "qwen3": lambda: Qwen3Config(**_LLAMA_LIKE, **_WIDE_HEADS, tie_word_embeddings=True),
    "gemma3_text": lambda: Gemma3TextConfig(**_LLAMA_LIKE, **_WIDE_HEADS, **_GEMMA_3),
    "gemma2": lambda: Gemma2Config(**_LLAMA_LIKE, **_WIDE_HEADS, sliding_window=8, query_pre_attn_scalar=12),
}
FAMILIES = tuple(_CONFIGS)
_SLOW = [pytest.mark.slow]
MAIN = ("llama", "qwen2", "gptj", "gpt2")
"""Architectures of the models that are used most: the paper's, the default one's, GPT-2's."""


def crossed(
    values: Iterable[Any], families: Sequence[str] = FAMILIES, whole: Collection[str] = MAIN
) -> list[Any]:
    """(architecture, value) of a test that takes seconds with each.

    The default suite tests the architectures in `whole` with every value and the others with one each, in turn; all
    other pairs are marked slow.
    """
    values = tuple(values)
    return [
        pytest.param(family, value, marks=[] if family in whole or place == turn % len(values) else _SLOW)
        for turn, family in enumerate(families)
        for place, value in enumerate(values)
    ]


def character_tokenizer(characters: Sequence[str] = CHARACTERS) -> PreTrainedTokenizerFast:
    """One token a character, `<s>` in front, newline as end of sequence, left padding."""
    vocabulary = {character: index for index, character in enumerate(characters)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = Fuse()
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="\n", pad_token="<pad>", padding_side="left"
    )


def tiny_model(family: str, seed: int = 0) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """(model in float32 and evaluation mode, its character tokenizer); a seed fixes the weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(_CONFIGS[family](), dtype=torch.float32).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim >= 2:
                    parameter.normal_(std=0.3)
                else:
                    parameter.add_(torch.randn_like(parameter), alpha=0.3)
    return model, character_tokenizer()


def save_tiny(path: Path, family: str, seed: int = 0) -> Path:
    """`path`, now a directory that `AutoModelForCausalLM` and `AutoTokenizer` load."""
    model, tokenizer = tiny_model(family, seed)
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path
