"""EAP-IG scores of the units of a basis: which of them carry the contrast of a pair (paper, §4.2).

Edge attribution patching with integrated gradients (Hanna, Pezzelle and Belinkov 2024), "inputs" variant.
The embeddings of a pair are interpolated, e(a) = e_clean + a · (e_corrupt − e_clean), at the midpoints
a_k = (k + ½) / m, and a unit u scores

    mean over pairs of  Σ_positions (h_corrupt − h_clean)[u] · mean_k ∂M/∂h[u] at e(a_k),

with h and the gradient taken at the unit itself: the output of the MLP, the input of its down projection or
of W_O. It estimates M(u patched from corrupt into clean) − M(clean), so a negative unit supports the clean
answer. M is the mean over the answer span of the clean completion's logits, each minus the mean logit of the
vocabulary, teacher-forced after either prompt: unlike a divergence from the clean run, it has a gradient at
both ends. A score ranks candidates; it is no causal claim.

The tokens before the first difference within any pair have equal keys, values and units in both members:
they run once, and only the rest is interpolated.
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
from mecharule_ops.subject.model import Subject
from mecharule_ops.types import Basis, Candidates, LayerCandidates, Phase

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
class Attribution:
    """The scores of every unit and the candidates they leave."""

    candidates: Candidates
    scores: Float[np.ndarray, "layer channel"]
    """Signed, in mean-centred logits; one channel a unit, one head a channel for `attn_head`."""
    cost: AttributionCost


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


def eap_ig(
    subject: Subject,
    pairs: Sequence[AttributionPair],
    basis: Basis,
    phase: Phase,
    *,
    steps: int = 5,
    cap: int = 100_000,
    keep_zero: bool = True,
    batch: int = 16,
    on_progress: Callable[[int, int], None] | None = None,
) -> Attribution:
    """Signed EAP-IG scores of all units of a basis, summed over the positions that the phase intervenes on.

    `steps` is m; `on_progress` gets (pairs done, pairs in all). Under `Phase.DECODE` a completion of one
    token has no such position and contributes zero. Cost: `steps` + 2 forwards and `steps` backwards a pair.
    Raises `UsageError` without pairs or with a count below 1.
    """
    if not pairs or min(steps, cap, batch) < 1:
        raise UsageError(
            f"expected pairs, and steps, cap and batch of at least 1; got {len(pairs)} pairs, "
            f"steps {steps}, cap {cap}, batch {batch}"
        )
    sites = [subject.wiring.site(block, basis) for block in subject.wiring.blocks(subject.hf)]
    total, cost = integrate(
        subject.hf, sites, pairs, phase, steps=steps, batch=batch, on_progress=on_progress
    )
    units = total.reshape(len(sites), -1, subject.unit_size(basis)).sum(axis=2)
    candidates = top_candidates(basis, units, cap=cap, keep_zero=keep_zero)
    return Attribution(candidates=candidates, scores=units, cost=cost)


def top_candidates(
    basis: Basis, scores: Float[np.ndarray, "layer channel"], *, cap: int = 100_000, keep_zero: bool = True
) -> Candidates:
    """The `cap` units of largest |score| across layers; on a tie the lower layer and channel first.

    Units of score zero stay by default, so that the recall of the search does not rest on attribution;
    the paper keeps non-zero ones only (`keep_zero=False`). A layer that keeps nothing is left out.
    """
    strength = np.abs(scores).reshape(-1)
    kept = np.zeros(strength.size, dtype=bool)
    kept[np.argsort(-strength, kind="stable")[:cap]] = True
    kept &= keep_zero | (strength > 0)
    layers = []
    for layer, mask in enumerate(kept.reshape(scores.shape)):
        if mask.any():
            channels = np.flatnonzero(mask)
            layers.append(LayerCandidates(layer=layer, channels=channels, scores=scores[layer, channels]))
    return Candidates(basis=basis, layers=tuple(layers))


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
        difference = [(b - a) * rows.touched[:, :, None] for a, b in zip(clean, corrupt, strict=True)]
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
