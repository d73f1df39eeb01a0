"""Decoding among targets and foils: of the tokens that go on with one the likeliest is written, until the side is told.

With one target and one foil that is the sign of their logit difference at the first token where they differ.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from mecharule_ops import errors, types

Offered = Sequence[Sequence[int]]
"""The tokens that may be written, by row; none where any may."""


@dataclass(frozen=True, slots=True)
class Offer:
    """Texts of two sides, of which one is written; without any, every text may be."""

    steps: Mapping[types.Tokens, Mapping[int, set[int]]] = field(default_factory=dict)
    """Behind each beginning the tokens that go on, and the sides of the texts that they go on with."""

    def next_tokens(self, begun: types.Tokens) -> list[int]:
        """Tokens that may follow; none where any may."""
        return list(self.steps.get(begun, ()))

    def along(self, tokens: types.Tokens, first: int = 0) -> list[list[int]]:
        """The same for each token from the `first` on."""
        return [self.next_tokens(tokens[:at]) for at in range(first, len(tokens))]

    def choices(self, tokens: types.Tokens, first: int = 0) -> dict[int, list[int]]:
        """By place from the `first` on a written token and those offered beside it that could lead to another side.

        Places without such a token are left out; where any text may be written, every place is there, with none.
        """
        if not self.steps:
            return {at: [] for at in range(first, len(tokens))}
        found = dict[int, list[int]]()
        for at in range(first, len(tokens)):
            offered = self.steps.get(tokens[:at], {})
            own = offered.get(tokens[at], set())
            rivals = [one for one, sides in offered.items() if one == tokens[at] or len(own | sides) > 1]
            found |= {at: rivals} if rivals[1:] else {}
        return found

    def behind(self, begun: types.Tokens) -> "Offer":
        """What is left behind a beginning."""
        size = len(begun)
        return Offer({path[size:]: step for path, step in self.steps.items() if path[:size] == begun})

    def is_settled(self, begun: types.Tokens) -> bool:
        """Whether no text is left to go on with."""
        return bool(self.steps) and begun not in self.steps


def offer_of(
    encode: Callable[[Sequence[str]], list[types.Tokens]],
    decode: Callable[[types.Tokens], str],
    prompt: str,
    sides: tuple[tuple[str, ...], ...],
) -> Offer:
    """The offer of texts as they stand behind a prompt.

    A text's tokens are those that the prompt gains by it; where the two melt into one token, those of the text alone.
    Raises `UsageError` for a text that no tokens write, and for one that ends where one of another side goes on.
    """
    every = [(side, text) for side, texts in enumerate(sides) for text in texts]
    before, nothing, *wholes = encode([prompt, "", *(prompt + text for _, text in every)])
    paths: dict[types.Tokens, set[int]] = {}
    for (side, text), whole in zip(every, wholes, strict=True):
        ids = encode([text])[0][len(nothing) :] if whole[: len(before)] != before else whole[len(before) :]
        if decode(before + ids) != decode(before) + text:
            raise errors.UsageError(
                f"expected a text that the model can write behind {prompt[-20:]!r}, got {text!r}"
            )
        # What a part of a character reads begins no text.
        read = [decode(ids[:end]).lstrip() for end in range(len(ids))]
        open_to = [{at for at, other in every if other.lstrip().startswith(begun)} for begun in read]
        told = next((end for end, left in enumerate(open_to) if left == {side}), len(ids))
        paths.setdefault(ids[:told], set()).add(side)
    steps: dict[types.Tokens, dict[int, set[int]]] = {}
    for path, of in paths.items():
        for at, token in enumerate(path):
            steps.setdefault(path[:at], {}).setdefault(token, set()).update(of)
    for path in paths.keys() & steps.keys():
        raise errors.UsageError(
            f"expected a target and a foil that differ at some token behind {prompt[-30:]!r}, got {decode(path)!r}, "
            "which begins the other; leave one out"
        )
    return Offer(steps)


def among(logits: Float[Tensor, "row token"], offered: Offered) -> Float[Tensor, "row token"]:
    """Logits with −∞ at what a row is not offered; a row without an offer keeps all."""
    if not any(offered):
        return logits
    kept = torch.full_like(logits, -torch.inf)
    for row, tokens in enumerate(offered):
        kept[row, list(tokens) or slice(None)] = logits[row, list(tokens) or slice(None)]
    return kept
