"""A model's weights from its files straight to where they go, one tensor at a time.

Theory of operation. Each tensor is read when its turn comes, turned to the type it is to have and handed to
transformers, which puts it on its device:

    file and memory                               how it is read
    ───────────────────────────────────────────   ─────────────────────────────────────────────────────────────────
    of one type, and it stays on the processor    its pages of the file are mapped: processes of one machine share them
    other                                         `pread`, into memory that goes when it is turned

So beside the weights there are never more than the few tensors that are on their way; of a file that is mapped and
turned every page would count beside them. Of weights in a low type what lies outside the blocks stays in float32 as
the file has it (`products`), so that an embedding is never there twice.

Pickled files are read by transformers alone.

A model whose blocks lie on several cards:

    first card                       its own and the following cards
    ──────────────────────────────   ──────────────────────────────────────────────────────────
    embedding, final normalisation   blocks, whole and in order; what goes into one is brought
    and unembedding                  to its card first, keys and values stay where they are made

Where tokens go in is therefore where logits come out, and a tied matrix is there once. Accelerate's own movers wrap the
`forward` of every module, which passes put another in the place of, so blocks and final normalisation get one each that
runs before `forward`. Cost: a copy of the residual stream for each card, one of mask and positions for each card and
forward.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch
from accelerate.hooks import remove_hook_from_submodules
from accelerate.utils import recursively_apply
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary
from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, AutoConfig, GenerationConfig, PreTrainedModel
from transformers.utils import logging

from mecharule_ops.errors import ModelUnavailable
from mecharule_ops.loading.placement import Placement
from mecharule_ops.loading.products import LOW
from mecharule_ops.loading.shape import Wiring, unreadable, weight_files, wiring_for

_STORED = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16"}

_CONSTANT = re.compile(r"(masked_bias|inv_freq|\.(attn|attention)\.bias)$")
"""What older files of GPT-2, GPT-J and GPT-NeoX, and of rotary models, hold beside weights: masks and frequencies."""


def load_weights(directory: Path, where: Placement) -> PreTrainedModel:
    """The model of a directory where it was placed, in evaluation mode: the processor never holds one not for it.

    Raises `ModelUnavailable` for weights that do not read, where some are missing, and where blocks hold others.
    """
    logging.disable_progress_bar()
    dtype = getattr(torch, where.dtype)
    try:
        config = AutoConfig.from_pretrained(directory, local_files_only=True)
        wiring = wiring_for(config.model_type)
        kind: Any = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
        if dtype in LOW:
            # By name and module it is the family's own class: transformers looks up there what old files call a weight.
            outside = {"_keep_in_fp32_modules_strict": {rf"^(?!{re.escape(wiring.layers)}\.)"}}
            kind = type(kind.__name__, (kind,), {"__module__": kind.__module__, **outside})
        cards = {"": where.device}
        if where.blocks:
            with torch.device("meta"):
                cards = device_map(kind(config), wiring, where.device, where.blocks)
        stored = _stored(directory, dtype, where.device == "cpu")
        model, report = kind.from_pretrained(
            None if stored else directory,
            config=config,
            state_dict=stored,
            dtype=dtype,
            device_map=cards,
            output_loading_info=True,
            local_files_only=True,
        )
        if stored and (directory / "generation_config.json").is_file():
            model.generation_config = GenerationConfig.from_pretrained(directory, local_files_only=True)
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise ModelUnavailable(unreadable("weights", directory, error)) from error
    inside = re.compile(rf"(^|\.){wiring.layers.rpartition('.')[2]}\.\d")
    foreign = {
        name for name in report["unexpected_keys"] if inside.search(name) and not _CONSTANT.search(name)
    }
    check_complete(directory, report["missing_keys"], foreign)
    if where.blocks:
        remove_hook_from_submodules(model)
        carrying(model, wiring, cards)
    model.config.name_or_path = model.name_or_path = str(directory)
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


def _stored(directory: Path, dtype: torch.dtype, stays: bool) -> dict[str, Any] | None:
    """Every tensor of the safetensors files, not read yet; None of pickled files.

    Those that need no turning are mapped where the model stays on the processor.
    """
    found = {}
    for file in weight_files(directory):
        mapped, read = (safe_open(file, framework="pt", backend=backend) for backend in ("mmap", "pread"))
        for name in mapped.keys():  # noqa: SIM118
            same = stays and mapped.get_slice(name).get_dtype() == _STORED[dtype]
            found[name] = (mapped if same else read).get_slice(name)
    return found or None


def device_map(model: nn.Module, wiring: Wiring, first: str, blocks: Sequence[str]) -> dict[str, str]:
    """The card of each module by name, as transformers and accelerate take it; `blocks` has that of each block.

    `model` may be on the meta device. Every parameter and buffer is under exactly one name.
    """
    base, _, stem = wiring.layers.rpartition(".")
    beside = {f"{base}.{name}": first for name, _ in attrgetter(base)(model).named_children() if name != stem}
    outside = {name: first for name, _ in model.named_children() if name != base}
    return outside | beside | {f"{wiring.layers}.{layer}": card for layer, card in enumerate(blocks)}


def carrying(model: nn.Module, wiring: Wiring, cards: Mapping[str, str]) -> None:
    """Has what goes into each block, and into the final normalisation, be brought to its card first."""
    carriers = {card: _Carrier(torch.device(card)) for card in dict.fromkeys(cards.values())}
    for name in (wiring.final_norm, *(name for name in cards if name.startswith(f"{wiring.layers}."))):
        carrier = carriers[cards[name]]
        model.get_submodule(name).register_forward_pre_hook(carrier.brought, with_kwargs=True)


class _Carrier:
    """Brings tensors to one card; mask and positions, which all blocks are given, once."""

    def __init__(self, card: torch.device) -> None:
        self._card = card
        self._copies = WeakTensorKeyDictionary()

    def brought(
        self, module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A call's arguments, on the card."""
        hidden = tuple(value.to(self._card) if isinstance(value, Tensor) else value for value in given)
        # Tensors in tuples, lists and dictionaries too; caches are left as they are.
        return hidden, recursively_apply(self._kept, named)

    def _kept(self, value: Tensor) -> Tensor:
        """A copy that lives as long as its source."""
        if value.device == self._card:
            return value
        # What is copied under inference mode cannot take part in gradients.
        if value.requires_grad or (torch.is_inference_mode_enabled() and not value.is_inference()):
            return value.to(self._card)
        if value not in self._copies:
            self._copies[value] = value.to(self._card)
        return self._copies[value]
