"""A tiny random model that reads every printable ASCII character and writes only a few tokens: for tasks over texts.

Two layers, width 32. The unembedding of every token outside `writes` is zeroed, so that greedy completions are
made of these and differ from prompt to prompt; where the logits of all of these are below 0 the others tie at
exactly 0, and the first, `<pad>`, is written.
"""

from functools import cache
from pathlib import Path
from typing import Any

from tiny_models import random_model
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from tokenizers.decoders import Fuse
from transformers import LlamaConfig, PreTrainedModel, PreTrainedTokenizerFast

TOKENS = ["<pad>", "\n", *map(chr, range(32, 127)), " positive", " negative"]


def text_tokenizer() -> PreTrainedTokenizerFast:
    """One token a character, and two whole words; the newline ends."""
    vocabulary = {character: index for index, character in enumerate(TOKENS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r" positive| negative|[\s\S]"), "isolated")
    tokenizer.decoder = Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="\n", pad_token="<pad>")


@cache
def text_model(writes: tuple[str, ...], seed: int = 0) -> PreTrainedModel:
    """The model in float32 and evaluation mode."""
    size: dict[str, Any] = {"vocab_size": len(TOKENS), "hidden_size": 32, "intermediate_size": 48}
    size |= {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "bos_token_id": None}
    config = LlamaConfig(**size, max_position_embeddings=1024, pad_token_id=0, eos_token_id=1)
    model = random_model(config, seed, std=0.35)
    model.lm_head.weight.data[[place for place, token in enumerate(TOKENS) if token not in writes]] = 0.0
    return model


def save_text_model(path: Path, writes: tuple[str, ...], seed: int = 0) -> Path:
    """`path`, now a directory that `mecharule run -m` takes."""
    text_model(writes, seed).save_pretrained(path)
    text_tokenizer().save_pretrained(path)
    return path
