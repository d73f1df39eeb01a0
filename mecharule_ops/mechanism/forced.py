"""The model's own completions fed back above their clean prompts, and the units that an intervention replaces.

Greedy decoding gave the completion, so feeding it back gives the same hidden states, all positions at once: what
would change a generated token is read there. Only the intervened positions (a span, see `passes.spans`) run with
gradients; what lies below them is clean under every ablation and runs once without, the tokens that all prompts
share once for all records.

Axes: record column channel. A column is a position of the span; a record's token t is predicted at one column.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from mecharule_ops.errors import UsageError
from mecharule_ops.loading import norms
from mecharule_ops.loading.memory import free_bytes
from mecharule_ops.loading.model import Subject
from mecharule_ops.passes.batches import chunks_by_length
from mecharule_ops.passes.clean import span_batch
from mecharule_ops.passes.forward import Blocks, SpanBatch
from mecharule_ops.passes.intervention import hooked
from mecharule_ops.passes.shared_prefix import SharedPrefix
from mecharule_ops.passes.spans import Span, span_of
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.types import Basis, BehaviourRecord, Neuron, Phase

_MOST_COLUMNS = {"cpu": 512, "cuda": 8192}
"""Span positions at once, beyond which a larger batch gains nothing."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Predicted:
    """The generated tokens in reach, flat, record by record."""

    row: Int[Tensor, " token"]
    """Which record of the batch."""
    position: Int[Tensor, " token"]
    """t: which token of its completion, from 0."""
    column: Int[Tensor, " token"]
    """Where in the span it is predicted."""
    generated: Int[Tensor, " token"]
    """y: the token itself."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Forced:
    """One batch of records with what a forward over their spans held."""

    records: tuple[int, ...]
    predicted: Predicted
    units: dict[int, Tensor]
    """By layer the tensor that the basis lives in, `[record, column, width]`, part of the graph of `residual`."""
    change: dict[int, Tensor]
    """u − v: the same tensors less their replacements, 0 at padding; no gradient."""
    scales: dict[int, Tensor]
    """By layer the scale of the normalisation behind the basis's projection, where there is one."""
    residual: Float[Tensor, "record column channel"]
    """What the final normalisation reads."""
    final: Float[Tensor, "record column channel"]
    """What the unembedding reads."""


class Forcing:
    """Records with completions, ready to be fed back in batches under one phase.

    Cost: one forward over the tokens that all prompts share.
    """

    def __init__(self, subject: Subject, records: Sequence[BehaviourRecord], phase: Phase) -> None:
        self.subject, self.blocks = subject, Blocks(subject)
        self.completions = [record.tokens for record in records]
        prompts = subject.encode([record.example.prompt for record in records])
        self.spans = [
            span_of(prompt, record.tokens, phase) for prompt, record in zip(prompts, records, strict=True)
        ]
        self._shared = SharedPrefix.of(subject, [span.prefix for span in self.spans if span.fed] or [()])

    @property
    def positions(self) -> int:
        """Tokens of the longest completion."""
        return max(map(len, self.completions), default=0)

    def batches(self, columns: int | None = None) -> list[list[int]]:
        """Records with a token in reach, in batches of (nearly) equal span length and about `columns` columns."""
        lengths = [len(span.fed) for span in self.spans]
        return chunks_by_length(lengths, range(len(lengths)), columns or self._columns())

    def _columns(self) -> int:
        """Columns whose graph fits a quarter of free memory."""
        subject, config = self.subject, self.subject.hf.config
        hidden = getattr(config, "intermediate_size", 0) or 4 * subject.d_model
        slots = max((len(span.prefix) + len(span.fed) for span in self.spans), default=0)
        kept = 16 * subject.d_model + 6 * hidden + 4 * subject.n_heads * slots
        fits = free_bytes(subject.device) // 4 // (4 * kept * subject.n_layers)
        return max(1, min(fits, _MOST_COLUMNS.get(subject.device.type, _MOST_COLUMNS["cpu"])))

    def feed(
        self, records: Sequence[int], replacement: ReplacementTable, layers: Sequence[int], gradients: bool
    ) -> Forced:
        """One batch fed back, its units read in `layers`; with `gradients` the graph above the lowest is kept.

        Cost: a forward over prompts and one over spans.
        """
        spans = [self.spans[record] for record in records]
        basis = replacement.intervention.basis
        units: dict[int, Tensor] = {}
        scales: dict[int, Tensor] = {}
        with torch.no_grad():
            batch = span_batch(self.subject, spans, self._shared)
            calls = self.blocks.bind(batch, 1)
            residual = calls.embedded
        with ExitStack() as stack:
            for layer in layers:
                self._read(stack, layer, basis, units, scales)
            for layer in range(self.subject.n_layers):
                traced = gradients and layer >= min(layers)
                with torch.set_grad_enabled(traced):
                    if traced and not residual.requires_grad:
                        residual = residual.detach().requires_grad_()
                    residual = calls(layer, residual)
        final_norm, _ = self.subject.wiring.head(self.subject.hf)
        with torch.set_grad_enabled(gradients):
            final = final_norm(residual)
        return Forced(
            records=tuple(records),
            predicted=self._predicted(records),
            units=units,
            change={layer: _change(units[layer], batch, spans, layer, replacement) for layer in layers},
            scales=scales,
            residual=residual,
            final=final,
        )

    def _read(
        self, stack: ExitStack, layer: int, basis: Basis, units: dict[int, Tensor], scales: dict[int, Tensor]
    ) -> None:
        """Has a layer's units, and the scale of the normalisation behind them, noted by the next forward."""
        block = self.blocks.stack[layer]
        module, in_input = self.subject.wiring.site(block, basis)
        stack.callback(hooked(module, in_input, partial(units.__setitem__, layer)).remove)
        norm = self.subject.wiring.norm_behind(block, basis)
        if norm is not None:

            def note(read: Tensor) -> None:
                scales[layer] = norms.scale(norm, read.detach())

            stack.callback(hooked(norm, True, note).remove)

    def _predicted(self, records: Sequence[int]) -> Predicted:
        flat = [
            (
                row,
                token,
                self.spans[record].prompt_part + token - self.spans[record].first_predicted,
                generated,
            )
            for row, record in enumerate(records)
            for token, generated in enumerate(self.completions[record])
            if token >= self.spans[record].first_predicted
        ]
        row, position, column, generated = torch.tensor(flat, device=self.subject.device).T
        return Predicted(row=row, position=position, column=column, generated=generated)


