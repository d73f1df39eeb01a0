"""A tiny random Llama as a GGUF file: its weights as llama.cpp lays them out, with a byte-level tokenizer."""

from collections.abc import Collection, Mapping
from pathlib import Path

import gguf
import numpy as np
from tiny_models import CHARACTERS, tiny_model
from torch import Tensor

SPELT = ["<pad>", "<s>", "Ċ", "Ġ", *CHARACTERS[4:-2], "12", "t"]
"""The characters' tokens as a byte-level vocabulary spells them, and `12`, which is merged from two digits."""


def laid_out(seed: int = 0, family: str = "llama") -> dict[str, np.ndarray]:
    """Every weight of `tiny_model(family, seed)` under its name in a GGUF file."""
    model, _ = tiny_model(family, seed)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[family.removesuffix("_text").upper()], 3)
    heads = {"q_proj": 4, "k_proj": 2} if family == "llama" else {}
    found = {}
    for name, tensor in model.state_dict().items():
        module, _, kind = name.rpartition(".")
        if module == "lm_head" and model.config.tie_word_embeddings:
            continue
        last = module.split(".")[-1]
        turned = tensor.T.contiguous() if last.startswith("c_") and kind == "weight" else tensor
        whole = _permuted(turned, heads[last]) if last in heads else turned
        found[f"{names.get_name(module)}.{kind}"] = whole.numpy()
    return found


def _permuted(weight: Tensor, heads: int) -> Tensor:
    """Rows of a head in the order in which llama.cpp rotates them: pairs beside each other."""
    return weight.unflatten(0, (heads, 2, -1)).transpose(1, 2).flatten(0, 2)


def write_gguf(
    path: Path,
    weights: Mapping[str, np.ndarray],
    *,
    pre: str = "gpt-2",
    flags: Collection[str] = (),
    part: tuple[int, int] | None = None,
    scaling: str | None = None,
    quantised: bool = False,
    architecture: str = "llama",
) -> Path:
    """`path`, a file with these weights.

    `flags` such as `add_bos_token` are true in it, `part` is (number from 0, parts), and positions are scaled by 4.
    """
    writer = gguf.GGUFWriter(path, architecture)
    if part is not None:
        writer.add_uint16("split.no", part[0])
        writer.add_uint16("split.count", part[1])
    if part is not None and part[0] > 0:
        # Later parts hold nothing but where they belong.
        del writer.kv_data[0]["general.architecture"]
    else:
        _describe(writer, pre, flags)
        if scaling is not None:
            writer.add_string("llama.rope.scaling.type", scaling)
            writer.add_float32("llama.rope.scaling.factor", 4.0)
    for name, tensor in weights.items():
        whole = quantised and tensor.ndim == 2 and tensor.shape[1] % 32 == 0
        kind = gguf.GGMLQuantizationType.Q8_0 if whole else gguf.GGMLQuantizationType.F32
        writer.add_tensor(name, gguf.quants.quantize(tensor, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_parts(folder: Path, count: int = 2) -> list[Path]:
    """The model in `folder`, split into so many files as llama.cpp names them."""
    weights = list(laid_out().items())
    return [
        write_gguf(folder / f"tiny-{number + 1:05}-of-{count:05}.gguf", held, part=(number, count))
        for number, held in enumerate([dict(weights[number::count]) for number in range(count)])
    ]


def _describe(writer: gguf.GGUFWriter, pre: str, flags: Collection[str]) -> None:
    told = {"context_length": 64, "embedding_length": 32, "block_count": 3, "feed_forward_length": 48}
    told |= {"head_count": 4, "head_count_kv": 2, "rope_dimension_count": 8, "rope_freq_base": 10000.0}
    told |= {"layer_norm_rms_eps": 1e-6, "vocab_size": len(SPELT), "bos_token_id": 1, "eos_token_id": 2}
    told |= {"tokenizer_model": "gpt2", "tokenizer_pre": pre, "token_list": SPELT, "token_merges": ["1 2"]}
    told |= {"token_types": [3, 3, *[1] * (len(SPELT) - 2)]}
    if writer.arch.startswith("gemma"):
        told |= {"key_length": 12, "value_length": 12}
    for name, value in told.items():
        getattr(writer, f"add_{name}")(value)
    for flag in flags:
        writer.add_bool(f"tokenizer.ggml.{flag}", True)
