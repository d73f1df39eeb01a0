"""Calls the blocks of a causal model one by one, so that a forward can start above the layer an ablation touches.

Many copies of a span share one set of clean prefix keys and values: the copies lie side by side along the
sequence axis, `[record, copy × position, channel]`, with an additive mask under which every position sees the
clean prefix and the earlier positions of its own copy only. The blocks are the stock Hugging Face modules; the
other arguments they are called with (position embeddings, mask, cache) are read off the model itself once a
layout, by running it with every block replaced by a recorder.

Axes: record copy position channel; `kv_head slot head_dim` for keys and values.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from mecharule_ops.loading import generation, given, model
from mecharule_ops.passes.spans import Span


@dataclass(frozen=True, slots=True, eq=False)
class PrefixCache:
    """Stands in for a Hugging Face cache: gives a prefix followed by what is new, kept only where asked."""

    shared: generation.KeysAndValues
    """Of the tokens that all records begin with, batch 1; empty where there are none. Rotary embedding is applied."""
    own: generation.KeysAndValues
    """Of the other tokens of each record's prefix."""
    fed: dict[int, tuple[Tensor, Tensor]] | None = None
    """By layer of what was fed last; None where nothing of it is kept."""

    def update(
        self, keys: Tensor, values: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """What a block attends to: the prefix of its layer, then `keys` and `values`."""
        parts = (*self.shared[layer_idx : layer_idx + 1], self.own[layer_idx], (keys, values))
        if self.fed is not None:
            self.fed[layer_idx] = keys, values
        of_keys, of_values = zip(*parts, strict=True)
        shape = len(keys), -1, -1, -1
        return (
            torch.cat([part.expand(shape) for part in of_keys], 2),
            torch.cat([part.expand(shape) for part in of_values], 2),
        )

    @property
    def slots(self) -> int:
        """Of the longest prefix."""
        return sum(keys.shape[2] for keys, _ in (*self.shared[:1], self.own[0]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SpanBatch:
    """Spans of several records above their prefixes; shorter spans are padded on the right."""

    prefix: PrefixCache
    prefix_lengths: Int[Tensor, " record"]
    """Slots of the prefix that hold tokens; the others are masked."""
    offsets: Int[Tensor, " record"]
    """Of the first position from the last prompt token."""
    tokens: Int[Tensor, "record position"]
    span_lengths: Int[Tensor, " record"]
    """Positions that hold tokens; what is computed at the others is ignored."""

    @classmethod
    def of(
        cls, spans: Sequence[Span], prefix: PrefixCache, prefix_lengths: Int[Tensor, " record"]
    ) -> "SpanBatch":
        """The spans of records above their prefixes."""
        lengths = [len(span.fed) for span in spans]
        padded = [[*span.fed, *[0] * (max(lengths) - len(span.fed))] for span in spans]
        parts = {"tokens": padded, "span_lengths": lengths, "offsets": [span.offset for span in spans]}
        held = {name: torch.tensor(part, device=prefix_lengths.device) for name, part in parts.items()}
        return cls(prefix=prefix, prefix_lengths=prefix_lengths, **held)

    def prefixes(
        self, records: Int[Tensor, " record"], offsets: Int[Tensor, " record"]
    ) -> tuple[PrefixCache, Int[Tensor, " record"]]:
        """Prefixes, and their lengths, of some records that go on at `offsets`; what was fed is handed on once."""
        prefix, counts = self.prefix, offsets - self.offsets[records]
        width = prefix.own[0][0].shape[2]
        lengths = self.prefix_lengths[records] - (prefix.slots - width)
        slots = torch.arange(int((lengths + counts).max()), device=lengths.device)
        # Behind a record's own prefix comes what was fed, in whose place the padding of shorter prefixes lies.
        places = torch.where(slots < lengths[:, None], slots, slots - lengths[:, None] + width)
        places = places.clamp(max=width - 1 + self.tokens.shape[1] * bool(prefix.fed))
        own = []
        for layer, below in enumerate(prefix.own):
            of, at = records[:, None].to(below[0].device), places.to(below[0].device)
            parts = zip(below, prefix.fed.pop(layer), strict=True) if prefix.fed else zip(below, strict=True)
            keys, values = (torch.cat(part, 2)[of, :, at].transpose(1, 2) for part in parts)
            own.append((keys, values))
        return PrefixCache(prefix.shared, own, {}), self.prefix_lengths[records] + counts

    @property
    def positions(self) -> Int[Tensor, "record position"]:
        """True position of every token; padding repeats the last one, so that it never leaves the model's range."""
        step = torch.arange(self.tokens.shape[1], device=self.tokens.device)
        return self.prefix_lengths[:, None] + torch.minimum(step, (self.span_lengths - 1)[:, None])


@dataclass(frozen=True, slots=True, eq=False)
class BlockCalls:
    """One layout's blocks with their arguments bound."""

    embedded: Float[Tensor, "record copied_position channel"]
    """The first block's input."""
    blocks: tuple[nn.Module, ...]
    arguments: tuple[tuple[tuple[Any, ...], dict[str, Any]], ...]
    offsets: Int[Tensor, "record copied_position"]
    """From the last prompt token, running on over the padding."""

    def __call__(self, layer: int, hidden: Tensor) -> Tensor:
        """The output of block `layer` on `hidden`."""
        positional, keywords = self.arguments[layer]
        with given.fed_at(self.offsets):
            output = self.blocks[layer](hidden, *positional, **keywords)
        return output[0] if isinstance(output, tuple) else output


class Blocks:
    """The decoder of a subject, ready to be called block by block."""

    def __init__(self, subject: model.Subject) -> None:
        self._model = subject.hf.base_model
        self._config = subject.hf.config
        self.stack = tuple(subject.wiring.blocks(subject.hf))
        self._windows = [_window(self._config, layer) for layer in range(len(self.stack))]
        self._wrapped = self._returns_tuples(subject.device)

    def bind(self, batch: SpanBatch, copies: int) -> BlockCalls:
        """Blocks bound to `copies` copies of every span of the batch; costs one embedding, no block."""
        positions = batch.positions.repeat(1, copies)
        masks = {window: _span_mask(batch, copies, window) for window in {None, *self._windows}}
        recorded: list[tuple[Tensor, tuple[Any, ...], dict[str, Any]]] = []
        with self._recorders(recorded):
            self._model(
                input_ids=batch.tokens.repeat(1, copies),
                attention_mask=masks[None],
                position_ids=positions,
                past_key_values=batch.prefix,
                use_cache=True,
            )
        own = cache(lambda window, device: masks[window].to(device))  # Each card gets a mask once.
        arguments = [
            _with_mask(positional, keywords, masks[None], partial(own, window))
            for (_, positional, keywords), window in zip(recorded, self._windows, strict=True)
        ]
        offsets = (batch.offsets[:, None].cpu() + torch.arange(batch.tokens.shape[1])).repeat(1, copies)
        return BlockCalls(recorded[0][0], self.stack, tuple(arguments), offsets)

    @contextmanager
    def _recorders(self, into: list[tuple[Tensor, tuple[Any, ...], dict[str, Any]]]) -> Iterator[None]:
        """Inside, every block passes its input on unchanged and notes how it was called."""
        for block in self.stack:
            block.forward = partial(_record, into, self._wrapped)
        try:
            yield
        finally:
            for block in self.stack:
                del block.forward

    def _returns_tuples(self, device: torch.device) -> bool:
        """Whether blocks give tuples, seen from one forward of a single token."""
        seen: list[bool] = []
        see = self.stack[0].register_forward_hook(
            lambda module, inputs, output: seen.append(isinstance(output, tuple))
        )
        with see, torch.inference_mode(), given.whole():
            token = torch.ones((1, 1), dtype=torch.long, device=device)
            self._model(input_ids=token, attention_mask=token)
        return seen[0]


def _record(into: list[Any], wrapped: bool, hidden: Tensor, *positional: Any, **keywords: Any) -> Any:
    into.append((hidden, positional, keywords))
    return (hidden, None) if wrapped else hidden


def _window(config: Any, layer: int) -> int | None:
    """How many positions back a layer sees, itself included; None for all."""
    kinds: Sequence[str] | None = getattr(config, "layer_types", None)
    if kinds is not None and kinds[layer] != "sliding_attention":
        return None
    return getattr(config, "sliding_window", None)


def _span_mask(batch: SpanBatch, copies: int, window: int | None) -> Tensor:
    """Additive `[record, 1, copy × position, slot + copy × position]`: 0 where attention is open, else the minimum."""
    records, length = batch.tokens.shape
    device = batch.tokens.device
    slots = torch.arange(batch.prefix.slots, device=device)
    step = torch.arange(length, device=device)
    open_prefix = (slots < batch.prefix_lengths[:, None])[:, None].expand(records, length, -1)
    own = step[:, None] >= step
    if window is not None:
        distance = (batch.prefix_lengths[:, None] + step)[:, :, None] - slots
        open_prefix, own = open_prefix & (distance < window), own & (step[:, None] - step < window)
    same_copy = torch.kron(torch.eye(copies, dtype=torch.bool, device=device), own)
    allowed = torch.cat([open_prefix.repeat(1, copies, 1), same_copy.expand(records, -1, -1)], dim=-1)
    mask = torch.zeros(allowed.shape, device=device, dtype=batch.prefix.own[0][0].dtype)
    return mask.masked_fill_(~allowed, torch.finfo(mask.dtype).min)[:, None]


def _with_mask(
    positional: tuple[Any, ...],
    keywords: dict[str, Any],
    given: Tensor,
    own: Callable[[torch.device], Tensor],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A block's arguments with the mask that the model handed down replaced by the layer's own."""
    found = [value for value in (*positional, *keywords.values()) if _is_mask(value, given)]
    assert found, "the model changed the mask it was given"
    mask = own(found[0].device)
    replaced = tuple(mask if _is_mask(value, given) else value for value in positional)
    return replaced, {name: mask if _is_mask(value, given) else value for name, value in keywords.items()}


def _is_mask(value: Any, given: Tensor) -> bool:
    """Whether it is the mask given, or the copy of it on another card: nothing else has its four axes."""
    if value is given or not isinstance(value, Tensor) or value.device == given.device:
        return value is given
    return value.shape == given.shape and value.dtype == given.dtype
