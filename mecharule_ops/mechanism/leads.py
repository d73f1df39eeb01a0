"""Leads (logit differences): how close the model was to another token, and how a hidden state moves a lead.

The lead of a generated token y over a competitor w is ℓ = logit(y) − logit(w) in the clean run, behind the model's
soft cap where it has one. The competitors are the best other tokens; the best of them is the runner-up.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float32, Int
from torch import Tensor

from mecharule_ops.loading import model, offers
from mecharule_ops.mechanism.forced import Predicted
from mecharule_ops.passes import greedy


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Leads:
    """Leads of every record at every generated position; `position` t counts the completion's tokens from 0."""

    lead: Float32[np.ndarray, "record position competitor"]
    """In logits, best competitor first; NaN where the position is out of reach or past the end."""
    token: Int[np.ndarray, "record position competitor"]
    """The competitors; −1 where there is none."""
    generated: Int[np.ndarray, "record position"]
    """The tokens that the model wrote; −1 past the end."""

    @classmethod
    def empty(cls, completions: list[tuple[int, ...]], competitors: int) -> "Leads":
        """No position in reach yet."""
        generated = np.full((len(completions), max(map(len, completions), default=0)), -1)
        for row, tokens in enumerate(completions):
            generated[row, : len(tokens)] = tokens
        shape = (*generated.shape, competitors)
        return cls(lead=np.full(shape, np.nan, np.float32), token=np.full(shape, -1), generated=generated)

    def enter(self, records: Sequence[int], predicted: Predicted, compared: "Compared") -> None:
        """Fill in the predicted tokens of one batch."""
        places = np.array(records)[predicted.row.cpu().numpy()], predicted.position.cpu().numpy()
        self.lead[places] = compared.lead.cpu().numpy()
        self.token[places] = compared.tokens.cpu().numpy()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Compared:
    """Rows of hidden states with the competitors of their generated tokens."""

    generated: Int[Tensor, " row"]
    tokens: Int[Tensor, "row competitor"]
    raw: Float[Tensor, "row one_and_competitor"]
    """Logits before any soft cap: of the generated token, then of each competitor."""
    lead: Float[Tensor, "row competitor"]


class LeadHead:
    """The unembedding of a subject, asked only about leads."""

    def __init__(self, subject: model.Subject, competitors: int) -> None:
        self._whole = greedy.unembedding_of(subject)
        self._weight, self._bias, self.competitors = self._whole.weight, self._whole.bias, competitors
        assert 1 <= competitors < self._whole.vocabulary, competitors

    def compare(self, final: Float[Tensor, "record column channel"], at: Predicted) -> Compared:
        """Each generated token against the best others offered, the best again where none is left.

        Cost: the whole product.
        """
        logits = self._whole.logits(final[at.row, at.column].detach())
        logits, generated = offers.among(logits, at.offered), at.generated[:, None]
        own = logits.gather(1, generated)
        others = logits.scatter_(1, generated, -torch.inf).topk(self.competitors)
        is_one = others.values > -torch.inf
        tokens, raw = (each.where(is_one, each[:, :1]) for each in (others.indices, others.values))
        return self._compared(at.generated, tokens, torch.cat([own, raw], 1))

    def against(
        self,
        hidden: Float[Tensor, "row channel"],
        generated: Int[Tensor, " row"],
        tokens: Int[Tensor, "row competitor"],
    ) -> Compared:
        """The same with the competitors given. Cost: a few rows of the product."""
        both = torch.cat([generated[:, None], tokens], 1)
        raw = torch.einsum("rtc,rc->rt", self._weight[both], hidden.detach())
        return self._compared(generated, tokens, raw if self._bias is None else raw + self._bias[both])

    def _compared(self, generated: Tensor, tokens: Tensor, raw: Tensor) -> Compared:
        capped = self._whole.capped(raw)
        return Compared(generated=generated, tokens=tokens, raw=raw, lead=capped[:, :1] - capped[:, 1:])

    def gradient(self, compared: Compared, competitor: int) -> Float[Tensor, "row channel"]:
        """∂ℓ/∂(hidden state): W_U[y] − W_U[w], each times the soft cap's slope at its logit."""
        own, other = self._weight[compared.generated], self._weight[compared.tokens[:, competitor]]
        if (cap := self._whole.softcap) is None:
            return own - other
        slope = 1 - torch.tanh(compared.raw / cap).square()
        return slope[:, :1] * own - slope[:, 1 + competitor, None] * other

    def secant(self, compared: Compared) -> Float[Tensor, "row competitor"]:
        """Lead over the difference of the raw logits: how much of such a difference the soft cap leaves."""
        raw = compared.raw[:, :1] - compared.raw[:, 1:]
        return torch.where(raw.abs() > 1e-12, compared.lead / raw, torch.ones_like(raw))

    def difference(self, compared: Compared) -> Float[Tensor, "row competitor channel"]:
        """W_U[y] − W_U[w]."""
        return self._weight[compared.generated][:, None] - self._weight[compared.tokens]
