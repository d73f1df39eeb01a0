"""Gradients along the path between two prompts, at every unit of a model: the model half of EAP-IG.

The formula, its metric and its source stand in `attribution`. A common prefix of all prompts has equal keys and
values in every member, so it is run once and only what follows takes the interpolated passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle
from transformers import Cache, PreTrainedModel

from mecharule_ops.errors import UsageError
from mecharule_ops.loading.products import through_onednn
from mecharule_ops.types import Phase

Site = tuple[nn.Module, bool]
"""A module, and True when the units live in its input, False when in its output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributionPair:
    """Two prompts of equal token length and the answer whose evidence is traced."""

    clean: tuple[int, ...]
    """Prompt tokens of the associated member."""
    corrupt: tuple[int, ...]
    """Prompt tokens of the unrelated member."""
    completion: tuple[int, ...]
    """Tokens that the unablated model generated after `clean`, at least one."""

    def __post_init__(self) -> None:
        if len(self.clean) != len(self.corrupt):
            raise UsageError(
                f"expected a pair of equal token length, got {len(self.clean)} and {len(self.corrupt)}; "
                "pair within equal length"
            )
        if not self.clean or not self.completion:
            raise UsageError("expected a pair with a prompt and a completion, got none; leave it out")

    @property
    def shared(self) -> int:
        """Leading prompt tokens that both members have, less the last one, which predicts the answer."""
        differing = (i for i, (a, b) in enumerate(zip(self.clean, self.corrupt, strict=True)) if a != b)
        return min(next(differing, len(self.clean)), len(self.clean) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributionCost:
    """Passes in examples: a batch of n pairs counts n."""

    example_forwards: int
    """Pairs × (steps + 2), and one for the shared prefix when there is one."""
    example_backwards: int
    """Pairs × steps."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Rows:
    """A batch of pairs after the shared prefix, padded on the right, where causal attention never looks."""

    clean: Tensor
    """Embeddings [row, position, width] of the clean prompts and completions, without the last token."""
    corrupt: Tensor
    """The same with the corrupt prompts."""
    target: Tensor
    """Token each position must predict [row, position]; 0 where it is not scored."""
    weight: Tensor
    """1 / answer length at the positions that predict the answer, else 0 [row, position]."""
    touched: Tensor
    """True where the phase intervenes [row, position]."""


def integrate(
    hf: PreTrainedModel,
    sites: Sequence[Site],
    pairs: Sequence[AttributionPair],
    phase: Phase,
    *,
    steps: int,
    batch: int,
    on_progress: Callable[[int, int], None] | None = None,
) -> tuple[Float[np.ndarray, "layer coordinate"], AttributionCost]:
    """The module's formula for every coordinate of each site, mean over pairs, and what it cost."""
    start = _shared_prefix(pairs)
    prefix = _prefill(hf, pairs[0].clean[:start])
    total = None
    for begin in range(0, len(pairs), batch):
        rows = _lay_out(hf, pairs[begin : begin + batch], start, phase)
        with through_onednn(hf):
            part = _integrate_rows(hf, sites, rows, prefix, steps)
        total = part if total is None else total + part
        if on_progress is not None:
            on_progress(min(begin + batch, len(pairs)), len(pairs))
    assert total is not None
    forwards = len(pairs) * (steps + 2) + (start > 0)
    cost = AttributionCost(example_forwards=forwards, example_backwards=len(pairs) * steps)
    return total / len(pairs), cost


def _integrate_rows(
    hf: PreTrainedModel, sites: Sequence[Site], rows: _Rows, prefix: Cache | None, steps: int
) -> Float[np.ndarray, "layer coordinate"]:
    """Σ over rows and positions of (h_corrupt − h_clean) · mean_k ∂M/∂h."""
    with torch.no_grad():
        _, clean = _metric_and_units(hf, sites, rows, rows.clean, prefix)
        _, corrupt = _metric_and_units(hf, sites, rows, rows.corrupt, prefix)
        difference = [
            (b - a) * rows.touched[:, :, None].to(a.device) for a, b in zip(clean, corrupt, strict=True)
        ]
    total = np.zeros((len(sites), difference[0].shape[-1]))
    for step in range(steps):
        between = torch.lerp(rows.clean, rows.corrupt, (step + 0.5) / steps).requires_grad_()
        with torch.enable_grad():
            metric, units = _metric_and_units(hf, sites, rows, between, prefix)
            gradients = torch.autograd.grad(metric.sum(), units)
        for layer, (change, gradient) in enumerate(zip(difference, gradients, strict=True)):
            total[layer] += (change * gradient).sum(dim=(0, 1)).cpu().double().numpy() / steps
    return total


def _metric_and_units(
    hf: PreTrainedModel, sites: Sequence[Site], rows: _Rows, embeddings: Tensor, prefix: Cache | None
) -> tuple[Tensor, list[Tensor]]:
    """M of each row [row], and the tensor at each site [row, position, coordinate], in one forward."""
    cache = deepcopy(prefix)
    if cache is not None:
        cache.batch_repeat_interleave(len(embeddings))
    answering = rows.weight.any(dim=0).nonzero()
    keep = rows.weight.shape[1] - int(answering[0])
    with _recorded(sites) as seen:
        logits = hf(
            inputs_embeds=embeddings, past_key_values=cache, use_cache=cache is not None, logits_to_keep=keep
        ).logits
    wanted = logits.gather(2, rows.target[:, -keep:, None])[:, :, 0]
    metric = ((wanted - logits.mean(dim=2)) * rows.weight[:, -keep:]).sum(dim=1)
    return metric, [seen[index] for index in range(len(sites))]


@contextmanager
def _recorded(sites: Sequence[Site]) -> Iterator[dict[int, Tensor]]:
    """The tensor at each site, by index, filled by the forward run inside."""
    seen: dict[int, Tensor] = {}
    with ExitStack() as attached:
        for index, site in enumerate(sites):
            attached.callback(_record(site, index, seen).remove)
        yield seen


def _record(site: Site, index: int, seen: dict[int, Tensor]) -> RemovableHandle:
    def keep_input(_: nn.Module, arguments: tuple[Any, ...]) -> None:
        seen[index] = arguments[0]

    def keep_output(_: nn.Module, arguments: tuple[Any, ...], output: Tensor) -> None:
        seen[index] = output

    module, is_input = site
    return (
        module.register_forward_pre_hook(keep_input)
        if is_input
        else module.register_forward_hook(keep_output)
    )


def _shared_prefix(pairs: Sequence[AttributionPair]) -> int:
    """Leading tokens that all members of all pairs have in common."""
    first = np.array(pairs[0].clean)
    shared = pairs[0].shared
    for pair in pairs[1:]:
        shared = min(shared, pair.shared)
        differing = np.flatnonzero(first[:shared] != pair.clean[:shared])
        shared = int(differing[0]) if len(differing) else shared
    return shared


def _prefill(hf: PreTrainedModel, tokens: tuple[int, ...]) -> Cache | None:
    """Keys and values of the shared prefix as a batch of one; None when there is no prefix."""
    if not tokens:
        return None
    with torch.no_grad():
        ids = torch.tensor([tokens], device=hf.device)
        return hf(input_ids=ids, use_cache=True, logits_to_keep=1).past_key_values


def _lay_out(hf: PreTrainedModel, pairs: Sequence[AttributionPair], start: int, phase: Phase) -> _Rows:
    """Rows after the first `start` tokens."""
    width = max(len(pair.clean) + len(pair.completion) - 1 for pair in pairs) - start
    tokens = np.zeros((2, len(pairs), width), dtype=np.int64)
    target = np.zeros((len(pairs), width), dtype=np.int64)
    weight = np.zeros((len(pairs), width))
    touched = np.zeros((len(pairs), width), dtype=bool)
    for row, pair in enumerate(pairs):
        answer = len(pair.clean) - start
        end = answer + len(pair.completion) - 1
        for member, prompt in enumerate((pair.clean, pair.corrupt)):
            tokens[member, row, :end] = (prompt + pair.completion[:-1])[start:]
        target[row, answer - 1 : end] = pair.completion
        weight[row, answer - 1 : end] = 1 / len(pair.completion)
        first = {Phase.DECODE: answer, Phase.LAST_PROMPT: answer - 1, Phase.WHOLE: 0}[phase]
        touched[row, first:end] = True
    device = hf.device
    with torch.no_grad():
        clean, corrupt = hf.get_input_embeddings()(torch.from_numpy(tokens).to(device))
    return _Rows(
        clean=clean,
        corrupt=corrupt,
        target=torch.from_numpy(target).to(device),
        weight=torch.from_numpy(weight).to(device, clean.dtype),
        touched=torch.from_numpy(touched).to(device),
    )
