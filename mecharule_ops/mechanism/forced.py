"""The model's own completions fed back above their clean prompts, and the units that an intervention replaces.

Teacher forcing: what logit differences, attribution patching and direct logit attribution are read from. Greedy
decoding gave the completion, so feeding it back gives the same hidden states, all positions at once: what would
change a generated token is read there. Only the intervened positions (a span, see `passes.spans`) run with gradients;
what lies below them is clean under every ablation and runs once without, the tokens that all prompts share once for
all records.

Axes: record column channel. A column is a position of the span; a record's token t is predicted at one column.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn.attention import SDPBackend, sdpa_kernel

from mecharule_ops.loading import model, norms
from mecharule_ops.loading.generation import SharedPrefix
from mecharule_ops.passes import batches, forward
from mecharule_ops.passes.clean import CleanSpans, clean_spans
from mecharule_ops.passes.intervention import hooked
from mecharule_ops.passes.spans import Span, span_of
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.types import Basis, BehaviourRecord, Neuron, Phase

KEPT: ContextVar[Callable[[Sequence[Span]], CleanSpans] | None] = ContextVar("clean passes", default=None)
"""Gives the clean tensors of spans where a run keeps these."""


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
    offered: Sequence[Sequence[int]]
    """Among which tokens it was chosen, those of its own side left out; empty for all."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Forced:
    """One batch of records with what a forward over their spans held."""

    records: tuple[int, ...]
    predicted: Predicted
    held: Bool[Tensor, "record column"]
    """Columns that hold a token; what is computed at the others is ignored."""
    offsets: Int[Tensor, "record column"]
    """Offset of each column from the last prompt token, running on over the padding."""
    residual: Float[Tensor, "record column channel"]
    """What the final normalisation reads."""
    final: Float[Tensor, "record column channel"]
    """What the unembedding reads."""
    calls: forward.BlockCalls
    clean: CleanSpans
    """What the clean pass held."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ForcedUnits:
    """A forward over spans that read the units of some layers."""

    forced: Forced
    units: dict[int, Tensor]
    """By layer the tensor that the basis lives in, `[record, column, width]`; in the graph of `residual`, if any."""
    change: dict[int, Tensor]
    """u − v: the same tensors less their replacements, 0 at padding, where tokens go in; no gradient."""
    scales: dict[int, Tensor]
    """By layer the scale of the normalisation behind the basis's projection, where there is one; as `change`."""


