"""What replacing units does to text that it was never meant for: KL from the clean model, and perplexity.

For a text in two parts, what stands before and what continues it, both are taken at each token of the continuation:

    KL = Σ_w p(w) (log p(w) − log q(w)),   perplexity = exp(−mean log p(token)),

p the clean model, q the one in which each row's unit is replaced as in a generation of the continuation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp

import torch
from jaxtyping import Float
from torch import Tensor

from mecharule_ops.loading.generation import Tokens
from mecharule_ops.loading.model import Subject
from mecharule_ops.repair.acting_rows import ablating_rows
from mecharule_ops.repair.statistics import TextEffect
from mecharule_ops.replacement.baselines import ReplacementTable
from mecharule_ops.types import Neuron

Parts = tuple[Tokens, Tokens]
"""What stands before, and what continues it; neither is empty."""
_ROWS = 8


def text_effect(
    subject: Subject, table: ReplacementTable, texts: Sequence[Parts], acts: Sequence[Neuron | None]
) -> TextEffect:
    """What replacing `acts[i]` in `texts[i]` does; None leaves a text alone. Cost: two forwards over the texts."""
    assert texts
    assert len(texts) == len(acts), (len(texts), len(acts))
    tokens, kl, clean_loss, acted_loss = 0, 0.0, 0.0, 0.0
    for start in range(0, len(texts), _ROWS):
        some, units = texts[start : start + _ROWS], acts[start : start + _ROWS]
        with torch.no_grad():
            clean = list(_predictions(subject, some))
            if any(units):
                width = max(len(before) for before, _ in some)
                prompts = [before for before, _ in some]
                with ablating_rows(subject, table, prompts, width, units):
                    acted = list(_predictions(subject, some))
            else:
                acted = clean
        for (_, continuation), p, q in zip(some, clean, acted, strict=True):
            target = torch.tensor(continuation, device=p.device)[:, None]
            tokens += len(continuation)
            kl += float((p.exp() * (p - q)).sum())
            clean_loss -= float(p.gather(1, target).sum())
            acted_loss -= float(q.gather(1, target).sum())
    return TextEffect(
        tokens=tokens,
        kl=max(0.0, kl / tokens),
        before=exp(clean_loss / tokens),
        after=exp(acted_loss / tokens),
    )


def _predictions(subject: Subject, texts: Sequence[Parts]) -> Iterator[Float[Tensor, "token word"]]:
    """Log probabilities at each token of each continuation; texts are aligned where the continuations begin."""
    width = max(len(before) for before, _ in texts)
    longest = max(len(continuation) for _, continuation in texts)
    ids = torch.zeros((len(texts), width + longest), dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, (before, continuation) in enumerate(texts):
        here = slice(width - len(before), width + len(continuation))
        ids[row, here], mask[row, here] = torch.tensor((*before, *continuation)), 1
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    device = subject.device
    output = subject.hf(
        ids.to(device), attention_mask=mask.to(device), position_ids=positions.to(device), use_cache=False
    )
    for row, (_, continuation) in enumerate(texts):
        yield output.logits[row, width - 1 : width - 1 + len(continuation)].float().log_softmax(-1)
