"""A group of units and what ablating it did: what searches decide, events tell, findings keep and screens draw.

Loads no numerical package.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from mecharule_ops import bases, codec, errors
from mecharule_ops.thresholds import reaches

_HEAD = re.compile(r"L?(\d{1,4})[.]?H(\d{1,4})", re.IGNORECASE)
"""Another name of a head in the field."""
_NEURON = re.compile(r"([a-z])(\d{1,4})\.(h)?(\d{1,7})")


@dataclass(frozen=True, slots=True, order=True)
class Neuron(codec.Printed):
    """One unit of a basis; prints and parses as `m4.1234`, `n4.1234` or `a20.h8`.

    >>> Neuron.parse("a20.h8").layer, str(Neuron(bases.Basis.MLP_OUT, 4, 1234))
    (20, 'm4.1234')
    """

    basis: bases.Basis
    """The basis the unit belongs to."""
    layer: int
    """Zero-based layer."""
    channel: int
    """Zero-based coordinate in the layer; the head index for `attn_head`."""

    def __str__(self) -> str:
        return f"{self.basis.letter}{self.layer}{self.basis.row.mark}{self.channel}"

    @classmethod
    def parse(cls, text: str) -> "Neuron":
        """Read a printed name. Raises `UsageError` on anything else."""
        match = _NEURON.fullmatch(text.strip())
        letter, layer, kind, number = match.groups("") if match else ("",) * 4
        basis = next(
            (each for each, row in bases.ROWS.items() if (row.letter, row.mark) == (letter, f".{kind}")), None
        )
        if basis is None:
            head = _HEAD.fullmatch(text.strip())
            near = f"; did you mean a{head[1]}.h{head[2]}?" if head else ""
            raise errors.UsageError(f"expected a unit such as m4.1234, n4.1234 or a20.h8, got {text!r}{near}")
        return cls(basis, int(layer), int(number))


@dataclass(frozen=True, slots=True, kw_only=True)
class FlipCount:
    """Flips seen among n examples of one slice."""

    flips: int
    n: int

    def __post_init__(self) -> None:
        if not 0 <= self.flips <= self.n:
            raise errors.UsageError(f"expected 0 to {self.n} flips, got {self.flips}")

    @property
    def flip_rate(self) -> float:
        """δ̂ = flips / n; NaN for an empty slice."""
        return self.flips / self.n if self.n else float("nan")

    def __add__(self, other: "FlipCount") -> "FlipCount":
        return FlipCount(flips=self.flips + other.flips, n=self.n + other.n)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlipEstimate:
    """Flip counts of one unit or group on the two compact slices (paper, definition 3.1)."""

    associated: FlipCount
    """D⁺: the rule fires."""
    unrelated: FlipCount
    """D⁻: the rule does not fire."""

    @property
    def strength(self) -> float:
        """Ê = max(δ̂₊, δ̂₋)."""
        return max((part.flips / part.n for part in (self.associated, self.unrelated) if part.n), default=0.0)

    def reaches(self, tau: float) -> bool:
        """Whether the point estimate is that of a τ-agonist: Ê ≥ τ."""
        return reaches(self.strength, tau)

    @property
    def stronger(self) -> tuple[str, FlipCount]:
        """`D+` or `D-`, whichever flips more often (D+ on a tie, never an empty slice beside another)."""
        plus, minus = self.associated, self.unrelated
        on_plus = minus.n == 0 or (plus.n > 0 and plus.flip_rate >= minus.flip_rate)
        return ("D+", plus) if on_plus else ("D-", minus)

    @property
    def signed_selectivity(self) -> float:
        """δ̂₊ − δ̂₋; positive when the associated slice flips more."""
        return self.associated.flip_rate - self.unrelated.flip_rate

    def ucb(self, slice_alpha: float) -> float:
        """Û_E: the larger of the two one-sided Clopper–Pearson upper bounds, each at `slice_alpha`.

        It falls below the strength with probability `slice_alpha` at most: only the stronger slice's bound can.
        """
        from mecharule_ops.confidence import upper_bound

        return max(upper_bound(part.flips, part.n, slice_alpha) for part in (self.associated, self.unrelated))

    def lcb(self, alpha: float) -> float:
        """The larger of the two one-sided lower bounds, each at α/2, since either can exceed the strength."""
        from mecharule_ops.confidence import lower_bound

        return max(lower_bound(part.flips, part.n, alpha / 2) for part in (self.associated, self.unrelated))

    def __add__(self, other: "FlipEstimate") -> "FlipEstimate":
        return FlipEstimate(
            associated=self.associated + other.associated, unrelated=self.unrelated + other.unrelated
        )


NOTHING = FlipEstimate(associated=FlipCount(flips=0, n=0), unrelated=FlipCount(flips=0, n=0))
"""Nothing was counted."""


class Verdict(StrEnum):
    """What became of a queried node."""

    PRUNED = "pruned"
    """A group whose UCB is below τ."""
    SPLIT = "split"
    """A group that could contain an agonist and was opened."""
    KEPT = "kept"
    """A single unit whose UCB reaches τ: localized."""
    DROPPED = "dropped"
    """A single unit whose UCB is below τ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A group of one layer's search, or a unit alone: asked and, from its verdict on, decided."""

    id: int
    """Unique within one layer's search; a parent has a lower one than its children."""
    parent: int | None = None
    """The node that was split into it."""
    layer: int
    channels: tuple[int, ...]
    """Its units, in the search's order."""
    step: str = ""
    """The step of a guided search that opened it: `confirm`, `sweep`, `part` or `fallback`."""
    estimate: FlipEstimate = NOTHING
    ucb: float = 1.0
    """Û_E at the node's α, in [0, 1]."""
    verdict: Verdict | None = None
    """None while it is under test; its counts are told with its verdict."""

    @property
    def size(self) -> int:
        """Units of the group."""
        return len(self.channels)

    def printed(self, basis: bases.Basis) -> str:
        """A unit alone, or between which a group lies: `m4.12 … m4.99`."""
        first, last = (str(Neuron(basis, self.layer, end(self.channels))) for end in (min, max))
        return first if first == last else f"{first} … {last}"
