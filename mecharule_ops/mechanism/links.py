"""What an answer's breaks, a unit's writes and its reads are, as values that need no model.

*Breaks*: the first generated token that changes under an ablation, and from what to what. Everything generated after
it was written on top of another text, so only the first change is the unit's own work. This is the outcome of
activation patching token by token, where its usual outcome is one logit difference.

*Writes* and *reads*: means over positions, for flipped and unflipped records apart. Direct logit attribution of the
unit's write, and attribution patching of what its attention reads; `writes` and `reads` measure it. A position is a
generated token in reach of the intervention. All of it describes the clean run; what causes a flip is shown by
ablations alone (`mediation`).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool

from mecharule_ops.types import FlipCount

FLIPPED, UNFLIPPED, EVERY = "flipped", "unflipped", "all"
"""Groups of records: those that the unit's ablation flips, the others, and both."""


def groups(flipped: Bool[np.ndarray, " record"]) -> dict[str, Bool[np.ndarray, " record"]]:
    """Where the records of each group are."""
    return {EVERY: np.ones_like(flipped), FLIPPED: flipped, UNFLIPPED: ~flipped}


END = "end of text"
"""Stands for the token that a shorter completion does not have, and for one without text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPush:
    """How far a unit moves one token's logit."""

    token: str
    """As text, or by the tokenizer's name for it where it has none, such as `</s>`."""
    push: float
    """Mean over positions, in logits before any soft cap, less the mean over the tokens compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenList:
    """The tokens of a set that a unit raises and lowers most, strongest first."""

    size: int
    """Tokens in the set."""
    raised: tuple[TokenPush, ...]
    lowered: tuple[TokenPush, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a unit writes towards the next token on one group of records."""

    group: str
    positions: int
    answer: TokenList
    """Among the tokens that the model writes on these records."""
    vocabulary: TokenList
    own_push: float
    """Mean push on the very token that the model writes, less the mean over the answer tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writes:
    """What a unit writes directly: its deviation from its replacement, read through the final norm and unembedding."""

    fixed: bool
    """One direction whatever the input, as of a channel or a neuron: its lists are of a unit above its replacement,
    as far as it deviates on average; below it every sign is turned. A head writes anew at each position."""
    groups: tuple[Written, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRead:
    """How much of what a head reads comes from one named piece of the text."""

    name: str
    attention: float
    """Mean share of its attention; the shares of a group sum to 1."""
    toward: float
    """Mean part of the lead, to first order, that the values read there carry; in logits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadReading:
    """What a head reads on one group of records."""

    group: str
    positions: int
    sources: tuple[SourceRead, ...]
    """The most attended first."""
    replacement: float
    """The same part that the head's replacement would carry: all `toward` less this is the first-order drop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activation:
    """The values of a channel or a neuron on one group of records."""

    group: str
    positions: int
    mean: float
    replacement: float
    """Mean of what replaces it."""
    above: FlipCount
    """Positions at which it lies above the replacement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """What a unit reads: a head its sources, a channel or a neuron its activation."""

    heads: tuple[HeadReading, ...] = ()
    activations: tuple[Activation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectShare:
    """How much of a unit's effect on the lead reaches it without passing another unit, to first order."""

    group: str
    positions: int
    push: float
    """Mean direct push p, in logits."""
    drop: float
    """Mean first-order drop d, in logits."""

    @property
    def share(self) -> float | None:
        """The direct part of the drop, p / d; None where the drop is not positive and so has no parts."""
        return self.push / self.drop if self.drop > 0 else None


class FirstChange(NamedTuple):
    """The first changed token of one record."""

    place: str
    """What the task calls the piece that the clean token belongs to."""
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceBreak:
    """How often the answer breaks at one place."""

    place: str
    count: FlipCount
    """Of all flips."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenChange:
    """How often one token becomes another there."""

    place: str
    before: str
    after: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaks:
    """Where flipped answers break, the most frequent first."""

    flips: int
    places: tuple[PlaceBreak, ...]
    changes: tuple[TokenChange, ...]


def breaks(changes: Sequence[FirstChange], listed: int = 8) -> Breaks:
    """Counts over flipped records, the `listed` most frequent token changes."""
    places = Counter(change.place for change in changes)
    ordered = sorted(Counter(changes).items(), key=lambda item: (-item[1], item[0]))
    return Breaks(
        flips=len(changes),
        places=tuple(
            PlaceBreak(place=place, count=FlipCount(flips=count, n=len(changes)))
            for place, count in sorted(places.items(), key=lambda item: (-item[1], item[0]))
        ),
        changes=tuple(TokenChange(**change._asdict(), count=count) for change, count in ordered[:listed]),
    )
