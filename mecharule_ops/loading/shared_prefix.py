"""The tokens that all prompts begin with (the few-shot lines), run once for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

KeysAndValues = list[tuple[Tensor, Tensor]]
"""By layer, `[record, kv_head, slot, head_dim]`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SharedPrefix:
    """Keys and values of a common token prefix; empty when there is none."""

    tokens: tuple[int, ...]
    layers: KeysAndValues
    """Of batch 1."""

    @classmethod
    def of(
        cls, model: PreTrainedModel, sequences: Sequence[tuple[int, ...]], *, differentiated: bool = False
    ) -> SharedPrefix:
        """The longest prefix of all `sequences`. Cost: one forward over it.

        What attends to it may be `differentiated`, which forbids tensors made in inference mode.
        """
        low, high = min(sequences), max(sequences)
        most = min(map(len, sequences))
        length = next((index for index in range(most) if low[index] != high[index]), most)
        if length == 0:
            return cls(tokens=(), layers=[])
        cache = DynamicCache()
        with torch.no_grad() if differentiated else torch.inference_mode():
            ids = torch.tensor([low[:length]], device=model.device)
            model.base_model(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                past_key_values=cache,
                use_cache=True,
            )
        return cls(tokens=low[:length], layers=contents(cache))

    @classmethod
    def of_prompts(cls, model: PreTrainedModel, prompts: Sequence[tuple[int, ...]]) -> SharedPrefix:
        """The longest that leaves every prompt a token of its own; empty for a single prompt."""
        own = [prompt[:-1] for prompt in prompts] if len(prompts) > 1 else [()]
        return cls.of(model, own, differentiated=True)

    def cache(self, records: int) -> DynamicCache:
        """A fresh cache that holds the prefix for `records` sequences; the shared tensors are never written."""
        cache = DynamicCache()
        for index, (keys, values) in enumerate(self.layers):
            cache.update(keys.expand(records, -1, -1, -1), values.expand(records, -1, -1, -1), index)
        return cache


def contents(cache: DynamicCache) -> KeysAndValues:
    """What a filled cache holds."""
    layers: list[Any] = cache.layers
    return [(layer.keys, layer.values) for layer in layers]
