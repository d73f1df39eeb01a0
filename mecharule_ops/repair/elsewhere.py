"""What replacing units does to text that it was never meant for: KL from the clean model, and perplexity.

For a text in two parts, what stands before and what continues it, both are taken at each token of the continuation:

    KL = Σ_w p(w) (log p(w) − log q(w)),   perplexity = exp(−mean log p(token)),

p the clean model, q the one in which each row's units are replaced as in a generation of the continuation.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

import torch
from jaxtyping import Float
from torch import Tensor

from mecharule_ops.loading.generation import Tokens
from mecharule_ops.loading.model import Subject
from mecharule_ops.repair.acting_rows import ablating_rows
from mecharule_ops.repair.gates import Acts
from mecharule_ops.repair.statistics import TextEffect
from mecharule_ops.replacement.baselines import ReplacementTable

Parts = tuple[Tokens, Tokens]
"""What stands before, and what continues it; neither is empty."""
_ROWS = 8


def text_effects(
    subject: Subject,
    table: ReplacementTable,
    texts: Sequence[Parts],
    plans: Sequence[Acts],
) -> list[TextEffect]:
    """What each plan does, which replaces the units `plan[i]` in `texts[i]`.

    Cost: a forward over the texts for the clean model, and one for each plan over the batches that it touches.
    """
    assert texts
    assert all(len(plan) == len(texts) for plan in plans), [len(plan) for plan in plans]
    tokens, clean_loss, sums = 0, 0.0, [[0.0, 0.0] for _ in plans]
    for start in range(0, len(texts), _ROWS):
        some = texts[start : start + _ROWS]
        prompts = [before for before, _ in some]
        with torch.no_grad():
            clean = _predictions(subject, some)
            tokens += sum(len(continuation) for _, continuation in some)
            clean_loss += _loss(clean, some)
            for plan, known in zip(plans, sums, strict=True):
                acts, acted = plan[start : start + _ROWS], clean
                if any(acts):
                    with ablating_rows(subject, table, prompts, max(map(len, prompts)), acts):
                        acted = _predictions(subject, some)
                known[0] += sum(float((p.exp() * (p - q)).sum()) for p, q in zip(clean, acted, strict=True))
                known[1] += _loss(acted, some)
    before = exp(clean_loss / tokens)
    return [
        TextEffect(tokens=tokens, kl=max(0.0, kl / tokens), before=before, after=exp(loss / tokens))
        for kl, loss in sums
    ]


def _loss(predicted: Sequence[Float[Tensor, "_ word"]], texts: Sequence[Parts]) -> float:
    """−log p of every token of the continuations, in all."""
    return -sum(
        float(p.gather(1, torch.tensor(continuation, device=p.device)[:, None]).sum())
        for p, (_, continuation) in zip(predicted, texts, strict=True)
    )


def _predictions(subject: Subject, texts: Sequence[Parts]) -> list[Float[Tensor, "_ word"]]:
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
    return [
        output.logits[row, width - 1 : width - 1 + len(continuation)].float().log_softmax(-1)
        for row, (_, continuation) in enumerate(texts)
    ]