def _change(
    units: Tensor, batch: SpanBatch, spans: Sequence[Span], layer: int, replacement: ReplacementTable
) -> Tensor:
    """u − v at every column that holds a token, else 0."""
    step = torch.arange(units.shape[1], device=units.device)
    offsets = torch.tensor([[span.offset] for span in spans], device=units.device) + step
    values = replacement.value(layer, offsets).to(units).flatten(2)
    held = step < batch.span_lengths[:, None]
    return (units.detach() - values) * held[:, :, None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnitAxis:
    """The units asked for, in the order of every array's unit axis."""

    units: tuple[Neuron, ...]
    channels: dict[int, Tensor]
    """By layer, ascending: which of its channels are asked for."""
    order: Tensor
    """Place of each unit among the channels laid end to end, layer by layer."""
    size: int
    """Scalars in one unit."""

    @classmethod
    def of(cls, subject: Subject, basis: Basis, units: Sequence[Neuron] | None) -> UnitAxis:
        """The axis of `units`, or of every unit of the basis. Raises `UsageError` for a unit it does not have."""
        width, depth = subject.width(basis), subject.n_layers
        if units is None:
            units = [Neuron(basis, layer, channel) for layer in range(depth) for channel in range(width)]
        wrong = [
            unit
            for unit in units
            if unit.basis is not basis or unit.layer >= depth or not 0 <= unit.channel < width
        ]
        if wrong or not units:
            raise UsageError(
                f"expected {basis} units of {depth} layers of {width}, got {wrong[0] if wrong else 'none'}; "
                "choose units that this model has"
            )
        laid = sorted(range(len(units)), key=lambda index: (units[index].layer, units[index].channel))
        channels: dict[int, list[int]] = {}
        for index in laid:
            channels.setdefault(units[index].layer, []).append(units[index].channel)
        place = torch.empty(len(units), dtype=torch.long)
        place[torch.tensor(laid)] = torch.arange(len(units))
        return cls(
            units=tuple(units),
            channels={layer: torch.tensor(held) for layer, held in channels.items()},
            order=place,
            size=subject.unit_size(basis),
        )

    @property
    def layers(self) -> list[int]:
        return list(self.channels)

    def gathered(self, by_layer: dict[int, Tensor]) -> Tensor:
        """`[…, width]` of each layer, the scalars of a unit summed, as `[…, unit]`."""
        parts = [
            by_layer[layer].unflatten(-1, (-1, self.size)).sum(-1)[..., channels.to(by_layer[layer].device)]
            for layer, channels in self.channels.items()
        ]
        return torch.cat(parts, -1)[..., self.order.to(parts[0].device)]
