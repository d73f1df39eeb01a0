"""What a unit reads: for a head attention and value-weighted contribution by named source, for others activations.

A head's output at position s is z_s = Σ_r a_{s,r} x_r over source tokens r, with attention a and values x. With the
gradient g_{t,s} = ∂ℓ_t/∂z_s of a generated token's lead over its runner-up, source r carries
Σ_{s ≤ t} a_{s,r} ⟨g_{t,s}, x_r⟩ of the lead to first order, by every way above the head and not by the direct one
alone. Over all sources that sums to ⟨g, z⟩; less ⟨g, v⟩ of the replacement it is the head's first-order drop (see
`effects`): attribution patching, split by what the head attends to.

Attention is read off the model's own modules, switched to the implementation that returns weights and back.
Cost: a forward over prompts and one over completions, one backward a generated token in reach.
Axes: record column source; see `forced`.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32
from torch import Tensor

from mecharule_ops.errors import UsageError
from mecharule_ops.loading import model, products
from mecharule_ops.mechanism import leads, links
from mecharule_ops.mechanism.forced import ForcedUnits, Forcing
from mecharule_ops.passes.forward import PrefixCache
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.types import BehaviourRecord, FlipCount, Neuron

ATTENDED = 4
"""Records whose graph is kept at once, since attention weights of every layer above are kept with it."""


def reads(
    subject: model.Subject,
    records: Sequence[BehaviourRecord],
    replacement: ReplacementTable,
    unit: Neuron,
    flipped: Bool[np.ndarray, " record"],
    sources: Sequence[Sequence[str]],
) -> links.Reads:
    """What the unit reads on flipped and on unflipped records; `sources` names each record's tokens.

    Raises `UsageError` when no token is in reach.
    """
    if unit.basis.row.heads:
        found = head_positions(subject, records, replacement, unit, sources)
        return links.Reads(heads=_by_group(found.record, flipped, partial(_reading, found)))
    record, value, replaced = _values(subject, records, replacement, unit)
    return links.Reads(activations=_by_group(record, flipped, partial(_activation, value, replaced)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeadPositions:
    """One head at every generated token in reach, position by position."""

    names: tuple[str, ...]
    record: np.ndarray
    """Which record each position belongs to."""
    attention: Float32[np.ndarray, "position source"]
    toward: Float32[np.ndarray, "position source"]
    replacement: Float32[np.ndarray, " position"]
    """⟨g, v⟩."""


def head_positions(
    subject: model.Subject,
    records: Sequence[BehaviourRecord],
    replacement: ReplacementTable,
    unit: Neuron,
    sources: Sequence[Sequence[str]],
) -> HeadPositions:
    """Attention and contribution of every named source at every position in reach. Raises `UsageError` for none."""
    forcing, head = Forcing(subject, records, replacement.intervention.phase), leads.LeadHead(subject, 1)
    names = tuple(dict.fromkeys(name for row in sources for name in row))
    parts = []
    with _weights_returned(subject), products.through_onednn(subject.hf):
        for batch in forcing.batches(ATTENDED * max((len(span.fed) for span in forcing.spans), default=1)):
            seen = _Seen(unit.channel, subject.device)
            with _noting(subject, unit.layer, seen):
                fed = forcing.feed_units(batch, replacement, [unit.layer], traced=True)
            placed = _placed(forcing, batch, sources, names, seen)
            parts.append(_positions(subject, head, fed, unit, seen, placed))
    record, attention, toward, constant = _joined(parts)
    return HeadPositions(names=names, record=record, attention=attention, toward=toward, replacement=constant)


class _Seen:
    """What one head attended to in the latest forward, brought to where tokens go in."""

    def __init__(self, head: int, device: torch.device) -> None:
        self.head, self.device = head, device
        self.attention: Tensor = torch.empty(0)
        """[record, column, slot]"""
        self.values: Tensor = torch.empty(0)
        """[record, slot, head_dim]"""
        self.slots = 0
        """Slots of the prefix, before the span's own."""

    def note(self, weights: Tensor, values: Tensor, columns: int) -> None:
        shared = weights.shape[1] // values.shape[1]
        self.attention = weights[:, self.head].detach().to(self.device)
        self.values = values[:, self.head // shared].detach().to(self.device)
        self.slots = values.shape[2] - columns


class _NotingCache(PrefixCache):
    """A prefix that keeps the values it last handed out."""

    __slots__ = ("handed",)
    handed: Tensor

    def update(
        self, keys: Tensor, values: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        both = PrefixCache.update(self, keys, values, layer_idx)
        object.__setattr__(self, "handed", both[1])
        return both


@contextmanager
def _noting(subject: model.Subject, layer: int, seen: _Seen) -> Iterator[None]:
    """Inside, a call of a layer's attention above a clean prefix leaves its weights and values in `seen`."""
    block = subject.wiring.blocks(subject.hf)[layer]
    module = attrgetter(subject.wiring.attention_projection.rpartition(".")[0])(block)
    caches: list[_NotingCache] = []

    def swap(
        module: Any, given: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        def swapped(value: Any) -> Any:
            if not isinstance(value, PrefixCache):
                return value
            caches.append(_NotingCache(value.shared, value.own))
            return caches[-1]

        return tuple(map(swapped, given)), {name: swapped(value) for name, value in named.items()}

    def note(module: Any, given: Any, output: Any) -> None:
        if caches:
            seen.note(output[1], caches.pop().handed, output[1].shape[2])

    with module.register_forward_pre_hook(swap, with_kwargs=True), module.register_forward_hook(note):
        yield


@contextmanager
def _weights_returned(subject: model.Subject) -> Iterator[None]:
    """Inside, attention modules compute and return their weights; afterwards the model is as it was."""
    before = subject.hf.config._attn_implementation
    subject.hf.set_attn_implementation("eager")
    try:
        yield
    finally:
        subject.hf.set_attn_implementation(before)


def _placed(
    forcing: Forcing,
    batch: Sequence[int],
    sources: Sequence[Sequence[str]],
    names: Sequence[str],
    seen: _Seen,
) -> Float[Tensor, "record slot source"]:
    """1 where a slot of the prefix or of the span holds a token of a source."""
    index = {name: place for place, name in enumerate(names)}
    placed = torch.zeros((*seen.values.shape[:2], len(names)), device=seen.values.device)
    for row, record in enumerate(batch):
        below, fed = len(forcing.spans[record].prefix), len(forcing.spans[record].fed)
        for token, name in enumerate(sources[record][: below + fed]):
            placed[row, token if token < below else seen.slots + token - below, index[name]] = 1.0
    return placed


def _positions(
    subject: model.Subject, head: leads.LeadHead, fed: ForcedUnits, unit: Neuron, seen: _Seen, placed: Tensor
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(record, attention, toward, ⟨g, v⟩) of each position of a batch."""
    forced = fed.forced
    at, size = forced.predicted, subject.unit_size(unit.basis)
    own = slice(unit.channel * size, (unit.channel + 1) * size)
    units = fed.units[unit.layer]
    replaced = (units.detach().to(subject.device) - fed.change[unit.layer])[..., own]
    compared = head.compare(forced.final, at)
    attention = torch.einsum("tk,tkn->tn", seen.attention[at.row, at.column], placed[at.row])
    toward, constant = torch.zeros_like(attention), attention.new_zeros(len(attention))
    for position in at.position.unique().tolist():
        members = (at.position == position).nonzero()[:, 0]
        start = torch.zeros_like(forced.final)
        start[at.row[members], at.column[members]] = head.gradient(compared, 0)[members]
        (whole,) = torch.autograd.grad(forced.final, [units], start, retain_graph=True)
        gradient = whole[..., own].to(subject.device)
        carried = torch.einsum("rck,rcd,rkd->rk", seen.attention, gradient, seen.values)
        toward[members] = torch.einsum("rk,rkn->rn", carried, placed)[at.row[members]]
        constant[members] = (gradient * replaced).sum((1, 2))[at.row[members]]
    record = np.array(forced.records)[at.row.cpu().numpy()]
    return record, attention.cpu().numpy(), toward.cpu().numpy(), constant.cpu().numpy()


def _values(
    subject: model.Subject, records: Sequence[BehaviourRecord], replacement: ReplacementTable, unit: Neuron
) -> list[np.ndarray]:
    """(record, value, replacement) of a scalar unit at every position in reach."""
    forcing = Forcing(subject, records, replacement.intervention.phase)
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for batch in forcing.batches():
        with torch.no_grad(), products.through_onednn(subject.hf):
            fed = forcing.feed_units(batch, replacement, [unit.layer], traced=False)
        at = fed.forced.predicted
        held = fed.units[unit.layer].to(subject.device)[at.row, at.column, unit.channel]
        change = fed.change[unit.layer][at.row, at.column, unit.channel]
        of = np.array(batch)[at.row.cpu().numpy()]
        parts.append((of, held.cpu().numpy(), (held - change).cpu().numpy()))
    return _joined(parts)


def _joined(parts: Sequence[tuple[np.ndarray, ...]]) -> list[np.ndarray]:
    """The arrays of all batches, each laid end to end."""
    if not parts:
        raise UsageError("expected records with a generated token in reach of the intervention, got none")
    return [np.concatenate(part) for part in zip(*parts, strict=True)]


def _by_group(record: np.ndarray, flipped: np.ndarray, of: Any) -> tuple[Any, ...]:
    """`of(positions, name)` for all records, the flipped and the others, where there are any."""
    return tuple(of(some, name) for name, some in links.groups(flipped[record]).items() if some.any())


def _reading(found: HeadPositions, some: np.ndarray, group: str) -> links.HeadReading:
    attention, toward = (part[some].mean(0).tolist() for part in (found.attention, found.toward))
    each = zip(found.names, attention, toward, strict=True)
    sources = [links.SourceRead(name=name, attention=share, toward=part) for name, share, part in each]
    return links.HeadReading(
        group=group,
        positions=int(some.sum()),
        sources=tuple(sorted(sources, key=lambda source: -source.attention)),
        replacement=float(found.replacement[some].mean()),
    )


def _activation(value: np.ndarray, replaced: np.ndarray, some: np.ndarray, group: str) -> links.Activation:
    value, replaced = value[some], replaced[some]
    return links.Activation(
        group=group,
        positions=len(value),
        mean=float(value.mean()),
        replacement=float(replaced.mean()),
        above=FlipCount(flips=int((value > replaced).sum()), n=len(value)),
    )
