"""What acting on some records did to the answers, record by record: fixed, broken, an interval, McNemar's test.

Before and after are of the same records, so only those whose label changes count. The interval of the difference is
the adjusted Wald one of Bonett and Price (2012): one record is added to each of the two counts,

    d̃ = (f − b) / (n + 2),   d̃ ± z √((f + 1)/(n + 2) + (b + 1)/(n + 2) − d̃²) / √(n + 2),

which holds its level where few records change. The p-value is McNemar's, exact and two-sided: f of f + b changed
records under a fair coin.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
import scipy
from jaxtyping import Bool

from mecharule_ops.errors import UsageError

_Z = 1.959963984540054
"""Of a two-sided 95 % interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """Labels of the same records before and after."""

    n: int
    before: int
    """Records with label 1 before."""
    fixed: int
    """0 before, 1 after."""
    broken: int
    """1 before, 0 after."""
    acted: int
    """Records on which anything acted, changed or not."""

    def __post_init__(self) -> None:
        within = 0 <= self.broken <= self.before and 0 <= self.fixed <= self.n - self.before
        if not (within and self.fixed + self.broken <= self.acted <= self.n):
            raise UsageError(f"expected counts of the same {self.n} records before and after, got {self}")

    @classmethod
    def of(
        cls,
        before: Bool[np.ndarray, " record"],
        after: Bool[np.ndarray, " record"],
        acted: Bool[np.ndarray, " record"],
    ) -> "Paired":
        """The counts of labels that belong together."""
        return cls(
            n=len(before),
            before=int(before.sum()),
            fixed=int((after & ~before).sum()),
            broken=int((before & ~after).sum()),
            acted=int(acted.sum()),
        )

    @property
    def after(self) -> int:
        """Records with label 1 after."""
        return self.before + self.fixed - self.broken

    @property
    def points(self) -> float:
        """Change of the share with label 1, in percentage points; NaN without records."""
        return 100 * (self.fixed - self.broken) / self.n if self.n else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of `points`."""
        n = self.n + 2
        difference = (self.fixed - self.broken) / n
        spread = sqrt(max(0.0, (self.fixed + self.broken + 2) / n - difference**2) / n)
        return 100 * (difference - _Z * spread), 100 * (difference + _Z * spread)

    @property
    def p_value(self) -> float:
        """Of McNemar's exact test; 1 where no label changes."""
        return mcnemar_p(self.fixed, self.broken)


def mcnemar_p(one: int, other: int) -> float:
    """P that a fair coin splits as many pairs so unevenly, exact and two-sided; 1 where there are none."""
    return min(1.0, 2 * float(scipy.special.bdtr(min(one, other), one + other, 0.5))) if one + other else 1.0
