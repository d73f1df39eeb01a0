"""What values each unit takes in the data, by layer and offset: mean, minimum, maximum, observed value near the mean.

Offsets count from the last prompt token (see `spans`). Values are read from the unablated model on prompts
followed by their baseline completions; padding never enters.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from mecharule_ops.loading import generation, model, products
from mecharule_ops.passes.clean import clean_pass
from mecharule_ops.passes.spans import Span
from mecharule_ops.types import Basis

_RECORDS_AT_ONCE = 32
_Site = tuple[Basis, int]
"""A basis and a layer."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnitStatistics:
    """Statistics of every unit of one layer; a head has one of each per dimension."""

    mean: Float[Tensor, "offset channel *head_dim"]
    low: Float[Tensor, "offset channel *head_dim"]
    high: Float[Tensor, "offset channel *head_dim"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observed:
    """Statistics of every layer at the offsets that the data holds."""

    offsets: Int[Tensor, " offset"]
    """Ascending; not always contiguous."""
    counts: Int[Tensor, " offset"]
    """Records that have the offset, at least 1."""
    layers: tuple[UnitStatistics, ...]


def observe_values(
    subject: model.Subject, spans: Sequence[Span], bases: Sequence[Basis]
) -> dict[Basis, Observed]:
    """Statistics of each basis over the spans' positions. Cost: one forward over every prompt and completion."""
    offsets = sorted({offset for span in spans for offset in _offsets(span)})
    place = {offset: index for index, offset in enumerate(offsets)}
    counts = torch.zeros(len(offsets), dtype=torch.long)
    totals: dict[_Site, tuple[Tensor, Tensor, Tensor]] = {}
    for rows, seen in _unit_values(subject, spans, bases):
        row = torch.tensor([place[offset] for span in rows for offset in _offsets(span)])
        counts += row.bincount(minlength=len(offsets))
        for site, values in seen.items():
            if site not in totals:
                none = torch.zeros((len(offsets), *values.shape[1:]))
                totals[site] = none.double(), none + torch.inf, none - torch.inf
            total, low, high = totals[site]
            total.index_add_(0, row, values.double())
            index = row.view(-1, *[1] * (values.ndim - 1)).expand_as(values)
            low.scatter_reduce_(0, index, values, "amin")
            high.scatter_reduce_(0, index, values, "amax")

    def of_layer(total: Tensor, low: Tensor, high: Tensor) -> UnitStatistics:
        weight = counts.double().view(-1, *[1] * (total.ndim - 1))
        return UnitStatistics(mean=(total / weight).float(), low=low, high=high)

    return {
        basis: Observed(
            offsets=torch.tensor(offsets),
            counts=counts,
            layers=tuple(of_layer(*totals[basis, layer]) for layer in range(subject.n_layers)),
        )
        for basis in bases
    }


def nearest_observed(
    subject: model.Subject,
    spans: Sequence[Span],
    basis: Basis,
    targets: Sequence[Float[Tensor, "target channel *head_dim"]],
    offsets: Int[Tensor, " offset"],
    positional: bool,
) -> tuple[Float[Tensor, "target channel *head_dim"], ...]:
    """For every layer and coordinate the observed value closest to its target; the earliest one on a tie.

    With `positional` only values at the target's own offset are donors, else values at all offsets are.
    Cost: one forward over every prompt and completion.
    """
    place = {offset: index for index, offset in enumerate(offsets.tolist())}
    found = [torch.full_like(target, torch.nan) for target in targets]
    for rows, seen in _unit_values(subject, spans, [basis]):
        row = [place[offset] if positional else 0 for span in rows for offset in _offsets(span)]
        for layer, (donors, wanted) in enumerate(zip(found, targets, strict=True)):
            for index, value in zip(row, seen[basis, layer], strict=True):
                best, target = donors[index], wanted[index]
                closer = best.isnan() | ((value - target).abs() < (best - target).abs())
                best[closer] = value[closer]
    return tuple(found)


def first_slot_means(
    subject: model.Subject, prompts: Sequence[Sequence[int]], basis: Basis
) -> tuple[Float[Tensor, " channel *head_dim"], ...]:
    """Mean over prompts of every unit at the first prompt token, by layer; that token depends on nothing else."""
    firsts = [Span(prefix=(), fed=(prompt[0],), offset=0) for prompt in prompts]
    return tuple(layer.mean[0] for layer in observe_values(subject, firsts, [basis])[basis].layers)


def _offsets(span: Span) -> range:
    return range(span.offset, span.offset + len(span.fed))


def _unit_values(
    subject: model.Subject, spans: Sequence[Span], bases: Sequence[Basis]
) -> Iterator[tuple[Sequence[Span], dict[_Site, Tensor]]]:
    """A few records at a time: (spans, values `[position of any span, channel, *head_dim]` by basis and layer)."""
    blocks = list(enumerate(subject.wiring.blocks(subject.hf)))
    sites = {(basis, layer): subject.wiring.site(block, basis) for basis in bases for layer, block in blocks}
    kept = [span for span in spans if span.fed]
    shared = generation.SharedPrefix.of(subject.hf, [span.prefix for span in kept])
    for begin in range(0, len(kept), _RECORDS_AT_ONCE):
        rows = kept[begin : begin + _RECORDS_AT_ONCE]
        with torch.inference_mode(), products.through_onednn(subject.hf):
            seen, _ = clean_pass(subject, rows, sites, shared)
        held = torch.tensor([len(span.fed) for span in rows])
        real = torch.arange(int(held.max())) < held[:, None]
        yield rows, {at: seen[at].cpu()[real].unflatten(-1, subject.unit_shape(at[0])) for at in sites}
