"""What acting on some records did to the answers, record by record: fixed, broken, an interval, McNemar's test.

Before and after are of the same records, so only those whose label changes count. The interval of the difference is
the adjusted Wald one of Bonett and Price (2012): one record is added to each of the two counts,

    d̃ = (f − b) / (n + 2),   d̃ ± z √((f + 1)/(n + 2) + (b + 1)/(n + 2) − d̃²) / √(n + 2),

which holds its level where few records change. The p-value is McNemar's, exact and two-sided: f of f + b changed
records under a fair coin.

Where records come in clusters that are not independent (sentences of one template), a cluster's net change
d_c = f_c − b_c is one observation: the p-value is that of Σ d_c when the sign of each d_c is a fair coin (exact;
McNemar's where each cluster is one record), and the interval is the wider of the one above and the cluster-robust one,

    (f − b)/n ± t_{C−1} √(C/(C − 1) Σ (d_c − n_c (f − b)/n)²) / n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
import scipy
from jaxtyping import Bool, Shaped

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
    clusters: tuple[tuple[int, ...], ...] = ()
    """(records, fixed − broken) of each cluster; empty where records are independent."""

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
        cluster: Shaped[np.ndarray, " record"] | None = None,
    ) -> Paired:
        """The counts of labels that belong together; `cluster` names that of each record."""
        clusters: tuple[tuple[int, ...], ...] = ()
        if cluster is not None:
            _, place, sizes = np.unique(cluster, return_inverse=True, return_counts=True)
            net = np.bincount(place, after.astype(int) - before).astype(int)
            clusters = tuple(zip(sizes.tolist(), net.tolist(), strict=True))
        return cls(
            clusters=clusters,
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
        low, high = 100 * (difference - _Z * spread), 100 * (difference + _Z * spread)
        if not self.clusters:
            return low, high
        half = self._clustered_half
        return max(-100.0, min(low, self.points - half)), min(100.0, max(high, self.points + half))

    @property
    def _clustered_half(self) -> float:
        """Half the cluster-robust interval of `points`; infinite for one cluster."""
        count, (records, net) = len(self.clusters), np.array(self.clusters).T
        if count < 2:
            return inf
        squares = float(((net - records * self.points / 100) ** 2).sum())
        t = float(scipy.special.stdtrit(count - 1, 0.975))
        return 100 * t * sqrt(count / (count - 1) * squares) / self.n

    @property
    def p_value(self) -> float:
        """Of McNemar's exact test, or of the exact sign flips of clusters; 1 where no label changes."""
        if self.clusters:
            return sign_flip_p([net for _, net in self.clusters])
        return mcnemar_p(self.fixed, self.broken)

    @property
    def ratio(self) -> float:
        """Fixed for one broken; infinite where none is broken, NaN where nothing changes."""
        if self.broken:
            return self.fixed / self.broken
        return inf if self.fixed else float("nan")


def mcnemar_p(one: int, other: int) -> float:
    """P that a fair coin splits as many pairs so unevenly, exact and two-sided; 1 where there are none."""
    return min(1.0, 2 * float(scipy.special.bdtr(min(one, other), one + other, 0.5))) if one + other else 1.0


def sign_flip_p(net: Sequence[int]) -> float:
    """P(|Σ ± d_c| ≥ |Σ d_c|) over independent fair signs, exactly; of C clusters it is never below 2^(1 − C)."""
    reach = sum(map(abs, net))
    chance = np.zeros(2 * reach + 1)
    chance[reach] = 1.0
    for one in net:
        chance = (np.roll(chance, one) + np.roll(chance, -one)) / 2
    return min(1.0, float(chance[np.abs(np.arange(-reach, reach + 1)) >= abs(sum(net))].sum()))
