"""The greedy token of a hidden state without multiplying by the whole vocabulary, and still exact.

An ablated hidden state h lies near the clean one h₀ of the same record and position, whose logits are known.
For every token v outside a candidate set C (the likeliest tokens of the clean rows), Cauchy–Schwarz gives

    w_v·h + b_v  ≤  (w_v·h₀ + b_v) + ‖w_v‖ ‖h − h₀‖  ≤  max_{u∉C} ℓ₀(u) + max_{u∉C} ‖w_u‖ · ‖h − h₀‖ .

When the second-best candidate reaches that bound, the two best tokens and their margin are those of the whole
vocabulary. Rows where it does not are multiplied in full.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

_SLACK = 1e-3
"""Added to the bound, in logits: more than float32 rounding of one product can move it."""
_LOGITS_AT_ONCE = 1 << 24
"""Logits materialised at a time (64 MiB of float32)."""


@dataclass(frozen=True, slots=True, eq=False)
class Greedy:
    """Best tokens and how far ahead of the second best they are."""

    tokens: Int[Tensor, " row"]
    margins: Float[Tensor, " row"]
    """Top-1 minus top-2 logit."""


class Unembedding:
    """The whole product: every logit of every row."""

    def __init__(self, head: nn.Module, softcap: float | None) -> None:
        weight, bias = head.weight, head.bias
        assert isinstance(weight, Tensor), type(weight)
        assert bias is None or isinstance(bias, Tensor), type(bias)
        self.weight, self.bias = weight, bias
        self._softcap = softcap
        self.vocabulary: int = weight.shape[0]
        self.norms = weight.norm(dim=1)

    def logits(self, hidden: Float[Tensor, "row channel"]) -> Float[Tensor, "row token"]:
        """Every logit, before any soft cap."""
        return nn.functional.linear(hidden, self.weight, self.bias)

    def greedy(self, hidden: Float[Tensor, "row channel"]) -> Greedy:
        """Exact by definition; at most `_LOGITS_AT_ONCE` logits exist at a time."""
        parts = [self.best(self.logits(rows)) for rows in hidden.split(self.rows_at_once)]
        return Greedy(torch.cat([p.tokens for p in parts]), torch.cat([p.margins for p in parts]))

    @property
    def rows_at_once(self) -> int:
        return max(1, _LOGITS_AT_ONCE // self.vocabulary)

    def best(self, logits: Float[Tensor, "row token"]) -> Greedy:
        """The greedy token of logits, the margin after the model's soft cap where it has one."""
        top = logits.topk(2, dim=-1)
        values = top.values
        if self._softcap is not None:
            values = self._softcap * torch.tanh(values / self._softcap)
        return Greedy(top.indices[:, 0], values[:, 0] - values[:, 1])


class NearClean:
    """Greedy tokens of rows whose clean hidden states were seen before."""

    def __init__(
        self, unembedding: Unembedding, clean: Float[Tensor, "row channel"], likeliest: int = 32
    ) -> None:
        self._whole = unembedding
        self._clean = clean
        parts = list(clean.split(unembedding.rows_at_once))
        chosen = torch.zeros(unembedding.vocabulary, dtype=torch.bool, device=clean.device)
        for rows in parts:
            chosen[unembedding.logits(rows).topk(min(likeliest, unembedding.vocabulary)).indices] = True
        self._candidates = chosen.nonzero()[:, 0]
        self._weight = unembedding.weight[self._candidates].contiguous()
        bias = unembedding.bias
        self._bias = None if bias is None else bias[self._candidates]
        self._others = torch.cat([_best_other(unembedding.logits(rows), chosen) for rows in parts])
        self._norm = unembedding.norms.masked_fill(chosen, 0.0).max()

    @property
    def bytes(self) -> int:
        return self._clean.nbytes + self._weight.nbytes

    def greedy(self, hidden: Float[Tensor, "row channel"], rows: Int[Tensor, " row"]) -> Greedy:
        """Greedy tokens of `hidden`, whose clean states are `rows` of the ones given at construction."""
        logits = nn.functional.linear(hidden, self._weight, self._bias)
        best = self._whole.best(logits)
        tokens, margins = self._candidates[best.tokens], best.margins
        moved = (hidden - self._clean[rows]).norm(dim=-1)
        second = logits.topk(2, dim=-1).values[:, 1]
        open_rows = (second < self._others[rows] + self._norm * moved + _SLACK).nonzero()[:, 0]
        if len(open_rows):
            full = self._whole.greedy(hidden[open_rows])
            tokens[open_rows], margins[open_rows] = full.tokens, full.margins
        return Greedy(tokens, margins)


def _best_other(logits: Tensor, chosen: Tensor) -> Tensor:
    """The largest logit outside the candidates, −inf when there is none."""
    return logits.masked_fill(chosen, -torch.inf).amax(-1)
