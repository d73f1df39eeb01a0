"""EAP-IG (attribution patching with integrated gradients): which units carry the contrast of a pair (paper, §4.2).

Edge attribution patching with integrated gradients (Hanna, Pezzelle and Belinkov 2024), "inputs" variant.
The embeddings of a pair are interpolated, e(a) = e_clean + a · (e_corrupt − e_clean), at the midpoints
a_k = (k + ½) / m, and a unit u scores

    mean over pairs of  Σ_positions (h_corrupt − h_clean)[u] · mean_k ∂M/∂h[u] at e(a_k),

with h and the gradient taken at the unit itself: the output of the MLP, the input of its down projection or
of W_O. It estimates M(u patched from corrupt into clean) − M(clean), so a negative unit supports the clean
answer. M is the mean over the answer span of the clean completion's logits, each minus the mean logit of the
vocabulary, teacher-forced after either prompt: unlike a divergence from the clean run, it has a gradient at
both ends. Where targets are compared with foils it is the mean of

    logit of the token written − log Σ exp(logits of those of the other side)

over the tokens at which these differ, with one foil their logit difference. A score ranks candidates; it is no causal
claim.

The tokens that all prompts have in common have equal keys, values and units in every member: they run once, and only
the rest is interpolated.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel

from mecharule_ops.loading import given, model, offers, products
from mecharule_ops.loading.generation import SharedPrefix
from mecharule_ops.passes.intervention import hooked
from mecharule_ops.types import Basis, Phase

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
    choices: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """The places in the completion that are compared, and among which tokens each was chosen; empty for all of all."""

    def __post_init__(self) -> None:
        assert len(self.clean) == len(self.corrupt), "a pair is of one length"
        assert self.clean, "a pair has a prompt"
        assert self.completion, "a pair has a completion"


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
    """1 / their number at the positions that predict the answer and are compared, else 0 [row, position]."""
    against: Sequence[Sequence[Sequence[int]]]
    """With what tokens each position is compared [row, position]; empty for the vocabulary."""
    offsets: Tensor
    """From the last prompt token [row, position]."""
    touched: Tensor
    """True where the phase intervenes [row, position]."""


def eap_ig(
    subject: model.Subject, pairs: Sequence[AttributionPair], basis: Basis, phase: Phase, **settings: Any
) -> Float[np.ndarray, "layer channel"]:
    """Signed scores of all units of a basis in mean-centred logits, summed over the positions that the phase acts on.

    Settings as of `integrate`. Under `Phase.DECODE` a completion of one token has no such position and contributes
    zero. Cost: `steps` + 2 forwards and `steps` backwards a pair.
    """
    sites = [subject.wiring.site(block, basis) for block in subject.wiring.blocks(subject.hf)]
    total = integrate(subject.hf, sites, pairs, phase, **settings)
    return total.reshape(len(sites), -1, subject.unit_size(basis)).sum(axis=2)


def integrate(
    hf: PreTrainedModel,
    sites: Sequence[Site],
    pairs: Sequence[AttributionPair],
    phase: Phase,
    *,
    steps: int = 5,
    batch: int = 16,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Float[np.ndarray, "layer coordinate"]:
    """The module's formula for every coordinate of each site, mean over pairs.

    `steps` is m; `on_progress` gets (pairs done, pairs in all).
    """
    assert pairs, "there is a pair to trace"
    assert min(steps, batch) >= 1, (steps, batch)
    prefix = SharedPrefix.of_prompts(hf, [prompt for pair in pairs for prompt in (pair.clean, pair.corrupt)])
    total = np.zeros(())
    for begin in range(0, len(pairs), batch):
        rows = _lay_out(hf, pairs[begin : begin + batch], len(prefix.tokens), phase)
        with products.through_onednn(hf):
            total = total + _integrate_rows(hf, sites, rows, prefix, steps)
        on_progress(min(begin + batch, len(pairs)), len(pairs))
    return total / len(pairs)


def _integrate_rows(
    hf: PreTrainedModel, sites: Sequence[Site], rows: _Rows, prefix: SharedPrefix, steps: int
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
    hf: PreTrainedModel, sites: Sequence[Site], rows: _Rows, embeddings: Tensor, prefix: SharedPrefix
) -> tuple[Tensor, list[Tensor]]:
    """M of each row [row], and the tensor at each site [row, position, coordinate], in one forward."""
    keep = rows.weight.shape[1] - int(rows.weight.any(dim=0).nonzero()[0])
    seen: dict[int, Tensor] = {}
    with ExitStack() as stack:
        for index, (module, in_input) in enumerate(sites):
            stack.callback(hooked(module, in_input, partial(seen.__setitem__, index)).remove)
        stack.enter_context(given.fed_at(rows.offsets))
        known = {"past_key_values": prefix.cache(len(embeddings)), "use_cache": True}
        logits = hf(inputs_embeds=embeddings, logits_to_keep=keep, **known).logits
    wanted = logits.gather(2, rows.target[:, -keep:, None])[:, :, 0]
    beside = logits.mean(dim=2)
    if any(map(any, rows.against)):
        against = [tokens for row in rows.against for tokens in row[-keep:]]
        beside = offers.among(logits.flatten(0, 1), against).logsumexp(dim=1).view_as(beside)
    metric = ((wanted - beside) * rows.weight[:, -keep:]).sum(dim=1)
    return metric, [seen[index] for index in range(len(sites))]


def _lay_out(hf: PreTrainedModel, pairs: Sequence[AttributionPair], start: int, phase: Phase) -> _Rows:
    """Rows after the first `start` tokens."""
    width = max(len(pair.clean) + len(pair.completion) - 1 for pair in pairs) - start
    tokens = np.zeros((2, len(pairs), width), dtype=np.int64)
    target = np.zeros((len(pairs), width), dtype=np.int64)
    weight = np.zeros((len(pairs), width))
    touched = np.zeros((len(pairs), width), dtype=bool)
    against: list[list[Sequence[int]]] = [[()] * width for _ in pairs]
    for row, pair in enumerate(pairs):
        answer = len(pair.clean) - start
        end = answer + len(pair.completion) - 1
        for member, prompt in enumerate((pair.clean, pair.corrupt)):
            tokens[member, row, :end] = (prompt + pair.completion[:-1])[start:]
        target[row, answer - 1 : end] = pair.completion
        for at in (places := pair.choices or range(len(pair.completion))):
            weight[row, answer - 1 + at] = 1 / len(places)
        for at, among in pair.choices.items():
            against[row][answer - 1 + at] = [one for one in among if one != pair.completion[at]]
        first = {Phase.DECODE: answer, Phase.LAST_PROMPT: answer - 1, Phase.WHOLE: 0}[phase]
        touched[row, first:end] = True
    device = hf.device
    with torch.no_grad():
        clean, corrupt = hf.get_input_embeddings()(torch.from_numpy(tokens).to(device))
    return _Rows(
        clean=clean,
        corrupt=corrupt,
        target=torch.from_numpy(target).to(device),
        offsets=torch.tensor([[start - len(pair.clean) + 1] for pair in pairs]) + torch.arange(width),
        weight=torch.from_numpy(weight).to(device, clean.dtype),
        against=against,
        touched=torch.from_numpy(touched).to(device),
    )
