"""The clean (unablated) pass over prompts and completions: what every ablation of the same records shares.

Below a span nothing changes under any ablation, so its keys and values are kept; so is the residual stream
entering every block at span positions, where an ablated pass starts. For the MLP-write basis the block's own
output without its write is kept too, so that a replaced write needs one addition and no block.

Cost: one forward over prompts and completions, their common token prefix (the few-shot lines) run once; for
`mlp_out` one more forward over the spans.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import DynamicCache

from mecharule_ops.subject.forward import Blocks, PrefixCache, SpanBatch
from mecharule_ops.subject.intervention import hooked
from mecharule_ops.subject.model import Subject
from mecharule_ops.subject.spans import Span
from mecharule_ops.types import Basis

Site = tuple[nn.Module, bool]
"""A module, and whether its input (else its output) is read."""
KeysAndValues = list[tuple[Tensor, Tensor]]
"""By layer, `[record, kv_head, slot, head_dim]`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CleanSpans:
    """Clean tensors of some records, by layer, at span positions (padding on the right)."""

    batch: SpanBatch
    inputs: tuple[Float[Tensor, "record position channel"], ...]
    """Residual stream entering each block."""
    writes: tuple[Float[Tensor, "record position channel"], ...]
    """MLP writes; empty unless the basis is `mlp_out`."""
    rests: tuple[Float[Tensor, "record position channel"], ...]
    """Block outputs with the MLP write set to 0; empty unless the basis is `mlp_out`."""
    final: Float[Tensor, "record position channel"]
    """Final normalised hidden state, the unembedding's input."""

    @property
    def bytes(self) -> int:
        """Memory held."""
        held = (*self.batch.prefix.keys, *self.batch.prefix.values, *self.inputs, *self.writes, *self.rests)
        return sum(tensor.nbytes for tensor in held) + self.final.nbytes


def clean_spans(subject: Subject, blocks: Blocks, spans: Sequence[Span], basis: Basis) -> CleanSpans:
    """The clean tensors of non-empty `spans`."""
    longest = max(len(span.fed) for span in spans)
    sites: dict[str, Site] = {f"input {layer}": (block, True) for layer, block in enumerate(blocks.stack)}
    if basis is Basis.MLP_OUT:
        sites |= {
            f"write {layer}": subject.wiring.site(block, basis) for layer, block in enumerate(blocks.stack)
        }
    final_norm, _ = subject.wiring.head(subject.hf)
    seen, kept = clean_pass(subject, spans, sites | {"final": (final_norm, False)})
    slots = max(len(span.prefix) for span in spans)
    batch = SpanBatch(
        prefix=PrefixCache(
            tuple(keys[:, :, :slots].clone() for keys, _ in kept),
            tuple(values[:, :, :slots].clone() for _, values in kept),
        ),
        prefix_lengths=torch.tensor([len(span.prefix) for span in spans], device=subject.device),
        tokens=torch.tensor(
            [[*span.fed, *[0] * (longest - len(span.fed))] for span in spans], device=subject.device
        ),
        span_lengths=torch.tensor([len(span.fed) for span in spans], device=subject.device),
    )
    layers = range(len(blocks.stack))
    inputs = tuple(seen[f"input {layer}"] for layer in layers)
    writes = tuple(seen[f"write {layer}"] for layer in layers) if basis is Basis.MLP_OUT else ()
    rests = _without_writes(subject, blocks, batch, inputs) if basis is Basis.MLP_OUT else ()
    return CleanSpans(batch=batch, inputs=inputs, writes=writes, rests=rests, final=seen["final"])


def clean_pass(
    subject: Subject, spans: Sequence[Span], sites: dict[str, Site]
) -> tuple[dict[str, Float[Tensor, "record position width"]], KeysAndValues]:
    """(what each site held at span positions, padded on the right; keys and values of every token)."""
    sequences = [(*span.prefix, *span.fed) for span in spans]
    shared = _shared_length(sequences, min(len(span.prefix) for span in spans))
    width = max(len(sequence) for sequence in sequences)
    ids = torch.tensor([[*sequence, *[0] * (width - len(sequence))] for sequence in sequences])
    ids = ids.to(subject.device)
    cache = _shared_cache(subject, ids[:1, :shared], len(spans))
    starts = torch.tensor([len(span.prefix) - shared for span in spans])
    longest = max(len(span.fed) for span in spans)
    index = (starts[:, None] + torch.arange(longest)).clamp(max=width - shared - 1).to(subject.device)
    seen: dict[str, Tensor] = {}
    with _reading(sites, index, seen):
        subject.hf.base_model(
            input_ids=ids[:, shared:],
            attention_mask=torch.ones_like(ids),
            position_ids=torch.arange(shared, width, device=subject.device).expand(len(spans), -1),
            past_key_values=cache,
            use_cache=True,
        )
    return seen, _contents(cache)


def _shared_length(sequences: Sequence[tuple[int, ...]], most: int) -> int:
    """How many first tokens all sequences share, at most `most`."""
    low, high = min(sequences), max(sequences)
    return next((index for index in range(most) if low[index] != high[index]), most)


def _shared_cache(subject: Subject, ids: Tensor, records: int) -> DynamicCache:
    """Keys and values of a token prefix that all records share, computed once."""
    cache = DynamicCache()
    if ids.shape[1]:
        single = DynamicCache()
        subject.hf.base_model(input_ids=ids, past_key_values=single, use_cache=True)
        for index, (keys, values) in enumerate(_contents(single)):
            cache.update(keys.expand(records, -1, -1, -1), values.expand(records, -1, -1, -1), index)
    return cache


def _contents(cache: DynamicCache) -> KeysAndValues:
    layers: list[Any] = cache.layers
    return [(layer.keys, layer.values) for layer in layers]


@contextmanager
def _reading(sites: dict[str, Site], index: Tensor, into: dict[str, Tensor]) -> Iterator[None]:
    """Inside, every site's tensor is gathered at `index` (`[record, position]`)."""
    rows = torch.arange(len(index), device=index.device)[:, None]

    handles = [
        hooked(module, in_input, partial(_gather, into, name, (rows, index)))
        for name, (module, in_input) in sites.items()
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _gather(into: dict[str, Tensor], name: str, places: tuple[Tensor, Tensor], site: Tensor) -> None:
    into[name] = site[places]


def _without_writes(
    subject: Subject, blocks: Blocks, batch: SpanBatch, inputs: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """Every block's output on its clean input with its MLP write set to 0."""
    calls = blocks.bind(batch, 1)
    rests = []
    for layer, block in enumerate(blocks.stack):
        module, _ = subject.wiring.site(block, Basis.MLP_OUT)
        handle = module.register_forward_hook(lambda module, inputs, output: torch.zeros_like(output))
        try:
            rests.append(calls(layer, inputs[layer]))
        finally:
            handle.remove()
    return tuple(rests)
