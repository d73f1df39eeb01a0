"""Completions of many prompts at once, greedy ones equal token for token to decoding each prompt alone.

The longest token prefix common to all prompts (the few-shot lines) is run once and its keys and values are
copied into every batch. Rows of a batch are aligned at their last prompt token,

    [ shared prefix | padding | rest of the prompt | generated ]

with the padding masked and every token at its true position. A row leaves the batch when it stops. The final
normalised hidden state at the last prompt token, the paper's representation for spectral compression
(appendix, `ln_final.hook_normalized`: after normalisation, before the gain), is read during the prefill.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor, nn
from torch.nn import functional
from transformers import DynamicCache, PreTrainedModel

from mecharule_ops import errors, plain_text, types
from mecharule_ops.loading import given, norms, products
from mecharule_ops.loading.offers import Offer, among

KeysAndValues = list[tuple[Tensor, Tensor]]
"""By layer, `[record, kv_head, slot, head_dim]`."""
Progress = Callable[[int, int], None]
"""Called with (prompts done, prompts in all)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SharedPrefix:
    """Keys and values of a common token prefix; empty when there is none."""

    tokens: tuple[int, ...]
    layers: KeysAndValues
    """Of batch 1."""

    @classmethod
    def of(
        cls, model: PreTrainedModel, sequences: Sequence[tuple[int, ...]], *, differentiated: bool = False
    ) -> "SharedPrefix":
        """The longest prefix of all `sequences`. Cost: one forward over it.

        What attends to it may be `differentiated`, which forbids tensors made in inference mode.
        """
        low, length = sequences[0], plain_text.alike(sequences)
        if length == 0 or model in given.APART:
            return cls(tokens=(), layers=[])
        cache = DynamicCache()
        with torch.no_grad() if differentiated else torch.inference_mode(), given.fed_at(given.BELOW):
            ids = torch.tensor([low[:length]], device=model.device)
            model.base_model(
                input_ids=ids, attention_mask=torch.ones_like(ids), past_key_values=cache, use_cache=True
            )
        return cls(tokens=low[:length], layers=contents(cache))

    @classmethod
    def of_prompts(cls, model: PreTrainedModel, prompts: Sequence[tuple[int, ...]]) -> "SharedPrefix":
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
    return [(layer.keys, layer.values) for layer in _layers(cache)]


def _layers(cache: DynamicCache) -> list[Any]:
    return cache.layers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Generation:
    """What the unablated model wrote after each prompt, and how it saw each prompt."""

    tokens: tuple[types.Tokens, ...]
    """Generated ids, the stop token included when it came; aligned with the prompts."""
    margins: Float32[np.ndarray, " record"]
    """Smallest lead of a generated token's logit over the next best one's; near 0 rounding could decide.

    NaN where a best logit was not a finite number.
    """
    representation: Float32[np.ndarray, "record channel"]
    """Final normalised hidden state at the last prompt token, before the gain."""


def generate_greedily(
    model: PreTrainedModel,
    final_norm: nn.Module,
    prompts: Sequence[types.Tokens],
    max_new_tokens: int,
    stop_ids: frozenset[int],
    batch: int = 64,
    on_progress: Progress = lambda done, total: None,
    offers: Sequence[Offer] = (),
) -> Generation:
    """Greedy completions of `prompts`, at most `max_new_tokens` each, ended by any of `stop_ids`.

    `offers` is empty or says for each prompt among which texts it is decoded.
    Cost: one forward over the shared prefix, then for each batch one forward over what is left of its prompts
    and one forward a generated token. Raises `UsageError` for a prompt that is empty or does not fit.
    """
    _check_lengths(model, prompts, max_new_tokens)
    offers = offers or [Offer()] * len(prompts)
    tokens: list[types.Tokens] = [()] * len(prompts)
    margins = np.zeros(len(prompts), np.float32)
    representation = np.zeros((len(prompts), model.config.hidden_size), np.float32)
    done = 0
    with torch.no_grad(), products.through_onednn(model):
        shared = SharedPrefix.of_prompts(model, prompts)
        for rows in _batches(model, prompts, max_new_tokens, batch):
            some, among_these = [prompts[row] for row in rows], [offers[row] for row in rows]
            found = _decoded(model, final_norm, shared, some, max_new_tokens, stop_ids, among_these)
            for row, completion in zip(rows, found[0], strict=True):
                tokens[row] = completion
            margins[rows], representation[rows] = found[1:]
            done += len(rows)
            on_progress(done, len(prompts))
    return Generation(tokens=tuple(tokens), margins=margins, representation=representation)


