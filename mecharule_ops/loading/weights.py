"""A model's weights from its files straight to where they go, one tensor at a time.

Theory of operation. Each tensor is read when its turn comes, turned to the type it is to have and handed to
transformers, which puts it on its device:

    file and memory                               how it is read
    ───────────────────────────────────────────   ─────────────────────────────────────────────────────────────────
    of one type, and it stays on the processor    its pages of the file are mapped: processes of one machine share them
    other                                         `pread`, into memory that goes when it is turned

So beside the weights there are never more than the few tensors that are on their way; of a file that is mapped and
turned every page would count beside them. Of weights in a low type what lies outside the blocks is rounded too, but
held in float32 from the start (`low_precision`), so that an embedding is never there twice.

Pickled files are read by transformers alone.
"""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from accelerate.hooks import remove_hook_from_submodules
from safetensors import SafetensorError, safe_open
from torch import Tensor
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    GenerationConfig,
    PreTrainedModel,
)
from transformers.utils import logging

from mecharule_ops.errors import ModelUnavailable
from mecharule_ops.loading.cards import carrying, device_map
from mecharule_ops.loading.low_precision import LOW
from mecharule_ops.loading.placement import Placement
from mecharule_ops.loading.shape import unreadable, weight_files
from mecharule_ops.loading.wiring import wiring_for

_STORED = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16"}

_CONSTANT = re.compile(r"(masked_bias|inv_freq|\.(attn|attention)\.bias)$")
"""What older files of GPT-2, GPT-J and GPT-NeoX, and of rotary models, hold beside weights: masks and frequencies."""


def load_weights(directory: Path, where: Placement) -> PreTrainedModel:
    """The model of a directory where it was placed, in evaluation mode: the processor never holds one not for it.

    Raises `ModelUnavailable` for weights that do not read, where some are missing, and where blocks hold others.
    """
    logging.disable_progress_bar()
    dtype = getattr(torch, where.dtype)
    asked: dict[str, Any] = {"dtype": dtype, "output_loading_info": True}
    try:
        cards = _cards(directory, where) if where.blocks else {"": where.device}
        asked["device_map"] = cards
        files = weight_files(directory)
        loaded: Any = (
            _from_files(directory, files, dtype, asked)
            if files
            else AutoModelForCausalLM.from_pretrained(directory, local_files_only=True, **asked)
        )
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise ModelUnavailable(unreadable("weights", directory, error)) from error
    model, report = loaded
    stem = wiring_for(model.config.model_type).layers.rpartition(".")[2]
    inside = re.compile(rf"(^|\.){stem}\.\d")
    foreign = {
        name for name in report["unexpected_keys"] if inside.search(name) and not _CONSTANT.search(name)
    }
    check_complete(directory, report["missing_keys"], foreign)
    if where.blocks:
        remove_hook_from_submodules(model)
        carrying(model, wiring_for(model.config.model_type), cards)
    return model.eval()


def check_complete(source: Path, missing: Set[str], foreign: Set[str]) -> None:
    """Raises `ModelUnavailable` where weights of the model are not the file's, or weights of the file not the model's.

    Transformers fills the first with random numbers, leaves the others out, and goes on.
    """
    for names, fault in ((missing, "are missing"), (foreign, "have no place in it")):
        if names:
            raise ModelUnavailable(
                f"expected every weight of the model in {source}, {len(names)} {fault}, such as {min(names)}; "
                "copy the whole model"
            )


def _cards(directory: Path, where: Placement) -> dict[str, str]:
    """The card of each module of a model on several."""
    config = AutoConfig.from_pretrained(directory, local_files_only=True)
    with torch.device("meta"):
        empty = AutoModelForCausalLM.from_config(config)
    return device_map(empty, wiring_for(config.model_type), where.device, where.blocks)


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    """A tensor in a file, read by `[...]` only."""

    stored: Any
    """A slice of safetensors."""
    dtype: torch.dtype

    def __getitem__(self, everything: Any) -> Tensor:
        tensor: Tensor = self.stored[everything]
        return tensor.to(self.dtype) if tensor.is_floating_point() else tensor


def _from_files(
    directory: Path, files: list[Path], dtype: torch.dtype, asked: dict[str, Any]
) -> tuple[PreTrainedModel, dict[str, Any]]:
    """(model, report) of safetensors files."""
    config = AutoConfig.from_pretrained(directory, local_files_only=True)
    kind: Any = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    layers = wiring_for(config.model_type).layers
    if dtype in LOW:
        outside = rf"^(?!{re.escape(layers)}\.)"
        # By name and module it is the family's own class: transformers looks up there what old files call a weight.
        held = {"__module__": kind.__module__, "_keep_in_fp32_modules_strict": {outside}}
        kind = type(kind.__name__, (kind,), held)
    waiting: dict[str, _Waiting] = {}
    for file in files:
        waiting |= _waiting(file, dtype, layers.rpartition(".")[2], asked["device_map"].get("") == "cpu")
    model, report = kind.from_pretrained(None, config=config, state_dict=waiting, **asked)
    model.config.name_or_path = model.name_or_path = str(directory)
    if (directory / "generation_config.json").is_file():
        model.generation_config = GenerationConfig.from_pretrained(directory, local_files_only=True)
    return model, report


def _waiting(file: Path, dtype: torch.dtype, stem: str, stays: bool) -> dict[str, _Waiting]:
    """The tensors of a file; those that need no turning are mapped where the model stays on the processor.

    `stem` is the last word of the path of the blocks: files of some families leave out what comes before it.
    """
    mapped, read = (safe_open(file, framework="pt", backend=backend) for backend in ("mmap", "pread"))
    found = {}
    for name in mapped.keys():  # noqa: SIM118
        stored = mapped.get_slice(name)
        widened = dtype in LOW and not re.search(rf"(^|\.){stem}\.\d", name)
        turned = widened or stored.get_dtype() != _STORED[dtype]
        found[name] = _Waiting(read.get_slice(name) if turned or not stays else stored, dtype)
    return found
