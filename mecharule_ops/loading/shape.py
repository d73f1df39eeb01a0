"""What a model directory holds, read without a weight: architecture, sizes, files, tokenizer. Loads no torch.

The files' own headers say which tensors there are, so that a directory which lacks some, or whose download broke
off, is refused before minutes are spent on it.

One row a family says where it keeps the modules that an intervention touches. Attention and MLP each add one write to
the residual stream: the output of their projection, or of a normalisation behind it where the family has one. A basis
is intervened on at one tensor, the input or the output of one of these modules, as its row in `bases` says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open

from mecharule_ops.codec import parse_json
from mecharule_ops.errors import ModelUnavailable
from mecharule_ops.types import Basis

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from torch import nn


@dataclass(frozen=True, slots=True)
class Wiring:
    """Dotted paths: `layers`, `final_norm` and `unembed` from the causal model, the others from one layer.

    Left out they are those of Llama, which most families keep.
    """

    layers: str = "model.layers"
    attention_projection: str = "self_attn.o_proj"
    down_projection: str = "mlp.down_proj"
    final_norm: str = "model.norm"
    unembed: str = "lm_head"
    attention_norm: str | None = None
    """The normalisation between W_O and the residual stream, where the family has one."""
    mlp_norm: str | None = None
    """The same behind the down projection."""

    @property
    def mlp_write(self) -> str:
        """What an MLP adds to the residual stream is the output of this."""
        return self.mlp_norm or "mlp"

    def blocks(self, model: nn.Module) -> nn.ModuleList:
        """The model's layers, first to last."""
        return attrgetter(self.layers)(model)

    def site(self, block: nn.Module, basis: Basis) -> tuple[nn.Module, bool]:
        """(module, True when the unit lives in its input, False when in its output)."""
        return attrgetter(getattr(self, basis.row.site))(block), basis.row.in_input

    def norm_behind(self, block: nn.Module, basis: Basis) -> nn.Module | None:
        """The normalisation between a basis's projection and the residual stream, if there is one."""
        norms = {"attention_projection": self.attention_norm, "down_projection": self.mlp_norm}
        path = norms.get(basis.row.site)
        return None if path is None else attrgetter(path)(block)

    def head(self, model: nn.Module) -> tuple[nn.Module, nn.Module]:
        """(final normalisation, unembedding)."""
        return attrgetter(self.final_norm)(model), attrgetter(self.unembed)(model)


_NORMED = {"attention_norm": "post_attention_layernorm", "mlp_norm": "post_feedforward_layernorm"}
_WIRINGS = {
    **dict.fromkeys(("llama", "mistral", "qwen2", "qwen3", "gemma"), Wiring()),
    **dict.fromkeys(("gemma2", "gemma3_text"), Wiring(**_NORMED)),
    "gpt2": Wiring("transformer.h", "attn.c_proj", "mlp.c_proj", "transformer.ln_f"),
    "gptj": Wiring("transformer.h", "attn.out_proj", "mlp.fc_out", "transformer.ln_f"),
    "gpt_neox": Wiring(
        "gpt_neox.layers", "attention.dense", "mlp.dense_4h_to_h", "gpt_neox.final_layer_norm"
    ),
}


def wiring_for(model_type: str) -> Wiring:
    """The wiring of a Hugging Face `model_type`. Raises `ModelUnavailable` for a family not listed here."""
    if model_type not in _WIRINGS:
        known = ", ".join(sorted(_WIRINGS))
        raise ModelUnavailable(
            f"expected an architecture of: {known}; got {model_type!r}; choose another model"
        )
    return _WIRINGS[model_type]


_INDEX = "model.safetensors.index.json"
_OTHER_TOKENIZERS = ("tokenizer.model", "spiece.model", "vocab.json", "vocab.txt")
"""Files that another loader than the plain one reads; their content is not checked here."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelShape:
    """Sizes of a model that was not loaded."""

    directory: Path
    settings: Mapping[str, Any]
    """Content of `config.json`."""
    wiring: Wiring
    parameters: int
    """Weights in the files; a tied matrix counts once."""

    @property
    def model_type(self) -> str:
        """The family as transformers calls it, such as `llama`; it chooses the wiring."""
        return self.settings["model_type"]

    @property
    def n_layers(self) -> int:
        """Blocks of the model."""
        return self._number("num_hidden_layers", "n_layer")

    @property
    def d_model(self) -> int:
        """Channels of the residual stream."""
        return self._number("hidden_size", "n_embd")

    @property
    def n_heads(self) -> int:
        """Query heads in one layer."""
        return self._number("num_attention_heads", "n_head")

    @property
    def d_mlp(self) -> int:
        """Hidden neurons in one layer; GPT-2's config leaves them out where they are 4 · d_model."""
        if self.settings.get("n_inner") is None and "n_embd" in self.settings:
            return 4 * self.d_model
        return self._number("intermediate_size", "n_inner")

    @property
    def positions(self) -> int | None:
        """Most tokens that prompt and completion may have; None when the model names no limit."""
        return self.settings.get("max_position_embeddings") or self.settings.get("n_positions")

    @property
    def outside_blocks(self) -> int:
        """Weights of embedding and unembedding; a tied matrix counts once."""
        tied = bool(self.settings.get("tie_word_embeddings", True))
        return (1 if tied else 2) * self._number("vocab_size") * self.d_model

    def width(self, basis: Basis) -> int:
        """Units in one layer."""
        if basis.row.heads:
            return self.n_heads
        return self.d_mlp if basis.row.in_input else self.d_model

    def units(self, basis: Basis) -> int:
        """Units in all layers."""
        return self.n_layers * self.width(basis)

    def _number(self, *names: str) -> int:
        """The first of these settings that the config has. Raises `ModelUnavailable`."""
        for name in names:
            value = self.settings.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
        raise ModelUnavailable(
            f"expected {self.directory / 'config.json'} to give {' or '.join(names)} as a whole number, "
            "got none; copy the whole model again"
        )