class Forcing:
    """Records with completions, ready to be fed back in batches under one phase.

    Cost: one forward over the tokens that all prompts share.
    """

    def __init__(self, subject: model.Subject, records: Sequence[BehaviourRecord], phase: Phase) -> None:
        self.subject, self.blocks = subject, forward.Blocks(subject)
        self.completions = [record.tokens for record in records]
        prompts = subject.encode([record.example.prompt for record in records])
        self.spans = [
            span_of(prompt, record.tokens, phase) for prompt, record in zip(prompts, records, strict=True)
        ]
        offers = subject.offers(record.example for record in records)
        self._reach = [
            offer.choices(record.tokens, span.first_predicted)
            for offer, record, span in zip(offers, records, self.spans, strict=True)
        ]
        self._shared = SharedPrefix.of(subject.hf, [span.prefix for span in self.spans if span.fed] or [()])
        self._kept = KEPT.get()

    @property
    def positions(self) -> int:
        """Tokens of the longest completion."""
        return max(map(len, self.completions), default=0)

    def batches(self, columns: int | None = None) -> list[list[int]]:
        """Records with a token in reach, in batches of (nearly) equal length and about `columns` columns.

        Without it half as many as a forward gains from, what lies below their spans, which is copied, counted: where no
        graph is kept.
        """
        shared, most = len(self._shared.tokens), columns or batches.default_rows(self.subject) // 2
        lengths = [len(span.fed) * bool(reach) for span, reach in zip(self.spans, self._reach, strict=True)]
        if columns is None:
            lengths = [n and n + len(self.spans[at].prefix) - shared for at, n in enumerate(lengths)]
        return batches.chunks_by_length(lengths, range(len(lengths)), most)

    def traced_columns(self) -> int:
        """Columns whose graph fits most of a share of memory, with the keys and values that their records attend to."""
        subject, config = self.subject, self.subject.hf.config
        hidden = getattr(config, "intermediate_size", 0) or 4 * subject.d_model
        fed = [len(span.fed) for span in self.spans if span.fed] or [1]
        slots = max((len(span.prefix) + len(span.fed) for span in self.spans), default=0)
        read = 4 + 2 * subject.head_dim * len(fed) // sum(fed)
        kept = 16 * subject.d_model + 6 * hidden + read * subject.n_heads * slots
        fits = batches.share(subject) // (5 * kept * subject.n_layers)
        return max(1, min(fits, batches.default_rows(subject) // 2))

    def at_rest(self, records: Sequence[int], basis: Basis = Basis.ATTN_HEAD) -> Forced:
        """One batch as nothing was ablated; what is kept is of a basis that is a block's last write like this.

        Cost: a forward over what prompts do not share and spans, where nothing is kept of them.
        """
        spans = tuple(self.spans[record] for record in records)
        with torch.no_grad():
            kept = self._kept(spans) if self._kept else None
            clean = kept or clean_spans(self.subject, self.blocks, spans, basis, self._shared)
            calls = self.blocks.bind(clean.batch, 1)
        step = torch.arange(clean.batch.tokens.shape[1], device=self.subject.device)
        return Forced(
            records=tuple(records),
            predicted=self._predicted(records),
            held=step < clean.batch.span_lengths[:, None],
            offsets=clean.batch.offsets[:, None] + step,
            residual=clean.residual,
            final=clean.final,
            calls=calls,
            clean=clean,
        )

    def feed(self, records: Sequence[int], first: int, *, traced: bool) -> Forced:
        """The same with the blocks from `first` on run again; `traced` keeps the graph from its input on.

        Cost: as `at_rest`, and these blocks over the spans.
        """
        rest = self.at_rest(records)
        hidden = rest.clean.inputs[first].clone().requires_grad_(traced)
        with torch.set_grad_enabled(traced):
            for layer in range(first, self.subject.n_layers):
                hidden = rest.calls(layer, hidden)
            residual = hidden.to(self.subject.device)
        return replace(rest, residual=residual, final=self.normalised(residual))

    def normalised(self, residual: Tensor) -> Tensor:
        """What the unembedding reads."""
        final_norm, _ = self.subject.wiring.head(self.subject.hf)
        with torch.set_grad_enabled(residual.requires_grad):
            return final_norm(residual)

    def feed_units(
        self, records: Sequence[int], replacement: ReplacementTable, layers: Sequence[int], *, traced: bool
    ) -> ForcedUnits:
        """The same with the units of `layers` read; `traced` keeps the graph that their gradients need."""
        units: dict[int, Tensor] = {}
        scales: dict[int, Tensor] = {}
        with ExitStack() as stack:
            for layer in layers:
                self._read(stack, layer, replacement.intervention.basis, units, scales)
            forced = self.feed(records, min(layers), traced=traced)
        change = {}
        for layer in layers:
            values = replacement.value(layer, forced.offsets).to(units[layer]).flatten(2)
            change[layer] = (units[layer].detach() - values).to(forced.held.device) * forced.held[:, :, None]
        return ForcedUnits(forced=forced, units=units, change=change, scales=scales)

    def moved(
        self, forced: Forced, units: Sequence[Neuron], replacements: Mapping[Basis, ReplacementTable]
    ) -> Float[Tensor, "unit record column channel"]:
        """How far u − v of each unit, in order of layer, moves `residual`, to first order, a copy of the spans each.

        Cost: two forwards a unit from its layer up, their attention over all copies' keys.
        """
        assert [*units] == sorted(units, key=lambda unit: unit.layer), units
        clean, held = forced.clean, forced.held[:, :, None]
        bind, hidden = lru_cache(1)(partial(self.blocks.bind, clean.batch)), clean.final[:, :0]

        def moving(site: Tensor, unit: Neuron, copy: int) -> Tensor:
            value, before = forward_ad.unpack_dual(site)
            change = torch.zeros_like(value) if before is None else before.clone()
            size, columns = self.subject.unit_size(unit.basis), held.shape[1]
            own = slice(unit.channel * size, (unit.channel + 1) * size)
            rows = slice(copy * columns, (copy + 1) * columns)
            values = replacements[unit.basis].value(unit.layer, forced.offsets).to(value).flatten(2)
            change[:, rows, own] = (value[:, rows, own] - values[..., own]) * held.to(value.device)
            return forward_ad.make_dual(value, change)

        # Of attention's kernels the plain one alone carries a derivative forward.
        with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), forward_ad.dual_level():
            for layer in range(units[0].layer, self.subject.n_layers):
                site = partial(self.subject.wiring.site, self.blocks.stack[layer])
                joining = [unit for unit in units if unit.layer == layer]
                joined = clean.inputs[layer].repeat(1, len(joining), 1)
                hidden = torch.cat([hidden.to(joined.device), joined], 1)
                copies = hidden.shape[1] // held.shape[1]
                with ExitStack() as stack:
                    for copy, unit in enumerate(joining, copies - len(joining)):
                        stack.enter_context(hooked(*site(unit.basis), partial(moving, unit=unit, copy=copy)))
                    hidden = bind(copies)(layer, hidden)
            moved = forward_ad.unpack_dual(hidden.to(self.subject.device)).tangent
        assert moved is not None, units
        return moved.unflatten(1, (len(units), -1)).transpose(0, 1)

    def _read(
        self, stack: ExitStack, layer: int, basis: Basis, units: dict[int, Tensor], scales: dict[int, Tensor]
    ) -> None:
        """Has a layer's units, and the scale of the normalisation behind them, noted by the next forward."""
        block = self.blocks.stack[layer]
        module, in_input = self.subject.wiring.site(block, basis)
        stack.callback(hooked(module, in_input, partial(units.__setitem__, layer)).remove)
        norm = self.subject.wiring.norm_behind(block, basis)
        if norm is not None:
            see = partial(_note_scale, scales, layer, norm, self.subject.device)
            stack.callback(hooked(norm, True, see).remove)

    def _predicted(self, records: Sequence[int]) -> Predicted:
        flat, offered = list[tuple[int, ...]](), list[list[int]]()
        for row, record in enumerate(records):
            span, tokens, reach = self.spans[record], self.completions[record], self._reach[record]
            flat += [(row, at, span.prompt_part - span.first_predicted + at, tokens[at]) for at in reach]
            offered += reach.values()
        row, position, column, generated = torch.tensor(flat, device=self.subject.device).T
        return Predicted(row=row, position=position, column=column, generated=generated, offered=offered)


def _note_scale(into: dict[int, Tensor], layer: int, norm: nn.Module, to: torch.device, read: Tensor) -> None:
    into[layer] = norms.scale(norm, read.detach()).to(to)
