"""The clean (unablated) pass over prompts and completions: what every ablation of the same records shares.

Below a span nothing changes under any ablation, so its keys and values are kept; so is the residual stream
entering every block at span positions, where an ablated pass starts. For the MLP-write basis the write and the
block's output without it are kept apart, so that a replaced write needs one addition and no block.

Cost: one forward over prompts and completions, without the prefix that all of them share.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from mecharule_ops.loading import given
from mecharule_ops.loading.generation import KeysAndValues, SharedPrefix, contents
from mecharule_ops.loading.model import Subject
from mecharule_ops.passes.forward import Blocks, PrefixCache, SpanBatch
from mecharule_ops.passes.intervention import hooked
from mecharule_ops.passes.spans import Span
from mecharule_ops.types import Basis

Site = tuple[nn.Module, bool]
"""A module, and whether its input (else its output) is read."""
Places = tuple[Tensor, Tensor]
"""Row and column of every span position in a padded batch, `[record, position]` each."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CleanSpans:
    """Clean tensors of some records, by layer, at span positions (padding on the right)."""

    batch: SpanBatch
    inputs: tuple[Float[Tensor, "record position channel"], ...]
    """Residual stream entering each block."""
    writes: tuple[Float[Tensor, "record position channel"], ...]
    """MLP writes; empty unless the basis is `mlp_out`."""
    rests: tuple[Float[Tensor, "record position channel"], ...]
    """Block outputs with the MLP write left out; empty unless the basis is `mlp_out`."""
    residual: Float[Tensor, "record position channel"]
    """What the final normalisation reads."""
    final: Float[Tensor, "record position channel"]
    """Final normalised hidden state, the unembedding's input."""

    @property
    def bytes(self) -> int:
        """Memory held, without what records share."""
        own = self.batch.prefix.own
        held = chain(*own, self.inputs, self.writes, self.rests, [self.residual, self.final])
        return sum(tensor.nbytes for tensor in held)


def clean_spans(
    subject: Subject, blocks: Blocks, spans: Sequence[Span], basis: Basis, shared: SharedPrefix
) -> CleanSpans:
    """The clean tensors of non-empty `spans`, whose prefixes all begin with `shared`."""
    final_norm, _ = subject.wiring.head(subject.hf)
    sites: dict[str, Site] = {f"input {layer}": (block, True) for layer, block in enumerate(blocks.stack)}
    places = _places(subject, spans, shared)
    parts: dict[str, list[Tensor]] = {"write": [], "rest": []}
    with ExitStack() as stack:
        if basis.row.last_write:
            for block in blocks.stack:
                stack.enter_context(_split_write(subject, block, basis, places, parts))
        ends = {"residual": (final_norm, True), "final": (final_norm, False)}
        seen, kept = clean_pass(subject, spans, sites | ends, shared)
    return CleanSpans(
        batch=_batch(subject, spans, kept, shared),
        inputs=tuple(seen[name] for name in sites),
        writes=tuple(parts["write"]),
        rests=tuple(parts["rest"]),
        residual=seen["residual"],
        final=seen["final"],
    )


def _batch(subject: Subject, spans: Sequence[Span], kept: KeysAndValues, shared: SharedPrefix) -> SpanBatch:
    """The spans padded on the right, with the part of the keys and values that lies below them."""
    lengths = torch.tensor([len(span.prefix) for span in spans], device=subject.device)
    own = slice(len(shared.tokens), int(lengths.max()))
    below = [(keys[:, :, own].clone(), values[:, :, own].clone()) for keys, values in kept]
    return SpanBatch.of(spans, PrefixCache(shared.layers, below), lengths)


def clean_pass(
    subject: Subject, spans: Sequence[Span], sites: dict[Any, Site], shared: SharedPrefix
) -> tuple[dict[Any, Float[Tensor, "record position width"]], KeysAndValues]:
    """(what each site held at span positions, by name, padded on the right; keys and values of every token)."""
    begin = len(shared.tokens)
    sequences = [(*span.prefix, *span.fed) for span in spans]
    width = max(len(sequence) for sequence in sequences)
    ids = torch.tensor([[*sequence, *[0] * (width - len(sequence))] for sequence in sequences])
    offsets = torch.tensor([[span.offset - len(span.prefix)] for span in spans]) + torch.arange(begin, width)
    cache = shared.cache(len(spans))
    seen: dict[Any, Tensor] = {}
    places = _places(subject, spans, shared)
    with ExitStack() as stack, given.fed_at(offsets):
        for name, (module, in_input) in sites.items():
            stack.enter_context(hooked(module, in_input, partial(_gather, seen, name, places)))
        subject.hf.base_model(
            input_ids=ids[:, begin:].to(subject.device),
            attention_mask=torch.ones_like(ids).to(subject.device),
            position_ids=torch.arange(begin, width, device=subject.device).expand(len(spans), -1),
            past_key_values=cache,
            use_cache=True,
        )
    return seen, contents(cache)


def _places(subject: Subject, spans: Sequence[Span], shared: SharedPrefix) -> Places:
    """Where the spans lie in what follows the shared prefix; past a span's end its last position is repeated."""
    starts = torch.tensor([len(span.prefix) - len(shared.tokens) for span in spans])
    lengths = torch.tensor([len(span.fed) for span in spans])
    columns = starts[:, None] + torch.minimum(torch.arange(int(lengths.max())), (lengths - 1)[:, None])
    return torch.arange(len(spans))[:, None].to(subject.device), columns.to(subject.device)


def _gather(into: dict[Any, Tensor], name: Any, places: Places, site: Tensor) -> None:
    into[name] = _at(site, places)


def _at(site: Tensor, places: Places) -> Tensor:
    """A site's tensor at the places, on its own device."""
    rows, columns = places
    return site[rows.to(site.device), columns.to(site.device)]


@contextmanager
def _split_write(
    subject: Subject, block: nn.Module, basis: Basis, places: Places, into: dict[str, list[Tensor]]
) -> Iterator[None]:
    """Inside, the block runs on without its MLP write, which is added to its output: both parts are gathered."""
    module, _ = subject.wiring.site(block, basis)
    held: list[Tensor] = []

    def withhold(module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> Tensor:
        held.append(output)
        into["write"].append(_at(output, places))
        return torch.zeros_like(output)

    def add(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> Any:
        rest = output[0] if isinstance(output, tuple) else output
        into["rest"].append(_at(rest, places))
        whole = rest + held.pop()
        return (whole, *output[1:]) if isinstance(output, tuple) else whole

    with module.register_forward_hook(withhold), block.register_forward_hook(add):
        yield
