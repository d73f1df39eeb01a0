"""Two ablations on the same examples: what each flips alone, and whether they are told apart (McNemar, exact).

>>> flips = Paired.of({1, 2, 3}, {3}, {1, 2, 3, 4})
>>> (flips.both, flips.first_only, flips.second_only, flips.n, flips.p)
(1, 2, 0, 4, 0.5)
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from mecharule_ops.mcnemar import mcnemar_p


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """Counts of examples that both ablations were tested on."""

    both: int
    first_only: int
    second_only: int
    n: int

    @classmethod
    def of(cls, first: Set[int], second: Set[int], tested: Set[int]) -> Paired:
        """From the examples that each flips, of those that both were tested on."""
        left, right = first & tested, second & tested
        return cls(
            both=len(left & right),
            first_only=len(left - right),
            second_only=len(right - left),
            n=len(tested),
        )

    @property
    def p(self) -> float:
        """Two-sided exact p that either flips alone as often as the other: a fair coin on the discordant examples."""
        return mcnemar_p(self.first_only, self.second_only)
