"""What a model directory holds, read without a weight: architecture, sizes, files, tokenizer. Loads no torch.

The files' own headers say which tensors there are, so that a directory which lacks some, or whose download broke
off, is refused before minutes are spent on it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open

from mecharule_ops.codec import parse_json
from mecharule_ops.errors import ModelUnavailable
from mecharule_ops.loading.wiring import Wiring, wiring_for
from mecharule_ops.types import Basis

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_NAMED = {"F32": "float32", "F16": "float16", "BF16": "bfloat16", "F64": "float64"}
_INDEX = "model.safetensors.index.json"
_PICKLED = ("pytorch_model.bin", "pytorch_model.bin.index.json")
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
    stored_as: str
    """The data type in the files that most weights have."""

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
    wiring = wiring_for(str(settings["model_type"]))
    tensors = _tensors(directory)
    if tensors is None:
        size = sum(file.stat().st_size for file in directory.glob("pytorch_model*.bin"))
        stored = str(settings.get("dtype") or settings.get("torch_dtype") or "float32")
        parameters = size // (2 if "16" in stored else 4)
    else:
        counts: dict[str, int] = {}
        for kind, sizes in tensors.values():
            counts[kind] = counts.get(kind, 0) + math.prod(sizes)
        parameters = sum(counts.values())
        stored = _NAMED.get(max(counts, key=counts.__getitem__), "other")
    shape = ModelShape(
        directory=directory, settings=settings, wiring=wiring, parameters=parameters, stored_as=stored
    )
    # Every layer's down projection is there: a file of another model, or of its base, is seen.
    stem, down = wiring.layers.rpartition(".")[2], wiring.down_projection
    ends = [f"{stem}.{layer}.{down}.weight" for layer in range(shape.n_layers if tensors else 0)]
    if absent := [end for end in ends if not any(name.endswith(end) for name in tensors or ())]:
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
    if path.is_file():
        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # The library raises plain `Exception`.
            raise ModelUnavailable(
                f"expected a tokenizer in {path}, got: {first_line(error)}; copy the whole model again"
            ) from error
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return tokenizer
    if any((directory / name).is_file() for name in _OTHER_TOKENIZERS):
        return None
    raise ModelUnavailable(
        f"expected a tokenizer (tokenizer.json) in {directory}, found none; copy the whole model"
    )


def weight_files(directory: Path) -> list[Path]:
    """The safetensors files that hold the weights, as the index lists them; empty for a model in pickled files.

    Raises `ModelUnavailable` for an index that does not read.
    """
    index = directory / _INDEX
    if index.is_file():
        return [directory / name for name in sorted(set(_listed(index).values()))]
    whole = directory / "model.safetensors"
    return [whole] if whole.is_file() else []


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


def _tensors(directory: Path) -> dict[str, tuple[str, list[int]]] | None:
    """(data type, shape) of every stored tensor by name; None for a model in pickled files."""
    index, files = directory / _INDEX, weight_files(directory)
    if not files:
        whole, parts_index = (directory / name for name in _PICKLED)
        parts = sorted(set(_listed(parts_index).values())) if parts_index.is_file() else []
        absent = [name for name in parts if not (directory / name).is_file()]
        if not whole.is_file() and (absent or not parts):
            names = ", ".join(absent[:2]) or "model.safetensors or pytorch_model.bin"
            raise ModelUnavailable(
                f"expected weights in {directory} ({names}), found none; copy the whole model"
            )
        return None
    tensors: dict[str, tuple[str, list[int]]] = {}
    for path in files:
        try:
            with safe_open(path, framework="np") as file:
                slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
                tensors |= {name: (held.get_dtype(), held.get_shape()) for name, held in slices.items()}
        except (OSError, SafetensorError) as error:
            raise ModelUnavailable(
                f"expected weights in {path}, got: {first_line(error)}; copy the whole model again"
            ) from error
    missing = sorted(_listed(index).keys() - tensors.keys()) if index.is_file() else []
    if missing:
        raise ModelUnavailable(
            f"expected every weight of the model in {directory}, {len(missing)} missing, such as {missing[0]}; "
            "copy the whole model"
        )
    return tensors


def _listed(index: Path) -> Mapping[str, str]:
    """The file of each tensor."""
    try:
        return dict(parse_json(index.read_text(encoding="utf-8"))["weight_map"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelUnavailable(
            f"expected a list of weight files in {index}, got {type(error).__name__}; copy the whole model again"
        ) from error


def first_line(error: BaseException) -> str:
    """An error's first line, or its kind."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:160]
