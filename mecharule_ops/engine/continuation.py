"""Feeds completions again that an ablation changed, until the task can label them.

A row holds accepted tokens, exactly those that decoding token by token gives, and a guess at what follows. Both are
fed in one forward under the row's ablation, from the second turn on without what was accepted before; the greedy token
after the accepted ones is the next true token, and as long as true tokens equal the guess the ones after them are true
too. Every turn accepts at least one token, whatever the guess, and the next one feeds at most twice as many.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mecharule_ops.engine.settling import Reader
from mecharule_ops.types import Tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRow:
    """One record under one group, not known to be settled."""

    row: int
    """Index of the record within its chunk."""
    record: int
    """And among all."""
    group: int
    accepted: Tokens
    """True completion tokens, at least one of them unlike the baseline's."""
    guess: Tokens
    """What may follow."""
    rest: Tokens = ()
    """And what may follow on that, not fed in the next turn."""
    margin: float
    """Smallest top-1 − top-2 logit margin over the accepted tokens."""

    @property
    def fed(self) -> Tokens:
        """Accepted and guessed tokens, and one that stands for what the last of them predicts."""
        return (*self.accepted, *self.guess, -1)


def trimmed(reader: Reader, row: OpenRow) -> OpenRow:
    """The row with its guess cut where the completion would end: an ending token is never fed."""
    length = next(
        (n for n in range(len(row.guess)) if reader.ended(row.record, (*row.accepted, *row.guess[: n + 1]))),
        len(row.guess),
    )
    return replace(row, guess=row.guess[:length], rest=(*row.guess[length:], *row.rest))


def advanced(
    reader: Reader, row: OpenRow, tokens: Sequence[int], margins: Sequence[float], early: bool
) -> OpenRow:
    """The row after a turn that gave greedy `tokens` behind the accepted ones and behind each guessed one."""
    accepted, margin = row.accepted, row.margin
    for index, (token, lead) in enumerate(zip(tokens, margins, strict=True)):
        accepted, margin = (*accepted, token), float(np.minimum(margin, lead))
        agrees = index < len(row.guess) and row.guess[index] == token
        if not agrees or reader.label(row.record, accepted, early) is not None:
            break
    taken = len(accepted) - len(row.accepted)
    after = *tokens[taken:], *row.rest[1:]
    ahead = 2 * taken - 1
    return replace(row, accepted=accepted, guess=after[:ahead], rest=after[ahead:], margin=margin)
