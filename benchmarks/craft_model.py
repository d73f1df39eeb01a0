"""A circuit over a residual stream without layer norm, as the directory of a GPT-2 that computes the same.

The stream becomes [x, −x, j, −j, C, −C]: its mean is 0 and, C being large, its variance is that of C, so a layer norm
multiplies by a constant, but for |x|² / 2C², 1e-5 of x. j is read by nothing; decoys write there. Answers are read off
with logit 10; the first has 2 through C besides, so that nothing written is an answer too, and no tie.

A decoy is a head or a hidden neuron with random weights that reads x, and writes to j, or to an answer so weakly that
no margin is reached.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors

ANSWER_LOGIT, DEFAULT_LOGIT, CONSTANT = 10.0, 2.0, 1_000.0
BEGIN, PAD, END = "<s>", "<pad>", "</s>"
_JUNK = 2
"""Directions of j at least."""
_BELOW_MARGIN = 0.05
"""What a decoy that is read may write to an answer's direction at most; the margin is .8 of that direction."""


@dataclass(frozen=True, slots=True)
class Craft:
    """A compiled program as matrices over its residual stream of n directions, rows in, columns out."""

    tokens: np.ndarray
    positions: np.ndarray
    layers: Sequence[tuple[Sequence[tuple[np.ndarray, ...]], tuple[np.ndarray, np.ndarray]]]
    """A layer: heads (query, key, value from x; output to x), then both MLP matrices; empty ones where it has none."""
    answers: np.ndarray
    """Direction of x that each answer is read from."""
    names: Sequence[str]
    """Tokens' names, begin first."""
    answer_names: Sequence[str]


