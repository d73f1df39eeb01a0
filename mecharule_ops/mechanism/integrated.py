"""The drop of a unit or small group integrated along its way from value to replacement.

    d̄_t = mean over k of Σ_{s ≤ t} Σ_j ⟨∂ℓ_t/∂u_{j,s} at u + a_k (v − u), u_{j,s} − v_{j,s}⟩,    a_k = (k + ½) / m,

where at each point ℓ_t is the lead over the token that is the best other one there: integrated gradients
(Sundararajan, Taly and Yan 2017) of the smallest lead, by the midpoint rule; with one point at the clean value it
would be attribution patching. With m → ∞ it is the whole fall of the smallest lead, so that d̄_t > ℓ_t says which
tokens change; m = 2 sees most of the curvature that a first-order drop misses. Members of a group are set along the
way together, so that none acts through another.

The sum over s and j is the derivative of ℓ_t along u − v. So one forward that carries it (forward-mode
differentiation) gives the summand of every token t at once, for about the price of two ablations a point.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float32
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn.attention import SDPBackend, sdpa_kernel

from mecharule_ops.errors import UsageError
from mecharule_ops.loading.model import Subject
from mecharule_ops.loading.products import through_onednn
from mecharule_ops.mechanism.forced import Forced, Forcing
from mecharule_ops.mechanism.leads import LeadHead, Leads
from mecharule_ops.mechanism.unit_axis import UnitAxis
from mecharule_ops.passes.intervention import Units, hooked
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.types import Basis, BehaviourRecord, Neuron


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Integrated:
    """The integrated drop of some groups."""

    leads: Leads
    """Over the runner-up of the clean run."""
    drop: Float32[np.ndarray, "group record position"]
    """d̄_t, in logits; NaN out of reach."""

    @property
    def flips(self) -> Bool[np.ndarray, "group record"]:
        """Some token in reach has d̄_t > ℓ_t."""
        return np.any(self.drop > self.leads.lead[:, :, 0], axis=2)


def integrated_drop(
    subject: Subject,
    records: Sequence[BehaviourRecord],
    replacement: ReplacementTable,
    groups: Sequence[Sequence[Neuron]],
    *,
    points: int = 2,
) -> Integrated:
    """The integrated drop of each group on the records' own completions.

    Cost: a forward over prompts and completions; then for each group and each of the `points` one forward with its
    derivative, worth two, over the completions from the group's lowest layer up. Raises `UsageError` for a unit that
    the model does not have or fewer points than one.
    """
    basis = replacement.intervention.basis
    for group in groups:
        UnitAxis.of(subject, basis, group)
    if points < 1:
        raise UsageError(f"expected points of 1 or more, got {points}; 2 to 4 are enough")
    forcing, head = Forcing(subject, records, replacement.intervention.phase), LeadHead(subject, 1)
    leads = Leads.empty(forcing.completions, 1)
    drop = np.full((len(groups), *leads.generated.shape), np.nan, np.float32)
    shares = (np.arange(points) + 0.5) / points
    for batch in forcing.batches():
        with torch.no_grad(), through_onednn(subject.hf):
            clean = _Clean.of(forcing, batch, basis, groups)
            at = clean.forced.predicted
            leads.enter(batch, at, head.compare(clean.forced.final[at.row, at.column], at.generated))
            places = np.array(batch)[at.row.cpu().numpy()], at.position.cpu().numpy()
            for index, group in enumerate(groups):
                way = clean.way(replacement.units(group, clean.forced.offsets, subject.device))
                slopes = [_slope(forcing, head, way, float(share)) for share in shares]
                drop[index][places] = torch.stack(slopes).mean(0).cpu().numpy()
    return Integrated(leads=leads, drop=drop)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Way:
    """One batch with the clean values and the replacements of a group's units."""

    forced: Forced
    units: dict[int, Units]
    """The replacements, by layer."""
    clean: dict[int, Tensor]
    """What the units hold in the clean run, shaped as the replacements; at padding the replacements."""
    basis: Basis
    shape: tuple[int, ...]
    """How a site's last axis splits into units."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Clean:
    """One batch fed back, with what every group's way starts from."""

    forced: Forced
    sites: dict[int, Tensor]
    """The tensor that the basis lives in, by layer of a group."""
    basis: Basis
    shape: tuple[int, ...]

    @classmethod
    def of(
        cls, forcing: Forcing, batch: Sequence[int], basis: Basis, groups: Sequence[Sequence[Neuron]]
    ) -> _Clean:
        subject = forcing.subject
        size = subject.unit_size(basis)
        sites: dict[int, Tensor] = {}
        with ExitStack() as stack:
            for layer in sorted({unit.layer for group in groups for unit in group}):
                module, in_input = subject.wiring.site(forcing.blocks.stack[layer], basis)
                stack.callback(hooked(module, in_input, partial(sites.__setitem__, layer)).remove)
            forced = forcing.feed(batch, keep={min(unit.layer for unit in group) for group in groups})
        return cls(forced=forced, sites=sites, basis=basis, shape=(-1,) if size == 1 else (-1, size))

    def way(self, units: dict[int, Units]) -> _Way:
        """The way of one group."""
        clean, replaced = {}, {}
        for layer, asked in units.items():
            site = self.sites[layer].unflatten(-1, self.shape)
            held = Units(channels=asked.channels.to(site.device), values=asked.values.to(site))
            values = site[:, :, held.channels]
            real = self.forced.held.view(*self.forced.held.shape, *[1] * (values.ndim - 2)).to(site.device)
            clean[layer], replaced[layer] = torch.where(real, values, held.values), held
        return _Way(forced=self.forced, units=replaced, clean=clean, basis=self.basis, shape=self.shape)


def _slope(forcing: Forcing, head: LeadHead, way: _Way, share: float) -> Tensor:
    """Fall of each predicted token's smallest lead per unit of the way, at one point."""
    at, lowest = way.forced.predicted, min(way.units)
    with forward_ad.dual_level(), sdpa_kernel(SDPBackend.MATH), ExitStack() as stack:
        for layer, units in way.units.items():
            clean, replaced = way.clean[layer], units.values
            along = forward_ad.make_dual(torch.lerp(clean, replaced, share), clean - replaced)
            stack.enter_context(_set(forcing, layer, way, along))
        residual = way.forced.inputs[lowest]
        for layer in range(lowest, forcing.subject.n_layers):
            residual = way.forced.calls(layer, residual)
        final, fall = forward_ad.unpack_dual(forcing.normalised(residual))
        compared = head.compare(final[at.row, at.column], at.generated)
        return (head.gradient(compared, 0) * fall[at.row, at.column]).sum(1)


@contextmanager
def _set(forcing: Forcing, layer: int, way: _Way, values: Tensor) -> Iterator[None]:
    """Inside, the group's units of a layer hold `values`."""
    module, in_input = forcing.subject.wiring.site(forcing.blocks.stack[layer], way.basis)

    def held(site: Tensor) -> Tensor:
        changed = site.clone()
        changed.unflatten(-1, way.shape)[:, :, way.units[layer].channels] = values
        return changed

    def at_input(module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return (held(inputs[0]), *inputs[1:])

    def at_output(module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> Tensor:
        return held(output)

    handle = (
        module.register_forward_pre_hook(at_input) if in_input else module.register_forward_hook(at_output)
    )
    try:
        yield
    finally:
        handle.remove()