def _decoded(
    model: PreTrainedModel,
    final_norm: nn.Module,
    shared: SharedPrefix,
    prompts: list[types.Tokens],
    max_new_tokens: int,
    stop_ids: frozenset[int],
    offers: Sequence[Offer],
) -> tuple[list[types.Tokens], np.ndarray, np.ndarray]:
    """(completions, margins, representation) of one batch, in the order of the prompts."""
    cache, residuals = shared.cache(len(prompts)), list[Tensor]()
    ids, mask, positions = _aligned(prompts, len(shared.tokens), model.device)
    completions: list[types.Tokens] = [()] * len(prompts)
    margins = np.full(len(prompts), np.inf, np.float32)
    alive = list(range(len(prompts)))
    with final_norm.register_forward_pre_hook(lambda module, inputs: residuals.append(inputs[0][:, -1])):
        while alive:
            # Rows end at the last prompt token, then grow by one.
            offsets = torch.arange(ids.shape[1])[None] + 1 - ids.shape[1] + len(completions[alive[0]])
            seen = {"attention_mask": mask, "position_ids": positions, "past_key_values": cache}
            with given.fed_at(offsets):
                logits = model(ids, **seen, use_cache=True, logits_to_keep=1).logits[:, -1]
            logits = among(logits, [offers[row].next_tokens(completions[row]) for row in alive])
            best = logits.topk(2, dim=-1).values
            lead = torch.where(best[:, 0].isfinite(), best[:, 0] - best[:, 1], torch.nan)
            margins[alive] = np.minimum(margins[alive], lead.cpu().numpy())
            chosen, kept = logits.argmax(-1), []
            for slot, (row, token) in enumerate(zip(alive, chosen.tolist(), strict=True)):
                completions[row] += (token,)
                ended = token in stop_ids or len(completions[row]) >= max_new_tokens
                if not (ended or offers[row].is_settled(completions[row])):
                    kept.append(slot)
            index = torch.tensor(kept, dtype=torch.long, device=model.device)
            if len(kept) < len(alive):
                for layer in _layers(cache):
                    layer.batch_select_indices(index.to(layer.keys.device))
            alive = [alive[slot] for slot in kept]
            ids, positions = chosen[index, None], positions[index, -1:] + 1
            mask = functional.pad(mask[index], (0, 1), value=1)
    return completions, margins, norms.normalised(final_norm, residuals[0]).cpu().numpy()


def _aligned(prompts: list[types.Tokens], shared: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """(ids, mask, positions) after the shared prefix, `[row, position]`; the mask covers the prefix too.

    Any id serves as padding, because it is masked; 0 always exists.
    """
    longest = max(len(prompt) for prompt in prompts)
    ids = torch.zeros((len(prompts), longest - shared), dtype=torch.long)
    mask = torch.ones((len(prompts), longest), dtype=torch.long)
    for row, prompt in enumerate(prompts):
        padding = longest - len(prompt)
        ids[row, padding:] = torch.tensor(prompt[shared:])
        mask[row, shared : shared + padding] = 0
    return ids.to(device), mask.to(device), (mask.cumsum(-1) - 1)[:, shared:].clamp(min=0).to(device)


def _batches(
    model: PreTrainedModel, prompts: Sequence[types.Tokens], max_new_tokens: int, batch: int
) -> Iterator[list[int]]:
    """Row indices by descending length, so that the batch that needs most memory comes first.

    Padding widens the distance between slots, and a sliding window counts slots: when a window is shorter
    than the longest sequence, a batch holds prompts of one length only.
    """
    order = sorted(range(len(prompts)), key=lambda row: -len(prompts[row]))
    window = getattr(model.config, "sliding_window", None)
    one_length = bool(order) and window is not None and window < len(prompts[order[0]]) + max_new_tokens
    start = 0
    while start < len(order):
        rows = order[start : start + batch]
        if one_length:
            rows = [row for row in rows if len(prompts[row]) == len(prompts[rows[0]])]
        yield rows
        start += len(rows)


def _check_lengths(model: PreTrainedModel, prompts: Sequence[types.Tokens], max_new_tokens: int) -> None:
    assert max_new_tokens >= 1, max_new_tokens
    room = getattr(model.config, "max_position_embeddings", None)
    for row, prompt in enumerate(prompts):
        if not prompt:
            raise errors.UsageError(
                f"expected at least one token in every prompt, got none in prompt {row}; add text"
            )
        if room is not None and len(prompt) + max_new_tokens > room:
            raise errors.UsageError(
                f"expected prompts of at most {room - max_new_tokens} tokens, got {len(prompt)} "
                f"in prompt {row}; shorten the few-shot lines or the completion"
            )