def arrays(compiled: Craft, heads: int, decoys: int, seed: int) -> Mapping[str, np.ndarray]:
    """The weights of a GPT-2 that computes what the compiled matrices do, names as Hugging Face's.

    Every layer has the same number of hidden neurons, `decoys` beside the program's own in the one that has most.
    """
    rng = np.random.default_rng(seed)
    n = compiled.tokens.shape[1]
    widest = max(
        (each.shape[-1] for layer, _ in compiled.layers for head in layer for each in head[:3]), default=1
    )
    size = max(widest, -(-(2 * n + 2 + 2 * _JUNK) // heads))
    size += (heads * size) % 2
    width = heads * size
    junk = slice(2 * n, 2 * n + (width - 2 * n - 2) // 2)
    spare = junk.stop - junk.start

    def written(x: np.ndarray, j: np.ndarray | None = None) -> np.ndarray:
        """Rows that write to x and to j."""
        rows = np.zeros((len(x), width))
        rows[:, :n], rows[:, n : 2 * n] = x, -x
        if j is not None:
            rows[:, junk], rows[:, junk.stop : junk.stop + spare] = j, -j
        return rows

    tokens = written(np.vstack([np.zeros((2, n)), compiled.tokens, np.zeros((len(compiled.answers), n))]))
    tokens[:, -2:] = CONSTANT, -CONSTANT
    out = np.zeros((len(tokens), width))
    first = 2 + len(compiled.tokens)
    out[range(first, len(tokens)), compiled.answers] = ANSWER_LOGIT
    out[first, -2] = DEFAULT_LOGIT / CONSTANT
    gain = np.full(width, np.sqrt(2 * CONSTANT**2 / width))
    made = {
        "transformer.wte.weight": tokens,
        "transformer.wpe.weight": written(compiled.positions),
        "lm_head.weight": out,
        "transformer.ln_f.weight": gain,
        "transformer.ln_f.bias": np.zeros(width),
    }
    hidden = decoys + max(inwards.shape[1] for _, (inwards, _) in compiled.layers)
    for layer, (own, (inwards, outwards)) in enumerate(compiled.layers):
        others = hidden - inwards.shape[1]
        joint, output = np.zeros((width, 3 * width)), np.zeros((width, width))
        for head in range(heads):
            place = slice(head * size, (head + 1) * size)
            query, key, value, to = own[head] if head < len(own) else _decoy_head(rng, n, compiled.answers)
            for part, matrix in enumerate((query * np.sqrt(size), key, value)):
                joint[:n, part * width + place.start : part * width + place.start + matrix.shape[1]] = matrix
            scrap = rng.normal(size=(len(to), spare)) if head >= len(own) else None
            output[place.start : place.start + len(to)] = written(to, scrap)
        into = rng.normal(size=(n, others))
        weak = np.zeros((others, n))
        weak[::2, compiled.answers] = rng.uniform(-1, 1, (len(weak[::2]), len(compiled.answers)))
        weak *= _BELOW_MARGIN / others / np.abs(into).sum(0)[:, None]
        up = np.zeros((width, hidden))
        up[:n] = np.hstack([inwards, into])
        down = np.vstack([written(outwards), written(weak, rng.normal(size=(others, spare)))])
        order = rng.permutation(up.shape[1])
        name = f"transformer.h.{layer}."
        made |= {
            f"{name}ln_1.weight": gain,
            f"{name}ln_1.bias": np.zeros(width),
            f"{name}ln_2.weight": gain,
            f"{name}ln_2.bias": np.zeros(width),
            f"{name}attn.c_attn.weight": joint,
            f"{name}attn.c_attn.bias": np.zeros(3 * width),
            f"{name}attn.c_proj.weight": output,
            f"{name}attn.c_proj.bias": np.zeros(width),
            f"{name}mlp.c_fc.weight": up[:, order],
            f"{name}mlp.c_fc.bias": np.zeros(len(order)),
            f"{name}mlp.c_proj.weight": down[order],
            f"{name}mlp.c_proj.bias": np.zeros(width),
        }
    return {name: np.ascontiguousarray(each, np.float16) for name, each in made.items()}


def _decoy_head(rng: np.random.Generator, n: int, answers: np.ndarray) -> tuple[np.ndarray, ...]:
    """A head with random weights that writes below every margin."""
    to = np.zeros((3, n))
    to[:, answers] = rng.uniform(-1, 1, (3, len(answers))) * _BELOW_MARGIN / n
    return rng.normal(size=(n, 3)), rng.normal(size=(n, 3)), rng.uniform(-1, 1, (n, 3)) / 3, to


def vocabulary(compiled: Craft) -> Sequence[str]:
    """Every token of the model, in the order of its embeddings."""
    return [PAD, END, *compiled.names, *compiled.answer_names]


def tokenizer(words: Sequence[str]) -> Tokenizer:
    """Words apart by spaces, the begin token first."""
    made = Tokenizer(models.WordLevel({word: place for place, word in enumerate(words)}, unk_token=PAD))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.post_processor = processors.TemplateProcessing(
        single=f"{BEGIN} $A", special_tokens=[(BEGIN, words.index(BEGIN))]
    )
    return made


def save(compiled: Craft, folder: Path, heads: int, decoys: int, seed: int) -> None:
    """The model's directory: configuration, weights, tokenizer."""
    weights = dict(arrays(compiled, heads, decoys, seed))
    words = vocabulary(compiled)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights, str(folder / "model.safetensors"), metadata={"format": "pt"})
    ends = {
        "bos_token_id": words.index(BEGIN),
        "eos_token_id": words.index(END),
        "pad_token_id": words.index(PAD),
    }
    _write(
        folder / "config.json",
        {
            "architectures": ["GPT2LMHeadModel"],
            "model_type": "gpt2",
            "dtype": "float16",
            "activation_function": "relu",
            "tie_word_embeddings": False,
            "vocab_size": len(words),
            "n_positions": len(compiled.positions),
            "n_embd": weights["lm_head.weight"].shape[1],
            "n_layer": len(compiled.layers),
            "n_head": heads,
            "n_inner": weights["transformer.h.0.mlp.c_fc.weight"].shape[1],
            **dict.fromkeys(("attn_pdrop", "embd_pdrop", "resid_pdrop"), 0.0),
            **ends,
        },
    )
    _write(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": BEGIN,
            "eos_token": END,
            "pad_token": PAD,
        },
    )
    (folder / "tokenizer.json").write_text(tokenizer(words).to_str(), encoding="utf-8")


def _write(file: Path, content: Mapping[str, Any]) -> None:
    file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
