"""A model whose blocks lie on several cards: what is on which, and what is computed being carried from card to card.

    first card                       its own and the following cards
    ──────────────────────────────   ──────────────────────────────────────────────────────────
    embedding, final normalisation   blocks, whole and in order; what goes into one is brought
    and unembedding                  to its card first, keys and values stay where they are made

Where tokens go in is therefore where logits come out, and a tied matrix is there once. Accelerate loads each tensor
to its card; its own movers wrap the `forward` of every module, which passes put another in the place of, so blocks
and final normalisation get one each that runs before `forward`.

Cost: a copy of the residual stream for each card, one of mask and positions for each card and forward.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

import torch
from accelerate.utils import recursively_apply
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

from mecharule_ops.loading.wiring import Wiring


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