def read_shape(directory: Path) -> ModelShape:
    """The sizes that config and file headers give.

    Raises `ModelUnavailable` for a directory that is no model, quantised weights, an architecture that is not
    supported, and weight files that are missing, cut short or without a layer.
    """
    settings = _settings(directory)
    wiring, sizes = wiring_for(str(settings["model_type"])), _sizes(directory)
    parameters = sum(sizes.values())
    if not sizes:
        stored = str(settings.get("dtype") or settings.get("torch_dtype") or "float32")
        size = sum(file.stat().st_size for file in directory.glob("pytorch_model*.bin"))
        parameters = size // (2 if "16" in stored else 4)
        if not size:
            raise ModelUnavailable(
                f"expected weights in {directory} (model.safetensors or pytorch_model.bin), found none; "
                "copy the whole model"
            )
    shape = ModelShape(directory=directory, settings=settings, wiring=wiring, parameters=parameters)
    # Every layer's down projection is there: a file of another model, or of its base, is seen.
    stem, down = wiring.layers.rpartition(".")[2], wiring.down_projection
    ends = [f"{stem}.{layer}.{down}.weight" for layer in range(shape.n_layers if sizes else 0)]
    if absent := [end for end in ends if not any(name.endswith(end) for name in sizes)]:
        raise ModelUnavailable(
            f"expected {shape.n_layers} layers of a {shape.model_type} model in {directory}, "
            f"{len(absent)} missing, such as …{absent[0]}; copy the whole model"
        )
    return shape


def read_tokenizer(directory: Path) -> Tokenizer | None:
    """The plain tokenizer of a model; None where the model has one that only its own loader reads.

    It neither pads nor cuts, whatever its file says. Raises `ModelUnavailable` when there is none, or it does not read.
    """
    from tokenizers import Tokenizer

    path = directory / "tokenizer.json"
    if not path.is_file() and any((directory / name).is_file() for name in _OTHER_TOKENIZERS):
        return None
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # The library raises plain `Exception`.
        raise ModelUnavailable(unreadable("a tokenizer (tokenizer.json)", directory, error)) from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def weight_files(directory: Path) -> list[Path]:
    """The safetensors files that hold the weights, as the index lists them; empty for a model in pickled files.

    Raises `ModelUnavailable` for an index that does not read.
    """
    index, whole = directory / _INDEX, directory / "model.safetensors"
    if not index.is_file():
        return [whole] if whole.is_file() else []
    try:
        listed = parse_json(index.read_text(encoding="utf-8"))["weight_map"].values()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelUnavailable(unreadable(f"a list of weight files ({_INDEX})", directory, error)) from error
    return [directory / name for name in sorted(set(listed))]


def unreadable(what: str, directory: Path, error: BaseException) -> str:
    """The sentence about a part of a model that does not read."""
    return (
        f"expected {what} that can be read in {directory}, got {type(error).__name__} ({first_line(error)}); "
        "copy the whole model again"
    )


def _settings(directory: Path) -> Mapping[str, Any]:
    try:
        settings = parse_json((directory / "config.json").read_text(encoding="utf-8"))
        str(settings["model_type"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelUnavailable(
            f"expected a Hugging Face model directory with a config.json that names its model_type, "
            f"got {directory} ({type(error).__name__}); name another directory"
        ) from error
    if packed := settings.get("quantization_config"):
        how = packed.get("quant_method", "unnamed") if isinstance(packed, dict) else packed
        raise ModelUnavailable(
            f"expected weights in float32, bfloat16 or float16, got quantised ones ({how}) in {directory}; name the "
            "model that they were made from"
        )
    return settings


def _sizes(directory: Path) -> dict[str, int]:
    """The size of every stored tensor by name; nothing of a model in pickled files."""
    sizes: dict[str, int] = {}
    for path in weight_files(directory):
        try:
            with safe_open(path, framework="np") as file:
                sizes |= {name: math.prod(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
        except (OSError, SafetensorError) as error:
            raise ModelUnavailable(unreadable(f"weights ({path.name})", directory, error)) from error
    return sizes


def first_line(error: BaseException) -> str:
    """An error's first line, or its kind."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:160]
