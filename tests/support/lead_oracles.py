"""Leads under an ablation by whole forwards in float64: no cache, no batch, no shared prefix, no gradient."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from toy_behaviour import Toy, toy

from mecharule_ops.loading import norms
from mecharule_ops.loading.model import Subject
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.types import Basis, Intervention, Neuron, Phase


def exact(family: str, intervention: Intervention) -> tuple[Toy, ReplacementTable]:
    """A toy of its own in float64, with the completions and the replacements of the float32 one."""
    bench = toy(family)
    hf = deepcopy(bench.subject.hf)
    subject = Subject(name=family, directory=Path(), hf=hf, tokenizer=bench.subject.tokenizer)
    hf.double()
    return Toy(subject=subject, task=bench.task, records=bench.records), bench.table(intervention)


def leads_under(
    bench: Toy,
    table: ReplacementTable,
    units: Sequence[Neuron],
    record: int,
    tokens: np.ndarray,
    share: float = 1.0,
) -> np.ndarray:
    """Leads `[position, competitor]` over `tokens` on the clean completion, units moved a share of the way."""
    one = bench.records[record]
    (prompt,) = bench.subject.encode([one.example.prompt])
    ids = torch.tensor([[*prompt, *one.tokens[:-1]]])
    offsets = torch.arange(ids.shape[1]) - len(prompt) + 1
    acted = offsets >= {Phase.DECODE: 1, Phase.LAST_PROMPT: 0, Phase.WHOLE: -99}[table.intervention.phase]
    handles = [_moving(bench, table, unit, offsets, acted, share) for unit in units]
    try:
        with torch.no_grad():
            logits = bench.subject.hf(ids, attention_mask=torch.ones_like(ids)).logits[0].numpy()
    finally:
        for handle in handles:
            handle.remove()
    found = np.full(tokens.shape, np.nan)
    for position, own in enumerate(one.tokens):
        row = logits[len(prompt) - 1 + position]
        for rank, other in enumerate(tokens[position]):
            if other >= 0:
                found[position, rank] = row[own] - row[other]
    return found


def slow_drop(
    bench: Toy, table: ReplacementTable, unit: Neuron, record: int, tokens: np.ndarray
) -> np.ndarray:
    """−dℓ/da at a = 0 along u + a (v − u).

    Several families normalise in float32 whatever the weights are, so the step is far above its rounding and the
    stencil of fourth order.
    """
    wide = 0.005

    def rise(step: float) -> np.ndarray:
        ends = [leads_under(bench, table, [unit], record, tokens, share) for share in (step, -step)]
        return ends[0] - ends[1]

    return -(8 * rise(wide) - rise(2 * wide)) / (12 * wide)


def _moving(
    bench: Toy,
    table: ReplacementTable,
    unit: Neuron,
    offsets: torch.Tensor,
    acted: torch.Tensor,
    share: float,
) -> Any:
    """Moves one unit from its value towards its replacement at the intervened positions."""
    block = bench.subject.wiring.blocks(bench.subject.hf)[unit.layer]
    module, in_input = bench.subject.wiring.site(block, unit.basis)
    size = bench.subject.unit_size(unit.basis)
    values = table.value(unit.layer, offsets)[:, unit.channel].reshape(-1, size)
    scalars = slice(unit.channel * size, (unit.channel + 1) * size)

    def moved(tensor: torch.Tensor) -> torch.Tensor:
        changed = tensor.clone()
        here = tensor[0, acted, scalars]
        changed[0, acted, scalars] = here + share * (values[acted].to(here) - here)
        return changed

    if in_input:
        return module.register_forward_pre_hook(lambda module, inputs: (moved(inputs[0]), *inputs[1:]))
    return module.register_forward_hook(lambda module, inputs, output: moved(output))


def written_lead(bench: Toy, basis: Basis, layer: int, record: int, tokens: np.ndarray) -> np.ndarray:
    """What attention or MLP of a layer adds to each lead `[position, competitor]`, the final norm's scale frozen."""
    subject, one = bench.subject, bench.records[record]
    final_norm, head = subject.wiring.head(subject.hf)
    block = subject.wiring.blocks(subject.hf)[layer]
    path = subject.wiring.attention_norm or subject.wiring.attention_projection
    writer = attrgetter(path if basis is Basis.ATTN_HEAD else subject.wiring.mlp_write)(block)
    seen: dict[str, torch.Tensor] = {}
    handles = [
        writer.register_forward_hook(lambda _, inputs, output: seen.update(write=output[0])),
        final_norm.register_forward_pre_hook(lambda _, inputs: seen.update(residual=inputs[0][0])),
    ]
    (prompt,) = subject.encode([one.example.prompt])
    with torch.no_grad():
        subject.hf(torch.tensor([[*prompt, *one.tokens[:-1]]]))
        for handle in handles:
            handle.remove()
        write = seen["write"]
        if isinstance(final_norm, nn.LayerNorm):
            write = write - write.mean(-1, keepdim=True)
        added = norms.gain(final_norm) * write / norms.scale(final_norm, seen["residual"])
        raw = head(final_norm(seen["residual"]))
        cap = getattr(subject.hf.config, "final_logit_softcapping", None)
        logits = raw if cap is None else cap * torch.tanh(raw / cap)
    found = np.full(tokens.shape, np.nan)
    for position, own in enumerate(one.tokens):
        row = len(prompt) - 1 + position
        for rank, other in enumerate(tokens[position]):
            if other >= 0:
                kept = (logits[row, own] - logits[row, other]) / (raw[row, own] - raw[row, other])
                found[position, rank] = kept * (added[row] @ (head.weight[own] - head.weight[other]))
    return found
