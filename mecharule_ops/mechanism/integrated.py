"""The drop of one unit or small group integrated along its way from value to replacement.

    d̄_t = mean over k of Σ_{s ≤ t} Σ_j ⟨∂ℓ_t/∂u_{j,s} at u + a_k (v − u), u_{j,s} − v_{j,s}⟩,    a_k = (k + ½) / m,

where at each point ℓ_t is the lead over the token that is the best other one there: integrated gradients
(Sundararajan, Taly and Yan 2017) of the smallest lead, by the midpoint rule. With m → ∞ it is the whole fall of the
smallest lead, so that d̄_t > ℓ_t says which tokens change; m = 2 sees most of the curvature that a first-order drop
misses. It costs about as much as an ablation and explains one unit or group; members of a group are set along the
way together, so that none acts through another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float32, Int
from torch import Tensor, nn

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
    """The integrated drop of one group."""

    leads: Leads
    """Over the runner-up of the clean run."""
    drop: Float32[np.ndarray, "record position"]
    """d̄_t, in logits; NaN out of reach."""
    rival: Int[np.ndarray, "record position"]
    """The best other token at the point nearest to the replacement; −1 out of reach."""

    @property
    def flips(self) -> Bool[np.ndarray, " record"]:
        """Some token in reach has d̄_t > ℓ_t."""
        return np.any(self.drop > self.leads.lead[:, :, 0], axis=1)

    @property
    def changes(self) -> tuple[Int[np.ndarray, " record"], Int[np.ndarray, " record"]]:
        """(t of the first changed token, the token that takes its place), −1 where no change is predicted."""
        beyond = self.drop > self.leads.lead[:, :, 0]
        position = np.where(beyond.any(1), beyond.argmax(1), -1)
        token = self.rival[np.arange(len(position)), position]
        return position, np.where(position >= 0, token, -1)


def integrated_drop(
    subject: Subject,
    records: Sequence[BehaviourRecord],
    replacement: ReplacementTable,
    group: Sequence[Neuron],
    *,
    points: int = 2,
    columns: int | None = None,
) -> Integrated:
    """The integrated drop of `group` on the records' own completions.

    Cost: a forward over prompts and completions; then at each of the `points` one forward from the group's lowest
    layer up and one backward through it for each generated token in reach. Raises `UsageError` for a unit that the
    model does not have or fewer points than one.
    """
    UnitAxis.of(subject, replacement.intervention.basis, group)
    if points < 1:
        raise UsageError(f"expected points of 1 or more, got {points}; 2 to 4 are enough")
    forcing, head = Forcing(subject, records, replacement.intervention.phase), LeadHead(subject, 1)
    leads = Leads.empty(forcing.completions, 1)
    drop, rival = np.full(leads.generated.shape, np.nan, np.float32), np.full(leads.generated.shape, -1)
    for batch in forcing.batches(columns):
        with through_onednn(subject.hf):
            way = _Way.of(forcing, batch, replacement, group)
            at = way.forced.predicted
            clean = head.compare(way.forced.final[at.row, at.column], at.generated)
            leads.enter(batch, at, clean)
            shares = (np.arange(points) + 0.5) / points
            parts = [_slope(forcing, head, way, float(share)) for share in shares]
        places = np.array(batch)[at.row.cpu().numpy()], at.position.cpu().numpy()
        drop[places] = torch.stack([slope for slope, _ in parts]).mean(0).cpu().numpy()
        rival[places] = parts[-1][1].cpu().numpy()
    return Integrated(leads=leads, drop=drop, rival=rival)


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

    @classmethod
    def of(
        cls,
        forcing: Forcing,
        batch: Sequence[int],
        replacement: ReplacementTable,
        group: Sequence[Neuron],
    ) -> _Way:
        subject, basis = forcing.subject, replacement.intervention.basis
        size = subject.unit_size(basis)
        shape = (-1,) if size == 1 else (-1, size)
        sites: dict[int, Tensor] = {}
        layers = sorted({unit.layer for unit in group})
        with ExitStack() as stack:
            for layer in layers:
                module, in_input = subject.wiring.site(forcing.blocks.stack[layer], basis)
                stack.callback(hooked(module, in_input, partial(sites.__setitem__, layer)).remove)
            forced = forcing.feed(batch, keep=layers[:1])
        units = replacement.units(group, forced.offsets, subject.device)
        clean = {}
        for layer, held in units.items():
            values = sites[layer].unflatten(-1, shape)[:, :, held.channels]
            real = forced.held.view(*forced.held.shape, *[1] * (values.ndim - 2))
            clean[layer] = torch.where(real, values, held.values.to(values))
        return cls(forced=forced, units=units, clean=clean, basis=basis, shape=shape)


def _slope(forcing: Forcing, head: LeadHead, way: _Way, share: float) -> tuple[Tensor, Tensor]:
    """(fall of each predicted token's smallest lead per unit of the way, the best other token), at one point."""
    subject, at = forcing.subject, way.forced.predicted
    points = {
        layer: torch.lerp(way.clean[layer], units.values.to(way.clean[layer]), share).requires_grad_()
        for layer, units in way.units.items()
    }
    lowest = min(points)
    with torch.enable_grad(), ExitStack() as stack:
        for layer, values in points.items():
            stack.enter_context(_set(forcing, layer, way, values))
        residual = way.forced.inputs[lowest]
        for layer in range(lowest, subject.n_layers):
            residual = way.forced.calls(layer, residual)
        final = forcing.normalised(residual)
    compared = head.compare(final[at.row, at.column], at.generated)
    starts = head.gradient(compared, 0)
    slope = torch.zeros(len(at.row), dtype=final.dtype, device=final.device)
    for position in at.position.unique().tolist():
        members = (at.position == position).nonzero()[:, 0]
        start = torch.zeros_like(final)
        start[at.row[members], at.column[members]] = starts[members]
        gradients = torch.autograd.grad(final, list(points.values()), start, retain_graph=True)
        falls = [
            (gradient * (way.clean[layer] - way.units[layer].values)).flatten(1).sum(1)
            for layer, gradient in zip(points, gradients, strict=True)
        ]
        slope[members] = torch.stack(falls).sum(0)[at.row[members]]
    return slope, compared.tokens[:, 0]


@contextmanager
def _set(forcing: Forcing, layer: int, way: _Way, values: Tensor) -> Iterator[None]:
    """Inside, the group's units of a layer hold `values`, which gradients can be taken by."""
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
